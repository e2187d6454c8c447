/*
 * Logs the activity of libc's streams before the recorder was set up. A program may only read its
 * standard input and write its standard output through libc. Such a program calls no function of
 * the recorder. The state of its streams shows what they did.
 *
 * The recorder reads that state when the process is set up for another reason, or else when it
 * ends. A process that used no stream either is left alone.
 */
#include "bs.h"

/* glibc's FILE. Macros compiled into old programs fix its first fields. */
struct stream {
    int flags;
    char *read_at, *read_end, *read_base;
    char *write_base, *write_at, *write_end;
    char *buffer, *buffer_end;
    void *saved[4];
    struct stream *next;
    int fd;
};
_Static_assert(offsetof(struct stream, next) == 104 && offsetof(struct stream, fd) == 112,
               "glibc's FILE");

enum { END_SEEN = 0x10, ERROR_SEEN = 0x20, WRITES = 0x800, AT_MOST = 1000 };

static bool has_read(const struct stream *s)
{
    return !(s->flags & WRITES) && (s->flags & END_SEEN || s->read_end > s->read_base);
}

static bool is_writing(const struct stream *s)
{
    return s->flags & WRITES && !(s->flags & ERROR_SEEN);
}

/*
 * True if the stream has written its buffer. Data still in the buffer is seen when libc writes it.
 */
static bool has_written(const struct stream *s)
{
    return is_writing(s) && s->write_at == s->write_base;
}

/*
 * The list of all streams, or null if the C library is not glibc. Another thread could close its
 * streams meanwhile, but a process has no second thread before set-up.
 */
static const struct stream *first_stream(void)
{
    struct stream **list = bs_threaded ? 0 : bs_next_or_null("_IO_list_all");
    return list ? *list : 0;
}

typedef bool question(const struct stream *);

static void log_those(question *did, u32 op, u32 mark)
{
    u32 count = 0;
    for (const struct stream *s = first_stream(); s && count < AT_MOST; s = s->next, count++)
        if (s->fd >= 0 && did(s)) {
            bs_note(0, op, s->fd, 0, 0, 1);
            bs_fd_mark(s->fd, mark);
        }
}

/* Reads are logged before writes, because the written data may come from the data read. */
void bs_log_streams_used(void)
{
    log_those(has_read, BS_OP_READ, BS_FD_READ);
    log_those(has_written, BS_OP_WRITE, BS_FD_WROTE);
}

/*
 * Runs at the process's end, before libc writes the buffers. If the process is set up, everything
 * has been logged already. The same holds for its children.
 */
static void end(void)
{
    if (bs_arena || !bs_arena_path[0])
        return;
    bool used = false;
    u32 count = 0;
    for (const struct stream *s = first_stream(); s && !used && count < AT_MOST;
         s = s->next, count++)
        used = s->fd >= 0 && (has_read(s) || is_writing(s));
    if (used)
        bs_is_ready(BS_OP_START);
}

__attribute__((section(".fini_array"), used)) static void (*const at_end)(void) = end;
