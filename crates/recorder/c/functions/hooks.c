/*
 * Logs the calls of functions: `gcc -finstrument-functions` and XRay lead here, and so does the
 * module of the Python package.
 *
 * A thread appends its calls and returns to a CALLS record, its batch, at the end of its chunk. Any
 * other record of the thread ends the batch. So the log has calls and operations of a thread in
 * their order. A call needs 12 bytes: a word and a number when it begins, a word when it ends. A
 * call that returns with nothing in between needs 8: its first word then says that.
 *
 * Invariants:
 *
 * - One unlocked xadd claims the words, so a signal handler that makes calls gets other words.
 * - The word that says what an entry is, is written last. A reader stops at a word of zero.
 * - Each return belongs to a call. Frames that a longjmp or an exception left are closed by it
 *   (jumps.c), or at the thread's next call or return further up the stack.
 */
#include "functions.h"

enum { FRAMES = 256, LEAST_ROOM = 16, MOST_ROOM = 1024 /* words */, NONE = ~0u };
enum { STACK_POINTER = 7 }; /* by DWARF's number */

struct frame {
    u64 stack, site;
    u32 number;
};

struct calls {
    u32 *words; /* of the batch; null without one */
    u32 used, room;
    u32 last;    /* the word of a call, if it is the last entry; else NONE */
    u32 changes; /* bs_me.changes when the batch began */
    u64 end;     /* offset in the chunk behind the batch */
    u64 began;
    u32 depth;  /* frames in use */
    u32 beyond; /* open calls that found no free frame; they are logged as if they had returned */
    struct frame frames[FRAMES];
};
static __thread struct calls calls __attribute__((tls_model("initial-exec")));

/* registers.S and sled.S call these. */
void bs_hook_entered(u64 function, u64 site);
void bs_hook_left(u64 function, u64 site);
void bs_hook_entered_with(u64 function, u64 site, const struct bs_registers *registers, u64 pc);
void bs_hook_left_with(u64 function, u64 site, const struct bs_registers *registers, u64 pc);
void bs_sled_entered_with(u32 number, u64 stack, u64 site, const struct bs_registers *registers);
void bs_sled_left_with(u32 number, u64 stack, const struct bs_registers *registers);

/* The frame of a function that is not on the thread's stack: it ends by its return alone. */
static const u64 ELSEWHERE = ~0ull;

/* True if the thread has a batch, and no other record follows it. */
static inline bool is_last(const struct calls *c)
{
    const struct bs_thread *me = &bs_me;
    return c->words && me->changes == c->changes && me->generation == bs_process->generation &&
           ((const struct bs_chunk *)me->chunk)->next == c->end;
}

/* Begins a batch. Returns its first `words` words, or null if nothing can be logged. */
static BS_COLD u32 *begin_batch(struct calls *c, u32 words)
{
    u32 room = LEAST_ROOM;
    if (is_last(c)) {
        /* The batch is full. The next one is larger, but leaves no gap at the chunk's end. */
        u64 left = BS_CHUNK_SIZE - c->end;
        room = c->room < MOST_ROOM ? c->room * 2 : MOST_ROOM;
        if (left >= sizeof(struct bs_record) + LEAST_ROOM * sizeof(u32) &&
            left < sizeof(struct bs_record) + room * sizeof(u32))
            room = (u32)(left - sizeof(struct bs_record)) / sizeof(u32);
    }
    struct bs_reservation rec = bs_begin_room(BS_OP_CALLS, 0, 0, 0, room * sizeof(u32));
    if (!rec.record) {
        c->words = 0;
        return 0;
    }
    c->words = 0; /* a signal handler in between begins a batch of its own */
    c->room = room;
    c->used = words;
    c->last = NONE;
    c->began = rec.record->time;
    c->changes = (u32)rec.changes;
    c->end = (u64)((u8 *)rec.record + rec.record->size - bs_me.chunk);
    u32 *first = (u32 *)(rec.record + 1);
    bs_end(rec, 0);
    __atomic_store_n(&c->words, first, __ATOMIC_RELEASE);
    return first;
}

static inline u32 *claim(struct calls *c, u64 now, u32 words)
{
    if (BS_LIKELY(is_last(c) && now - c->began < 1ull << 36)) {
        u32 at = words;
        __asm__ volatile("xaddl %0, %1" : "+r"(at), "+m"(c->used)::"memory", "cc");
        if (BS_LIKELY(at + words <= c->room))
            return c->words + at;
    }
    return begin_batch(c, words);
}

/* An entry's first word: what it is, and the time since the batch began in units of 64. */
static inline u32 entry(u32 kind, const struct calls *c, u64 now)
{
    return kind | (now > c->began ? (u32)((now - c->began) >> 6) & BS_CALLS_TIME : 0);
}

static inline void put_return(struct calls *c)
{
    bs_me.steps++;
    if (BS_LIKELY(c->last != NONE && c->last + 2 == c->used && is_last(c))) {
        c->words[c->last] |= BS_CALLS_RETURN;
        c->last = NONE;
        return;
    }
    u64 now = bs_now();
    u32 *words = claim(c, now, 1);
    if (BS_LIKELY(words))
        __atomic_store_n(words, entry(BS_CALLS_RETURN, c, now), __ATOMIC_RELEASE);
}

static inline void put_call(struct calls *c, u32 number, bool returned)
{
    u32 kind = returned ? BS_CALLS_CALL | BS_CALLS_RETURN : BS_CALLS_CALL;
    bs_me.steps += !returned;
    u64 now = bs_now();
    u32 *words = claim(c, now, 2);
    if (BS_LIKELY(words)) {
        words[1] = number;
        __atomic_store_n(words, entry(kind, c, now), __ATOMIC_RELEASE);
        c->last = returned ? NONE : (u32)(words - c->words);
    }
}

