/*
 * One function body for the many calls that are logged from their arguments alone. A shape
 * describes each call (shape.h).
 */
#include "shape.h"

/* Returns the argument that a shape's field names, or the constant. */
static inline s64 pick(u32 source, s64 constant, const s64 *args)
{
    return source ? args[source - 1] : constant;
}

/*
 * The file whose status a call is about to change, found as the call finds it. A file that this
 * process has open for writing is identified when it is closed.
 */
static struct bs_look status_look(u32 op, s32 fd, const char *path, u32 aux)
{
    bool follow = op == BS_OP_LINK ? aux & AT_SYMLINK_FOLLOW : !(aux & AT_SYMLINK_NOFOLLOW);
    u32 flags =
        (follow ? 0 : AT_SYMLINK_NOFOLLOW) | (aux & AT_EMPTY_PATH) | (path ? 0 : AT_EMPTY_PATH);
    return (struct bs_look){fd, path ? path : "", flags, 0,
                            path || !(bs_fd_marks(fd) & BS_FD_WRITER)};
}

static struct bs_reservation begin(const struct bs_shape *shape, const s64 *args)
{
    s32 fd = (s32)pick(shape->fd, BS_AT_FDCWD, args);
    s32 arg = (s32)pick(shape->arg, shape->arg_is, args);
    u32 aux = (u32)(pick(shape->aux, 0, args) | shape->aux_is);
    const char *path = (const char *)pick(shape->path, 0, args);
    bool status = shape->op == BS_OP_META || shape->op == BS_OP_LINK;
    if (shape->strings == 1 && !shape->look && !status)
        return bs_begin_path(shape->op, fd, arg, aux, path);
    if (shape->strings == 0)
        return bs_begin(shape->op, fd, arg, aux);
    const char *other = (const char *)pick(shape->other, (s64) "", args);
    if (shape->strings == 2 && !other)
        other = "";
    struct bs_look look = {fd, path, AT_SYMLINK_NOFOLLOW, BS_CHANGE_REMOVE,
                           shape->look != BS_LOOK_NOT};
    if (shape->look == BS_LOOK_AT_OTHER) {
        look.dir = arg;
        look.path = other;
        if (aux) /* the rename replaces nothing, or exchanges two files */
            look.change = 0;
    } else if (shape->look == BS_LOOK_BEHIND) {
        look.flags = 0;
        look.change = BS_CHANGE_PART;
    } else if (status) {
        look = status_look(shape->op, fd, path,
                           aux); /* without a path, no memory of the program has to be readable */
    }
    return bs_begin_ident(shape->op, fd, arg, aux, path, shape->strings == 2 ? other : 0, look);
}

s64 bs_result(const struct bs_shape *shape, s64 a, s64 b, s64 c, s64 d, s64 e)
{
    s64 args[5] = {a, b, c, d, e};
    u64 began = BS_DEEP_TIME();
    struct bs_reservation rec = begin(shape, args);
    s64 result = bs_end(rec, bs_call(rec, shape->nr, a, b, c, d, e));
    if (BS_UNLIKELY(result < 0 && rec.changes >> 32))
        bs_unlink_own(rec.changes >> 32);
    BS_DEEP_LOG(began, result, shape->nr, a, b, c, d, e);
    return result;
}

s64 bs_shaped(const struct bs_shape *shape, s64 a, s64 b, s64 c, s64 d, s64 e)
{
    return bs_ret(bs_result(shape, a, b, c, d, e));
}

/* Makes and logs a call that changes nothing. Returns the system call's result. */
s64 bs_look_up(const struct bs_shape *shape, s64 a, s64 b, s64 c, s64 d, s64 e)
{
    s64 args[5] = {a, b, c, d, e};
    u64 time = bs_now();
    bool logged = bs_logs_later(shape->op);
    s64 result = bs_through6(bs_entry_point_later(logged), shape->nr, a, b, c, d, e, 0);
    BS_FUNCTIONS_DO(if (result == -BS_ENOTDIR && shape->op == BS_OP_ACCESS &&
                        bs_mark_function((const char *)args[shape->path - 1])) logged = false);
    if (BS_LIKELY(logged))
        bs_note_path(time, shape->op, (s32)pick(shape->fd, BS_AT_FDCWD, args),
                     (s32)pick(shape->arg, shape->arg_is, args), (u32)pick(shape->aux, 0, args),
                     (const char *)args[shape->path - 1], result);
    BS_DEEP_LOG(time, result, shape->nr, a, b, c, d, e);
    return result;
}

s64 bs_looked(const struct bs_shape *shape, s64 a, s64 b, s64 c, s64 d, s64 e)
{
    return bs_ret(bs_look_up(shape, a, b, c, d, e));
}

/* For calls after which the program may be unable to reach the recorder's file. */
s64 bs_shaped_moves(const struct bs_shape *shape, s64 a, s64 b, s64 c, s64 d, s64 e)
{
    s64 result = bs_result(shape, a, b, c, d, e);
    if (result >= 0)
        __atomic_or_fetch(&bs_modes, BS_MODE_MOVED, __ATOMIC_SEQ_CST);
    return bs_ret(result);
}

/* For calls that return a descriptor of something else than a file being written. */
s64 bs_shaped_opens(const struct bs_shape *shape, s64 a, s64 b, s64 c, s64 d, s64 e)
{
    s64 fd = bs_result(shape, a, b, c, d, e);
    bs_fd_opened(fd, 0);
    return bs_ret(fd);
}
