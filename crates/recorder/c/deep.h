/*
 * The hooks of deep recording in the shared files. Part of bs.h, which includes it.
 *
 * A wrapper takes the time before its call. After the call it reports arguments and
 * result. deep/calls.c knows which arguments are buffers. Without BS_DEEP, the library for
 * ordinary runs, the hooks are empty and their arguments are not evaluated.
 */
#ifndef BS_DEEP_H
#define BS_DEEP_H

#define BS_SEVEN(nr, a, b, c, d, e, f, ...) \
    nr, (s64)(a), (s64)(b), (s64)(c), (s64)(d), (s64)(e), (s64)(f)

#ifdef BS_DEEP
/* deep/calls.c: records a system call, and leaves `errno` alone. `result` is the kernel's. */
void bs_deep_log(u64 time, s64 result, u32 nr, s64 a, s64 b, s64 c, s64 d, s64 e, s64 f);
/*
 * deep/calls.c: both lengths of an address after the call, as `bs_deep_log` takes them in the place
 * of the pointer to the length. The upper half is the room, of `bs_address_room`. An unknown room
 * counts as large enough.
 */
s64 bs_deep_lengths(s64 result, const void *address, u32 room, const u32 *size);
/* deep/stream.c */
void bs_deep_forget(u32 fd); /* the descriptor will mean another file */
/* The new thread is in the deep log, even if it makes no call. So the log has all in order. */
void bs_deep_thread_begins(void);
void bs_deep_thread_ends(void); /* gives the thread's deep chunk back */
/*
 * deep/begin.c: the program begins, with these arguments and variables. `argv` may be null.
 * `auxiliary` is the vector that the kernel passed behind them. Of a program with another C library
 * than glibc, only the note of Go's linker is read there.
 */
void bs_deep_begin(char **argv, char **env, const u64 *auxiliary, bool is_glibc);
/* deep/by_number.c: makes a system call that has no wrapper for its number, and records it. */
s64 bs_deep_by_number(s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e, s64 f);
/* deep/files.c: the program is about to limit its own system calls. Says what it has open. */
void bs_deep_before_limit(void);
/* deep/stream.c: no limit came of it. Threads that began meanwhile are recorded. */
void bs_deep_limit_failed(void);
/* deep/files.c: the descriptor came with a message. */
void bs_deep_passed(int fd);
/* deep/files.c: the internet connection was accepted. */
void bs_deep_accepted(int fd);
/* deep/files.c: another process may have the descriptors of this one from now on. */
void bs_deep_share_accepted(void);
/*
 * deep/exact.c: the program is about to limit its own system calls, so its times are not recorded
 * from here on. If no limit came of it, the deep log says so.
 */
void bs_exact_end(void);
void bs_exact_tell(void);
/* deep/instructions.c: a library may have been loaded. */
void bs_instructions_loaded(void);
#define BS_DEEP_TIME() bs_now()
/* Arguments: the time, the result, the call's number and arguments. */
#define BS_DEEP_LOG(time, result, ...) \
    bs_deep_log(time, result, BS_SEVEN(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0))
#define BS_DEEP_FORGET(fd) bs_deep_forget(fd)
#define BS_DEEP_DO(statement) statement
#else
#define BS_DEEP_TIME() 0
#define BS_DEEP_LOG(time, result, ...) ((void)(time))
#define BS_DEEP_FORGET(fd) ((void)0)
#define BS_DEEP_DO(statement) ((void)0)
#endif

/* The same with the return value of a function of libc, which has set `errno` after an error. */
#define BS_DEEP_LOG_RETURN(time, returned, ...) \
    BS_DEEP_LOG(time, (returned) < 0 ? bs_error() : (s64)(returned), __VA_ARGS__)

#endif
