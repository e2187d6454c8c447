/*
 * libbackstory: a program says what it does, and backstory records that beside the program's system
 * calls.
 *
 *     backstory_begin("train", "epoch 3");
 *     backstory_read("s3://bucket/images");
 *     backstory_write("model:3");
 *     backstory_note("loss", "0.12");
 *     backstory_end();
 *
 * `backstory of model:3` then answers what the model came from.
 *
 * This header is the whole library: it has no dependency besides libc, and needs no linking. The
 * same functions are in libbackstory.so and libbackstory.a, for languages that call C functions by
 * name.
 *
 * Each statement is a mark: an attempt to open a path below /dev/null/backstory, which cannot
 * exist. Inside a recorded process, the recorder takes the mark without a system call. In a process
 * that is not recorded, a function compares one variable and returns.
 *
 * Guarantees of every function:
 *
 *  - It never fails, never blocks, allocates nothing, and leaves errno as it was.
 *  - It may be called by any thread and in signal handlers.
 *  - A string that is NULL counts as empty. A statement that is too long is cut.
 *
 * Names of things are URIs with a scheme of the program's own, as `model:3`, `s3://bucket/key` or
 * `sqlite:///data/bank.db/accounts?id=42`. Schemes of backstory's own are ignored: `file`,
 * `postgres`, `mariadb`, `mysql`, `tcp`, `udp`, `unix`, `pipe` and `memory`. Files need no
 * statement: their uses are observed.
 */
#ifndef BACKSTORY_H
#define BACKSTORY_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* libbackstory.so and libbackstory.a define this as empty: their functions are called by name. */
#ifndef BACKSTORY_FUNCTION
#define BACKSTORY_FUNCTION static inline __attribute__((unused))
#endif

/* The most bytes of a mark, which is a path for the kernel. */
#define BACKSTORY_LONGEST 4000

/* Exported by the recorder. Takes a mark. Returns 0 if the mark must be an open(2) instead. */
extern int backstory_mark(const char *path) __attribute__((weak));

/* How marks reach backstory: not known yet, not at all, by the recorder, by open(2). */
enum backstory_route {
    BACKSTORY_UNKNOWN = 0,
    BACKSTORY_OFF = 1,
    BACKSTORY_RECORDER = 2,
    BACKSTORY_OPEN = 3
};

/* A program without the recorder is observed by the kernel's notifications: a static one. */
static inline enum backstory_route backstory_find_route(void)
{
    if (backstory_mark)
        return BACKSTORY_RECORDER;
    return getenv("BACKSTORY_ARENA") ? BACKSTORY_OPEN : BACKSTORY_OFF;
}

static inline enum backstory_route backstory_route(void)
{
    static int known = BACKSTORY_UNKNOWN;
    int route = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (__builtin_expect(route == BACKSTORY_UNKNOWN, 0)) {
        route = backstory_find_route();
        __atomic_store_n(&known, route, __ATOMIC_RELAXED);
    }
    return (enum backstory_route)route;
}

/* A mark that is being written. */
struct backstory_text {
    size_t length;
    char path[BACKSTORY_LONGEST + 4];
};

/* Appends `word` and encodes the bytes that a word of a mark cannot have. */
static inline void backstory_append(struct backstory_text *to, const char *word)
{
    static const char digits[] = "0123456789abcdef";
    for (; word && *word; word++) {
        unsigned char byte = (unsigned char)*word;
        int plain = byte > 32 && byte != 127 && byte != '/' && byte != '%';
        if (to->length + (plain ? 1 : 3) > BACKSTORY_LONGEST)
            break;
        if (plain) {
            to->path[to->length++] = (char)byte;
        } else {
            to->path[to->length++] = '%';
            to->path[to->length++] = digits[byte >> 4];
            to->path[to->length++] = digits[byte & 15];
        }
    }
    to->path[to->length] = 0;
}

static inline void backstory_next_word(struct backstory_text *to, const char *word)
{
    if (to->length < BACKSTORY_LONGEST)
        to->path[to->length++] = '/';
    backstory_append(to, word);
}

