/* See windows.h. */
#include "implicit.h"

#define PATH 48 /* blocks of a way that are kept */
#define BUCKETS 4096
#define OFFSET(register) offsetof(VexGuestAMD64State, guest_##register)

typedef struct Branch {
    Addr address;
    Addr paths[2][PATH]; /* the first blocks behind each way */
    UInt used[2];
    Bool comes_back[2]; /* the way came to the branch again */
    Bool complete[2];   /* it met the other way, or came back */
    Bool leaves[2];     /* the way leaves a loop, so that it meets the other way at once */
    struct Branch *next;
} Branch;

static const UShort preserved[PRESERVED] = {OFFSET(RBX), OFFSET(RBP), OFFSET(R12),
                                            OFFSET(R13), OFFSET(R14), OFFSET(R15)};
static Branch *branches[BUCKETS];

static Branch *branch_at(Addr address)
{
    Branch **bucket = &branches[(address ^ address >> 12) & (BUCKETS - 1)];
    for (Branch *b = *bucket; b; b = b->next) {
        if (b->address == address)
            return b;
    }
    Branch *b = VG_(calloc)("branch", 1, sizeof *b);
    b->address = address;
    b->next = *bucket;
    return *bucket = b;
}

static ULong value_at(const Words *words, UInt offset)
{
    return *(const ULong *)((const UChar *)words - REGISTERS + offset);
}

/* Ends the windows from the number `from` on. */
static void end_windows(Thread *t, const Words *words, UInt from)
{
    Implicit *m = t->implicit;
    const Window *w = &m->windows[from];
    for (UInt i = 0; i < PRESERVED; i++) {
        if (value_at(words, preserved[i]) == w->values[i])
            VG_(memcpy)(&m->slots[preserved[i]], w->labels[i], sizeof w->labels[i]);
    }
    m->depth = from;
}

static Bool on_path(const Branch *branch, UInt way, Addr at)
{
    for (UInt i = 0; i < branch->used[way]; i++) {
        if (branch->paths[way][i] == at)
            return True;
    }
    return False;
}

/* Whether the window ends before the block at `at`. */
static Bool ends(Window *w, Addr at)
{
    Branch *b = w->branch;
    if (w->calls < 0)
        return True;
    if (w->left < 0) {
        b->leaves[w->way] |= b->comes_back[!w->way];
        return True;
    }
    if (w->calls > 0)
        return False;
    Bool known = on_path(b, w->way, at), met = at == w->other || on_path(b, !w->way, at);
    if (b->used[w->way] < PATH && !known)
        b->paths[w->way][b->used[w->way]++] = at;
    b->complete[w->way] |= met;
    /* A new block behind two known ways is mostly that behind a loop around both. */
    return met || (!known && b->complete[0] && b->complete[1]);
}

static void open_window(Thread *t, const Words *words, const Exit *exit, Addr at)
{
    Implicit *m = t->implicit;
    const Program *p = exit->program;
    Branch *b = branch_at(p->branch);
    const Exit *of = &p->exits[m->exit];
    UInt way = of == exit && exit != &p->exits[p->exit_count - 1];
    Addr other = way ? p->next : of->target;
    for (UInt i = 0; i < m->depth; i++) {
        Window *w = &m->windows[i];
        if (w->branch == b && w->calls == 0) {
            b->comes_back[w->way] = b->complete[w->way] = True;
            end_windows(t, words, i);
        }
    }
    UInt around = deciding(t), all = implicit_union(around, m->decided);
    if (all == around || m->depth == MOST_WINDOWS)
        return;
    /* Behind a loop, both ways have met. Whether a jump back is that of a loop is known later, so
       the window is short at first. */
    Bool behind = other && other <= b->address && at > b->address && !b->comes_back[way];
    Window *w = &m->windows[m->depth++];
    *w = (Window){.decided = m->decided,
                  .all = all,
                  .branch = b,
                  .way = way,
                  .other = other,
                  .left = behind || b->leaves[way] ? settings.window / 4 : settings.window};
    for (UInt i = 0; i < PRESERVED; i++) {
        w->values[i] = value_at(words, preserved[i]);
        VG_(memcpy)(w->labels[i], &m->slots[preserved[i]], sizeof w->labels[i]);
    }
}

void step_windows(Thread *t, Words *words, const Exit *exit)
{
    Implicit *m = t->implicit;
    Addr at = value_at(words, OFFSET(RIP));
    for (UInt i = 0; exit && i < m->depth; i++) {
        const Program *p = exit->program;
        m->windows[i].left -= p->instructions;
        if (exit == &p->exits[p->exit_count - 1])
            m->windows[i].calls += p->calls;
    }
    if (exit && m->decided)
        open_window(t, words, exit, at);
    m->decided = 0;
    for (UInt i = 0; i < m->depth; i++) {
        if (ends(&m->windows[i], at)) {
            end_windows(t, words, i);
            break;
        }
    }
    words->window = m->depth;
}
