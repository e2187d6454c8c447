/*
 * The recorder's system calls: through the gate, past it, and with the program's cancellation. Part
 * of bs.h, which includes it.
 */
#ifndef BS_CALLS_H
#define BS_CALLS_H

/*
 * gate.S: two functions with the calling convention of the `syscall` instruction. The guard lets
 * calls from `bs_gate` pass. It watches calls from `bs_plain`.
 */
extern char bs_gate[], bs_gate_ip[], bs_plain[];
/* Address of the gate if the loader put the library at another address than BS_HOME; else null. */
extern const void *bs_gate_elsewhere;

/* The analyzer does not know that the kernel writes through the arguments. */
#ifdef __clang_analyzer__
s64 bs_raw6(s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e, s64 f);
s64 bs_through6(const char *entry, s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e, s64 f);
#else
static inline s64 bs_raw6(s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e, s64 f)
{
    register s64 r10 __asm__("r10") = d;
    register s64 r8 __asm__("r8") = e;
    register s64 r9 __asm__("r9") = f;
    s64 result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory", "cc");
    return result;
}

static inline s64 bs_through6(const char *entry, s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e, s64 f)
{
    register s64 r10 __asm__("r10") = d;
    register s64 r8 __asm__("r8") = e;
    register s64 r9 __asm__("r9") = f;
    s64 result;
    __asm__ volatile("call *%[entry]"
                     : "=a"(result)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8),
                       "r"(r9), [entry] "r"(entry)
                     : "rcx", "r11", "memory", "cc");
    return result;
}
#endif

#define BS_SIX(a, b, c, d, e, f, ...) (s64)(a), (s64)(b), (s64)(c), (s64)(d), (s64)(e), (s64)(f)
/* A system call of the recorder that the guard's filter does not watch. */
#define bs_raw(nr, ...) bs_raw6(nr, BS_SIX(__VA_ARGS__, 0, 0, 0, 0, 0, 0))
/* A system call of the recorder through the gate. */
#define bs_gated(nr, ...) bs_through6(bs_gate, nr, BS_SIX(__VA_ARGS__, 0, 0, 0, 0, 0, 0))
/* The program's call, whose record is `rec`. It goes through the gate if it is logged. */
#define bs_call(rec, nr, ...) \
    bs_through6(bs_entry_point(rec), nr, BS_SIX(__VA_ARGS__, 0, 0, 0, 0, 0, 0))
/* The same for calls that are cancellation points. */
#define bs_call_cancel(rec, nr, ...) \
    bs_cancel6(bs_entry_point(rec), nr, BS_SIX(__VA_ARGS__, 0, 0, 0, 0, 0, 0))

/* Like `bs_through6`, but the thread can be cancelled during the call. */
s64 bs_cancelled6(const char *entry, s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e, s64 f);

/* Sets errno; returns -1. */
s64 bs_fail(s64 error);
/* The value of errno, negated like the result of a failed system call. */
s64 bs_error(void);
/* Turns a system call's result into the return value of a libc function. */
static inline s64 bs_ret(s64 result)
{
    return BS_UNLIKELY((u64)result > -4096ull) ? bs_fail(result) : result;
}

#endif