static __attribute__((noinline, unused)) void backstory_say(const char *handle, const char *around,
                                                            const char *verb, const char *first,
                                                            const char *second, int words)
{
    static const char prefix[] = "/dev/null/backstory";
    struct backstory_text text;
    int error = errno;
    __builtin_memcpy(text.path, prefix, sizeof prefix);
    text.length = sizeof prefix - 1;
    if (around) {
        backstory_next_word(&text, "in");
        backstory_next_word(&text, around);
    }
    if (handle) {
        backstory_next_word(&text, "in");
        backstory_next_word(&text, handle);
    }
    backstory_next_word(&text, verb);
    if (words > 0)
        backstory_next_word(&text, first);
    if (words > 1)
        backstory_next_word(&text, second);
    if (backstory_route() != BACKSTORY_RECORDER || !backstory_mark(text.path)) {
        int descriptor = open(text.path, O_RDONLY | O_CLOEXEC);
        if (descriptor >= 0)
            close(descriptor);
    }
    errno = error;
}

/* True if statements are recorded. */
BACKSTORY_FUNCTION int backstory_is_recorded(void)
{
    return backstory_route() != BACKSTORY_OFF;
}

/* Begins an activity inside the present one of this process. `text` may be NULL. */
BACKSTORY_FUNCTION void backstory_begin(const char *what, const char *text)
{
    if (backstory_is_recorded())
        backstory_say(NULL, NULL, "begin", what, text, text ? 2 : 1);
}

/* Ends the activity of the last `backstory_begin`, and begins another. */
BACKSTORY_FUNCTION void backstory_next(const char *what, const char *text)
{
    if (backstory_is_recorded())
        backstory_say(NULL, NULL, "next", what, text, text ? 2 : 1);
}

/* Ends the activity of the last `backstory_begin`. */
BACKSTORY_FUNCTION void backstory_end(void)
{
    if (backstory_is_recorded())
        backstory_say(NULL, NULL, "end", NULL, NULL, 0);
}

/* The present activity read a thing. */
BACKSTORY_FUNCTION void backstory_read(const char *name)
{
    if (backstory_is_recorded())
        backstory_say(NULL, NULL, "read", name, NULL, 1);
}

/* The present activity made a thing, or all of its content is new. */
BACKSTORY_FUNCTION void backstory_write(const char *name)
{
    if (backstory_is_recorded())
        backstory_say(NULL, NULL, "write", name, NULL, 1);
}

/* The present activity changed a part of a thing. */
BACKSTORY_FUNCTION void backstory_change(const char *name)
{
    if (backstory_is_recorded())
        backstory_say(NULL, NULL, "change", name, NULL, 1);
}

/* The present activity deleted a thing. */
BACKSTORY_FUNCTION void backstory_delete(const char *name)
{
    if (backstory_is_recorded())
        backstory_say(NULL, NULL, "delete", name, NULL, 1);
}

/* The present activity made `name` from `from`. */
BACKSTORY_FUNCTION void backstory_derive(const char *name, const char *from)
{
    if (backstory_is_recorded())
        backstory_say(NULL, NULL, "derive", name, from, 2);
}

/* An attribute of the present activity. */
BACKSTORY_FUNCTION void backstory_note(const char *key, const char *value)
{
    if (backstory_is_recorded())
        backstory_say(NULL, NULL, "note", key, value, 2);
}

/*
 * An extended record of the present activity. `type` has a dot, as `org.example.metric`; `payload`
 * is text of the program's own, best JSON.
 */
BACKSTORY_FUNCTION void backstory_record(const char *type, const char *payload)
{
    if (backstory_is_recorded())
        backstory_say(NULL, NULL, "record", type, payload, 2);
}

/* ---- activities that may overlap ------------------------------------------------------------- */

/*
 * Requests of a server overlap. Each has a handle: a text of the program's own, unique among the
 * open activities of the process. `around` is the handle of the activity that it is a part of, or
 * NULL. The functions above with `_in` are about the activity with a handle. Files that the process
 * reads meanwhile count for the process: each overlapping activity may have used them.
 */
BACKSTORY_FUNCTION void backstory_begin_in(const char *handle, const char *around, const char *what,
                                           const char *text)
{
    if (backstory_is_recorded())
        backstory_say(handle, around, "begin", what, text, text ? 2 : 1);
}

/* Ends the activity with this handle. */
BACKSTORY_FUNCTION void backstory_end_in(const char *handle)
{
    if (backstory_is_recorded())
        backstory_say(handle, NULL, "end", NULL, NULL, 0);
}