/*
 * True if the function of a frame can't have returned normally when another function is called at
 * `stack`, to return to `site`. Inlined functions have the frame and the site of their caller.
 */
static inline bool has_vanished(const struct frame *frame, u32 number, u64 stack, u64 site)
{
    if (frame->stack == ELSEWHERE)
        return false;
    return frame->stack < stack ||
           (frame->stack == stack && (frame->site != site || frame->number == number));
}

void bs_function_called(u32 number, u64 stack, u64 site)
{
    struct calls *c = &calls;
    if (BS_UNLIKELY(bs_me.borrowed)) /* a child that will execute another program */
        return;
    while (BS_UNLIKELY(c->depth && has_vanished(&c->frames[c->depth - 1], number, stack, site))) {
        c->depth--;
        c->beyond = 0;
        put_return(c);
    }
    if (BS_UNLIKELY(c->depth == FRAMES)) {
        /* It is counted, and its operations belong to the function around it. */
        c->beyond++;
        put_call(c, number, true);
        return;
    }
    u32 at = c->depth++;
    c->frames[at] = (struct frame){stack, site, number};
    put_call(c, number, false);
}

/* True if the function of a stack pointer was too deep for a frame, and was only counted. */
static inline bool is_beyond(const struct calls *c, u64 stack)
{
    return c->beyond && stack < c->frames[c->depth - 1].stack;
}

static inline bool returns_beyond(struct calls *c, u64 stack)
{
    if (BS_LIKELY(!is_beyond(c, stack)))
        return false;
    c->beyond--;
    return true;
}

void bs_function_returned(u32 number, u64 stack)
{
    struct calls *c = &calls;
    if (BS_UNLIKELY(bs_me.borrowed || returns_beyond(c, stack)))
        return;
    u32 at = c->depth;
    while (at && c->frames[at - 1].number != number)
        at--;
    if (BS_UNLIKELY(!at)) /* it was called before anything was recorded */
        return;
    c->beyond = 0;
    while (c->depth >= at) {
        c->depth--;
        put_return(c);
    }
}

void bs_functions_left(u64 stack)
{
    struct calls *c = &calls;
    if (bs_me.borrowed)
        return;
    while (c->depth && c->frames[c->depth - 1].stack < stack) {
        c->depth--;
        c->beyond = 0;
        put_return(c);
    }
}

/* A function that the redirected one jumped to has the same stack. It ends, too. */
void bs_redirected_function_returned(u64 stack)
{
    if (!bs_me.borrowed && !returns_beyond(&calls, stack))
        bs_functions_left(stack + 1);
}

/* ---- the hooks ------------------------------------------------------------------------------- */

/*
 * registers.S has the entry points of gcc's hooks: if arguments are recorded, these need all
 * registers. libc has functions of their names, which do nothing.
 */
u8 bs_values_wanted;

/* The values of a call that was only counted would be those of the function around it. */
void bs_log_called(u32 number, const struct bs_registers *registers, u64 pc)
{
    if (!calls.beyond)
        bs_log_arguments(number, registers, pc);
}

void bs_log_returned(u32 number, u64 stack, const struct bs_registers *registers, u64 pc)
{
    if (!is_beyond(&calls, stack))
        bs_log_result(number, registers, pc);
}

void bs_hook_entered(u64 function, u64 site)
{
    u32 number = bs_function_number(function);
    if (BS_UNLIKELY(number))
        bs_function_called(number, (u64)__builtin_dwarf_cfa(), site);
}

void bs_hook_left(u64 function, u64 site)
{
    (void)site;
    u32 number = bs_function_number(function);
    if (BS_UNLIKELY(number))
        bs_function_returned(number, (u64)__builtin_dwarf_cfa());
}

void bs_hook_entered_with(u64 function, u64 site, const struct bs_registers *registers, u64 pc)
{
    u32 number = bs_function_number(function);
    if (!number)
        return;
    bs_function_called(number, registers->general[STACK_POINTER], site);
    bs_log_called(number, registers, pc);
}

void bs_hook_left_with(u64 function, u64 site, const struct bs_registers *registers, u64 pc)
{
    (void)site;
    u32 number = bs_function_number(function);
    if (!number)
        return;
    bs_log_returned(number, registers->general[STACK_POINTER], registers, pc);
    bs_function_returned(number, registers->general[STACK_POINTER]);
}

void bs_sled_entered_with(u32 number, u64 stack, u64 site, const struct bs_registers *registers)
{
    bs_function_called(number, stack, site);
    bs_log_called(number, registers, 0);
}

void bs_sled_left_with(u32 number, u64 stack, const struct bs_registers *registers)
{
    bs_log_returned(number, stack, registers, 0);
    bs_function_returned(number, stack);
}

/* A function of an interpreter: its number has the highest bit. Returns 1 if calls are recorded. */
int backstory_function(u32 number, const char *name, const char *where)
{
    if (!(number & BS_FUNCTION_INTERPRETED))
        return 0;
    struct bs_reservation rec =
        bs_begin_paths(BS_OP_FUNCTION, (s32)number, 0, 0, name, where ? where : "");
    bs_end(rec, 0);
    return rec.record != 0;
}

void backstory_call(u32 number)
{
    bs_function_called(number, ELSEWHERE, 0);
}

void backstory_return(u32 number)
{
    bs_function_returned(number, ELSEWHERE);
}
