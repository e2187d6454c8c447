/*
 * What libc's streams did before the recorder was there. A program that only reads its standard input and writes its standard output
 * by way of libc calls nothing of ours; what it did is told from its streams' own state: when the process is set up for
 * another reason, or else when it ends. One that used no stream either is left alone.
 */
#include "bs.h"

/* glibc's FILE: its first fields are fixed by the macros of old programs. */
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

/* What is in the buffer still is seen when libc writes it. */
static bool has_written(const struct stream *s)
{
    return is_writing(s) && s->write_at == s->write_base;
}

/* All streams, or null where libc is another. Threads could be closing theirs; but the first of them was made after set-up. */
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

/* What was written may come of what was read. */
void bs_log_streams_used(void)
{
    log_those(has_read, BS_OP_READ, BS_FD_READ);
    log_those(has_written, BS_OP_WRITE, BS_FD_WROTE);
}

/* Before libc writes what its buffers hold. A process that is set up has seen everything, and so has its child. */
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