/* The activity with this handle read a thing. */
BACKSTORY_FUNCTION void backstory_read_in(const char *handle, const char *name)
{
    if (backstory_is_recorded())
        backstory_say(handle, NULL, "read", name, NULL, 1);
}

/* The activity with this handle made a thing, or all of its content is new. */
BACKSTORY_FUNCTION void backstory_write_in(const char *handle, const char *name)
{
    if (backstory_is_recorded())
        backstory_say(handle, NULL, "write", name, NULL, 1);
}

/* The activity with this handle changed a part of a thing. */
BACKSTORY_FUNCTION void backstory_change_in(const char *handle, const char *name)
{
    if (backstory_is_recorded())
        backstory_say(handle, NULL, "change", name, NULL, 1);
}

/* The activity with this handle deleted a thing. */
BACKSTORY_FUNCTION void backstory_delete_in(const char *handle, const char *name)
{
    if (backstory_is_recorded())
        backstory_say(handle, NULL, "delete", name, NULL, 1);
}

/* The activity with this handle made `name` from `from`. */
BACKSTORY_FUNCTION void backstory_derive_in(const char *handle, const char *name, const char *from)
{
    if (backstory_is_recorded())
        backstory_say(handle, NULL, "derive", name, from, 2);
}

/* An attribute of the activity with this handle. */
BACKSTORY_FUNCTION void backstory_note_in(const char *handle, const char *key, const char *value)
{
    if (backstory_is_recorded())
        backstory_say(handle, NULL, "note", key, value, 2);
}

/* An extended record of the activity with this handle. */
BACKSTORY_FUNCTION void backstory_record_in(const char *handle, const char *type,
                                            const char *payload)
{
    if (backstory_is_recorded())
        backstory_say(handle, NULL, "record", type, payload, 2);
}

/* ---- parts of things ------------------------------------------------------------------------- */

/*
 * A part of a thing is a kind and a value, as "row=42" or "bytes=0-4095". The kinds are row,
 * column, cell, key, field, member, bytes, lines and pages. A statement with another kind, or with
 * a value that does not fit the kind, is ignored.
 */
/* The present activity read a part. */
BACKSTORY_FUNCTION void backstory_read_part(const char *name, const char *part)
{
    if (backstory_is_recorded())
        backstory_say(NULL, NULL, "read", name, part, 2);
}

/* The present activity made a part, or all of its content is new. */
BACKSTORY_FUNCTION void backstory_write_part(const char *name, const char *part)
{
    if (backstory_is_recorded())
        backstory_say(NULL, NULL, "write", name, part, 2);
}

/* The present activity changed some of a part. */
BACKSTORY_FUNCTION void backstory_change_part(const char *name, const char *part)
{
    if (backstory_is_recorded())
        backstory_say(NULL, NULL, "change", name, part, 2);
}

/* The present activity deleted a part. */
BACKSTORY_FUNCTION void backstory_delete_part(const char *name, const char *part)
{
    if (backstory_is_recorded())
        backstory_say(NULL, NULL, "delete", name, part, 2);
}

/* The activity with this handle read a part. */
BACKSTORY_FUNCTION void backstory_read_part_in(const char *handle, const char *name,
                                               const char *part)
{
    if (backstory_is_recorded())
        backstory_say(handle, NULL, "read", name, part, 2);
}

/* The activity with this handle made a part, or all of its content is new. */
BACKSTORY_FUNCTION void backstory_write_part_in(const char *handle, const char *name,
                                                const char *part)
{
    if (backstory_is_recorded())
        backstory_say(handle, NULL, "write", name, part, 2);
}

/* The activity with this handle changed some of a part. */
BACKSTORY_FUNCTION void backstory_change_part_in(const char *handle, const char *name,
                                                 const char *part)
{
    if (backstory_is_recorded())
        backstory_say(handle, NULL, "change", name, part, 2);
}

/* The activity with this handle deleted a part. */
BACKSTORY_FUNCTION void backstory_delete_part_in(const char *handle, const char *name,
                                                 const char *part)
{
    if (backstory_is_recorded())
        backstory_say(handle, NULL, "delete", name, part, 2);
}

#ifdef __cplusplus
}
#endif

#endif
