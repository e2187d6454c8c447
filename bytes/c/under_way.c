/* See under_way.h. */
#include "under_way.h"

#include "callers.h"
#include "shared.h"

#define THREADS 512

/* Of the recording's own requests: BS_MAGIC_WHICH and BS_MAGIC_SIMULATOR. */
#define WHICH 0x62736d67
#define SIMULATOR 10
/* BS_RECORDS_IN_SIMULATOR, BS_READABLE_IN_SIMULATOR, BS_RETURNS_IN_SIMULATOR */
#define RECORDS 0x42530001
#define READABLE 0x42530002
#define RETURNS 0x42530003

/* The arguments as the program gave them: Valgrind replaces some. The reader is
   crates/abi/src/simulator_calls.rs. */
typedef struct {
    ULong is_active, number, args[6];
    ULong is_gated; /* it was made by the recorder's gate */
    ULong thread;   /* as the kernel names it */
} ProgramCall;

static struct {
    ULong used; /* entries */
    ProgramCall calls[THREADS];
    ULong image; /* a number of the program that no other one of the run has, apart from forks */
} under_way;

static Addr gate; /* behind the instruction of the recorder's gate */

static Bool is_observed(void)
{
    return settings.asks || settings.recorded;
}

void under_way_start(void)
{
    under_way.image = next_tick();
    if (settings.asks)
        VG_(do_syscall)(ASK, 0, STARTED, (UWord)&under_way, 0, 0, 0, 0, 0);
    else if (settings.recorded)
        VG_(do_syscall)(__NR_getpriority, WHICH, SIMULATOR, (UWord)&under_way, 0, 0, 0, 0, 0);
}

void program_calls(ThreadId tid, UInt call, const UWord *args)
{
    if (!is_observed() || tid >= THREADS)
        return;
    ProgramCall *one = &under_way.calls[tid];
    one->number = call;
    for (UInt i = 0; i < 6; i++)
        one->args[i] = args[i];
    one->is_gated = gate && VG_(get_IP)(tid) == gate;
    one->thread = VG_(gettid)();
    one->is_active = 1;
    if (tid >= under_way.used)
        under_way.used = tid + 1;
}

void program_called(ThreadId tid)
{
    if (is_observed() && tid < THREADS)
        under_way.calls[tid].is_active = 0;
}

void under_way_in_child(ThreadId tid)
{
    for (UInt i = 0; i < under_way.used; i++)
        if (i != tid)
            under_way.calls[i].is_active = 0;
}

Bool take_request(ThreadId tid, UWord *words, UWord *answer)
{
    const NSegment *there;
    switch (words[0]) {
    case RECORDS:
        gate = words[1];
        *answer = settings.recorded;
        return True;
    case READABLE:
        there = VG_(am_find_nsegment)(words[1]);
        *answer = there && there->hasR;
        return True;
    case RETURNS:
        callers_returns(words[1]);
        *answer = 1;
        return True;
    default: return False;
    }
}
