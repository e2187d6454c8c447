/*
 * Records signals. The kernel gets a handler of the recorder. It records that the program's handler
 * begins and returns.
 *
 * Invariant: a program that asks for its handler gets its own. Flags, mask and the handler's
 * arguments are unchanged.
 */
#include "stream.h"

enum { SIGNALS = 65, SA_SIGINFO = 4, INFO_BYTES = 128 };

/* glibc's, and musl's, struct sigaction. */
struct action {
    void *handler;
    u64 mask[16];
    int flags;
    void *restorer;
};

typedef void plain_handler(int signal);
typedef void info_handler(int signal, void *info, void *context);

int sigaction(int signal, const struct action *new, struct action *old);
plain_handler *signal(int number, plain_handler *handler);
plain_handler *sysv_signal(int number, plain_handler *handler);
plain_handler *sigset(int number, plain_handler *handler);

/* The program's handlers. A handler in use is one of these two, below. */
static void *handlers[SIGNALS];

static bool is_handler(const void *handler)
{
    return (u64)handler > 2 && handler != (void *)-1ll; /* SIG_DFL, SIG_IGN, SIG_HOLD, SIG_ERR */
}

static void begins(int number, const void *info)
{
    struct bs_deep_thread *me = &bs_deep_me;
    if (!bs_deep_is_on())
        return;
    struct bs_part part = {
        .kind = BS_DEEP_ENTERED, .arg = 1, .size = info ? INFO_BYTES : 0, .at = info};
    struct bs_deep_record record = {
        .call = BS_DEEP_SIGNAL, .time = bs_now(), .fd = -1, .result = number};
    bs_deep_append(&record, &part, 1);
    me->handlers++;
}

static void ends(int number)
{
    struct bs_deep_thread *me = &bs_deep_me;
    if (!bs_deep_is_on())
        return;
    if (me->handlers)
        me->handlers--;
    bs_deep_fact(BS_DEEP_SIGNAL_END, -1, number, 0, 0);
}

static void plain(int number)
{
    plain_handler *handler = (plain_handler *)handlers[number];
    begins(number, 0);
    handler(number);
    ends(number);
}

static void with_info(int number, void *info, void *context)
{
    info_handler *handler = (info_handler *)handlers[number];
    begins(number, info);
    handler(number, info, context);
    ends(number);
}

/* The program's handler behind what the kernel has. */
static void *own(int number, void *handler, void *before)
{
    bool replaced = handler == (void *)plain || handler == (void *)with_info;
    return replaced && number > 0 && number < SIGNALS ? before : handler;
}

BS_INTERCEPTED int sigaction(int number, const struct action *new, struct action *old)
{
    if (number <= 0 || number >= SIGNALS)
        return BS_NEXT(sigaction)(number, new, old);
    void *before = handlers[number];
    struct action ours;
    const struct action *passed = new;
    if (new &&is_handler(new->handler)) {
        bs_copy(&ours, new, sizeof ours);
        ours.handler = new->flags &SA_SIGINFO ? (void *)with_info : (void *)plain;
        handlers[number] = new->handler;
        passed = &ours;
    }
    int result = BS_NEXT(sigaction)(number, passed, old);
    if (result < 0 && passed == &ours)
        handlers[number] = before;
    if (result == 0 && old)
        old->handler = own(number, old->handler, before);
    return result;
}
BS_ALIAS(__sigaction, sigaction);

/* The older forms differ in the flags that libc sets. */
static plain_handler *installed(plain_handler *(*by)(int, plain_handler *), int number,
                                plain_handler *handler)
{
    if (number <= 0 || number >= SIGNALS)
        return by(number, handler);
    void *before = handlers[number];
    bool replaces = is_handler((void *)handler);
    if (replaces)
        handlers[number] = (void *)handler;
    plain_handler *old = by(number, replaces ? plain : handler);
    if (old == (plain_handler *)-1ll && replaces)
        handlers[number] = before;
    return (plain_handler *)own(number, (void *)old, before);
}

BS_INTERCEPTED plain_handler *signal(int number, plain_handler *handler)
{
    return installed(BS_NEXT(signal), number, handler);
}
BS_ALIAS(bsd_signal, signal);
BS_ALIAS(ssignal, signal);

BS_API plain_handler *sysv_signal(int number, plain_handler *handler)
{
    return installed(BS_NEXT(sysv_signal), number, handler);
}
BS_ALIAS(__sysv_signal, sysv_signal);

BS_API plain_handler *sigset(int number, plain_handler *handler)
{
    return installed(BS_NEXT(sigset), number, handler);
}

/* ---- signals that are waited for ------------------------------------------------------------- */

int sigwaitinfo(const void *set, void *info);
int sigtimedwait(const void *set, void *info, const void *timeout);
int sigwait(const void *set, int *number);

static void waited(u64 time, s64 result, void *info)
{
    BS_DEEP_LOG(time, result, __NR_rt_sigtimedwait, -1, info);
}

BS_API int sigwaitinfo(const void *set, void *info)
{
    u64 time = bs_now();
    int result = BS_NEXT(sigwaitinfo)(set, info);
    waited(time, result < 0 ? bs_error() : result, info);
    return result;
}

BS_API int sigtimedwait(const void *set, void *info, const void *timeout)
{
    u64 time = bs_now();
    int result = BS_NEXT(sigtimedwait)(set, info, timeout);
    waited(time, result < 0 ? bs_error() : result, info);
    return result;
}

BS_API int sigwait(const void *set, int *number)
{
    u64 time = bs_now();
    int error = BS_NEXT(sigwait)(set, number);
    waited(time, error ? -error : *number, 0);
    return error;
}
