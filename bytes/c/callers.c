/* See callers.h. */
#include "callers.h"

#include "pub_tool_debuginfo.h"
#include "pub_tool_machine.h"
#include "pub_tool_stacktrace.h"

enum { SLOTS = 4096, MOST = SLOTS / 2 };

/* Places that were looked up, by their addresses. A place without a function has no name. */
static Caller *slots[SLOTS];
static UInt used;

/* Of the recorder: BS_RETURN_STUBS, BS_RETURN_DISTANCE */
#define STUBS 0x10000
#define DISTANCE 0x1000000

enum { FRAMES = 64 };

/* The first address to which the recorder lets redirected calls return. NULL without one. */
static Addr returns;

/* Valgrind's registers at the begin of a walk. Its headers for tools have only the walk from the
   present ones. */
typedef struct {
    ULong pc, sp, bp, other[8];
} WalkStart;
UInt VG_(get_StackTrace_wrk)(ThreadId tid, Addr *ips, UInt most, Addr *sps, Addr *fps,
                             const WalkStart *start, Addr highest);

void callers_returns(Addr first)
{
    returns = first;
}

/* The addresses of the running thread's frames. In the place of a caller there can be an address of
   the recorder, which has no room on the stack. Valgrind takes the end of a frame for the stack
   pointer of its caller, so it would miss all further callers by some bytes. The walk begins anew
   with the caller, whose address is at a known distance. */
static UInt walk(Addr ips[FRAMES])
{
    Addr sps[FRAMES], fps[FRAMES];
    ThreadId tid = VG_(get_running_tid)();
    UInt frames = VG_(get_StackTrace)(tid, ips, FRAMES, sps, fps, 0);
    for (UInt i = 1; returns && i < frames; i++) {
        /* Valgrind has the last byte of the call. */
        Addr to = ips[i] + 1;
        if (to - returns >= STUBS)
            continue;
        WalkStart start = {*(Addr *)(to + DISTANCE) - 1, sps[i], fps[i], {0}};
        frames = i + VG_(get_StackTrace_wrk)(tid, ips + i, FRAMES - i, sps + i, fps + i, &start,
                                             VG_(thread_get_stack_max)(tid));
    }
    return frames;
}

/* True for code that a write goes through in each program. */
static Bool is_of_runtime(DiEpoch epoch, Addr ip)
{
    static const HChar *const names[] = {"libc.so", "libc-", "ld-", "libpthread",
                                         "linux-backstory"};
    const HChar *path;
    if (!VG_(get_objname)(epoch, ip, &path))
        return True;
    const HChar *slash = VG_(strrchr)(path, '/');
    const HChar *base = slash ? slash + 1 : path;
    for (UInt i = 0; i < sizeof names / sizeof *names; i++)
        if (VG_(strncmp)(base, names[i], VG_(strlen)(names[i])) == 0)
            return True;
    return False;
}

static void look_up(Caller *caller, DiEpoch epoch, Addr ip)
{
    const HChar *text;
    caller->ip = ip;
    caller->epoch = epoch.n;
    if (is_of_runtime(epoch, ip) || !VG_(get_fnname)(epoch, ip, &text) ||
        VG_(strcmp)(text, "(below main)") == 0)
        return;
    caller->name = VG_(strdup)("callers.name", text);
    if (VG_(get_filename_linenum)(epoch, ip, &text, NULL, &caller->line))
        caller->file = VG_(strdup)("callers.file", text);
}

static void forget_all(void)
{
    for (UInt i = 0; i < SLOTS; i++) {
        Caller *caller = slots[i];
        slots[i] = NULL;
        if (!caller)
            continue;
        VG_(free)(caller->name);
        VG_(free)(caller->file);
        VG_(free)(caller);
    }
    used = 0;
}

static Caller *caller_at(DiEpoch epoch, Addr ip)
{
    UInt at = (UInt)(ip * 0x9e3779b97f4a7c15ull >> 32) % SLOTS;
    for (; slots[at]; at = (at + 1) % SLOTS)
        if (slots[at]->ip == ip && slots[at]->epoch == epoch.n)
            return slots[at];
    slots[at] = VG_(calloc)("callers.place", 1, sizeof(Caller));
    look_up(slots[at], epoch, ip);
    used++;
    return slots[at];
}

UInt callers(Caller *found[CALLERS_MAX])
{
    Addr ips[FRAMES];
    DiEpoch epoch = VG_(current_DiEpoch)();
    if (used + FRAMES > MOST)
        forget_all();
    UInt frames = walk(ips);
    UInt count = 0;
    for (UInt i = 0; i < frames && count < CALLERS_MAX; i++) {
        Caller *caller = caller_at(epoch, ips[i]);
        if (caller->name)
            found[count++] = caller;
    }
    return count;
}

void forget_callers(void)
{
    for (UInt i = 0; i < SLOTS; i++)
        if (slots[i])
            slots[i]->id = 0;
}
