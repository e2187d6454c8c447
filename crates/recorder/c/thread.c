/* Records which thread made which, and gives chunks back when threads end. */
#include "bs.h"

typedef void *thread_function(void *);
int pthread_create(u64 *thread, const void *attributes, thread_function *function, void *argument);
int pthread_join(u64 thread, void **result);
int pthread_tryjoin_np(u64 thread, void **result);
int pthread_timedjoin_np(u64 thread, void **result, const void *until);
int pthread_clockjoin_np(u64 thread, void **result, int clock, const void *until);
int pthread_key_create(u32 *key, void (*destructor)(void *));
int pthread_setspecific(u32 key, const void *value);
u64 pthread_self(void);
void *malloc(size_t n);
void free(void *p);
typedef int thread_function_c11(void *);
int thrd_create(u64 *thread, thread_function_c11 *function, void *argument);
int thrd_join(u64 thread, int *result);

static u32 key;
static u32 key_state; /* 0 not made, 1 being made, 2 made */

/* The function that a new thread will run, with its argument. */
struct beginning {
    union {
        thread_function *posix;
        thread_function_c11 *c11;
    } function;
    void *argument;
};

/*
 * Beginnings of threads that are made and do not run yet. They use no memory of the program.
 * Otherwise its later allocations would have other addresses than without the recorder.
 *
 * Invariant: a place is written by its owner only, from the exchange that took it to the store that
 * frees it. After a fork, places of the parent's other threads stay taken.
 */
enum { PLACES = 8 };
static struct beginning places[PLACES];
static bool is_taken[PLACES];

/* Returns a free place, or memory of the program if all are taken. */
static struct beginning *new_beginning(void)
{
    for (u32 i = 0; i < PLACES; i++)
        if (!__atomic_exchange_n(&is_taken[i], true, __ATOMIC_ACQUIRE))
            return &places[i];
    return BS_NEXT(malloc)(sizeof(struct beginning));
}

static void free_beginning(struct beginning *b)
{
    if (b >= places && b < places + PLACES)
        __atomic_store_n(&is_taken[b - places], false, __ATOMIC_RELEASE);
    else
        BS_NEXT(free)(b);
}

static void note(u32 what, u64 handle, u64 time, s64 result)
{
    bs_note(time, BS_OP_THREAD, (s32)(u32)handle, (s32)(u32)(handle >> 32), what, result);
}

/*
 * Gives the chunk back. It runs as one of the thread's destructors. Other destructors may still
 * log, so it waits for their last round.
 */
static void ends(void *rounds)
{
    if ((u64)rounds < 3)
        BS_NEXT(pthread_setspecific)(key, (void *)((u64)rounds + 1));
    else
        bs_thread_ends();
}

static void make_key(void)
{
    u32 none = 0;
    if (__atomic_compare_exchange_n(&key_state, &none, 1, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        __atomic_store_n(&key_state, BS_NEXT(pthread_key_create)(&key, ends) == 0 ? 2 : 0,
                         __ATOMIC_RELEASE);
}

static struct beginning take(void *memory)
{
    struct beginning b = *(struct beginning *)memory;
    free_beginning(memory);
    if (__atomic_load_n(&key_state, __ATOMIC_ACQUIRE) == 2)
        BS_NEXT(pthread_setspecific)(key, (void *)1);
    note(BS_THREAD_START, BS_NEXT(pthread_self)(), 0, 0);
    BS_DEEP_DO(bs_deep_thread_begins());
    return b;
}

static void *run(void *memory)
{
    struct beginning b = take(memory);
    return b.function.posix(b.argument);
}

static int run_c11(void *memory)
{
    struct beginning b = take(memory);
    return b.function.c11(b.argument);
}

/* Prepares for a second thread: this is the last moment with only one. */
static struct beginning *prepare(void)
{
    bs_redirect_internal();
    if (bs_modes & BS_MODE_SANDBOX || !bs_is_ready(BS_OP_THREAD))
        return 0;
    make_key();
    bs_threaded = true;
    return new_beginning();
}

/*
 * Completes the record of a new thread, whose handle is known only after the call. The thread's own
 * START record carries the handle, too.
 */
static void created(struct bs_reservation rec, u64 handle, s64 result)
{
    if (bs_open(rec)) {
        rec.record->fd = (s32)(u32)handle;
        rec.record->arg = (s32)(u32)(handle >> 32);
    }
    bs_end(rec, result);
}

BS_INTERCEPTED int pthread_create(u64 *thread, const void *attributes, thread_function *function,
                                  void *argument)
{
    struct beginning *b = prepare();
    bs_threaded = true;
    if (!b)
        return BS_NEXT(pthread_create)(thread, attributes, function, argument);
    b->function.posix = function;
    b->argument = argument;
    struct bs_reservation rec = bs_begin(BS_OP_THREAD, 0, 0, BS_THREAD_CREATE);
    int error = BS_NEXT(pthread_create)(thread, attributes, run, b);
    created(rec, error ? 0 : *thread, -error);
    if (error)
        free_beginning(b);
    return error;
}

BS_API int thrd_create(u64 *thread, thread_function_c11 *function, void *argument)
{
    struct beginning *b = prepare();
    bs_threaded = true;
    if (!b)
        return BS_NEXT(thrd_create)(thread, function, argument);
    b->function.c11 = function;
    b->argument = argument;
    struct bs_reservation rec = bs_begin(BS_OP_THREAD, 0, 0, BS_THREAD_CREATE);
    int error = BS_NEXT(thrd_create)(thread, run_c11, b);
    created(rec, error ? 0 : *thread, error ? -BS_ENOMEM : 0);
    if (error)
        free_beginning(b);
    return error;
}

/* ---- joining --------------------------------------------------------------------------------- */

static int joined(u64 thread, u64 time, int error)
{
    if (!error)
        note(BS_THREAD_JOIN, thread, time, 0);
    return error;
}

BS_INTERCEPTED int pthread_join(u64 thread, void **result)
{
    u64 time = bs_now();
    return joined(thread, time, BS_NEXT(pthread_join)(thread, result));
}

BS_INTERCEPTED int pthread_tryjoin_np(u64 thread, void **result)
{
    u64 time = bs_now();
    return joined(thread, time, BS_NEXT(pthread_tryjoin_np)(thread, result));
}

BS_INTERCEPTED int pthread_timedjoin_np(u64 thread, void **result, const void *until)
{
    u64 time = bs_now();
    return joined(thread, time, BS_NEXT(pthread_timedjoin_np)(thread, result, until));
}

BS_API int pthread_clockjoin_np(u64 thread, void **result, int clock, const void *until)
{
    u64 time = bs_now();
    return joined(thread, time, BS_NEXT(pthread_clockjoin_np)(thread, result, clock, until));
}

BS_API int thrd_join(u64 thread, int *result)
{
    u64 time = bs_now();
    return joined(thread, time, BS_NEXT(thrd_join)(thread, result));
}
