/*
 * Describes how a call is logged from its arguments. A wrapper is then one line: its shape, and a
 * jump to the shared body.
 */
#ifndef BS_SHAPE_H
#define BS_SHAPE_H

#include "bs.h"

#pragma GCC visibility push(hidden)

enum {
    BS_LOOK_NOT,
    BS_LOOK_AT_PATH,
    BS_LOOK_AT_OTHER,
    BS_LOOK_BEHIND /* identify the file that the path leads to */
};

/*
 * A field that names an argument counts from 1. In a field, 0 is a constant: AT_FDCWD for `fd`,
 * `arg_is` for `arg`, else no argument.
 */
struct bs_shape {
    uint16_t nr;
    uint8_t op, strings;
    uint8_t fd, arg, aux, path, other;
    /* BS_LOOK_*: the file to identify first, because it will lose its name or content */
    uint8_t look;
    int16_t arg_is;
    uint16_t aux_is;
};

s64 bs_result(const struct bs_shape *shape, s64 a, s64 b, s64 c, s64 d, s64 e);
s64 bs_shaped(const struct bs_shape *shape, s64 a, s64 b, s64 c, s64 d, s64 e);
s64 bs_look_up(const struct bs_shape *shape, s64 a, s64 b, s64 c, s64 d, s64 e);
s64 bs_looked(const struct bs_shape *shape, s64 a, s64 b, s64 c, s64 d, s64 e);
s64 bs_shaped_moves(const struct bs_shape *shape, s64 a, s64 b, s64 c, s64 d, s64 e);
s64 bs_shaped_opens(const struct bs_shape *shape, s64 a, s64 b, s64 c, s64 d, s64 e);

#pragma GCC visibility pop

#define BS_FIVE(a, b, c, d, e, ...) (s64)(a), (s64)(b), (s64)(c), (s64)(d), (s64)(e)
/*
 * Arguments: the call's name, the operation's name, the shape's fields in parentheses, the call's
 * arguments.
 */
#define BS_BY(how, call, operation, fields, ...) \
    ({ \
        static const struct bs_shape shape_ = { \
            .nr = __NR_##call, .op = BS_OP_##operation, BS_OPEN fields}; \
        how(&shape_, BS_FIVE(__VA_ARGS__, 0, 0, 0, 0, 0)); \
    })
#define BS_OPEN(...) __VA_ARGS__
#define BS_SHAPED(...) BS_BY(bs_shaped, __VA_ARGS__)
/* A look-up. It has one path, changes nothing, and is logged after the call. */
#define BS_LOOKED(...) BS_BY(bs_looked, __VA_ARGS__)

#endif
