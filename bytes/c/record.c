/* See record.h, and docs/formats/bytes.md for the format. */
#include "record.h"

#include "callers.h"
#include "implicit.h"
#include "implicit_labels.h"
#include "labels.h"
#include "shadow.h"

enum {
    TAG_IMAGE = 1,
    TAG_ENTITY,
    TAG_BLOCK,
    TAG_LIST,
    TAG_PAIR,
    TAG_WRITE,
    TAG_MOVE,
    TAG_POSSIBLE,
    TAG_COARSE,
    TAG_END,
    TAG_IMPLICIT,
    TAG_FUNCTION,
    TAG_CALLERS
};
enum { RUN_NONE, RUN_COPY, RUN_SET };

static UChar buffer[1 << 16];
static UInt buffered;
static Int output = -1;
static UInt number, parent;
static UInt *written_as; /* the number of each node in the output, 0: not written */
static UInt written_count;
static UInt reported_shift;
static UInt functions;               /* in the output */
static UInt active_ids[CALLERS_MAX]; /* the last ones in the output */
static UInt active_count;

UInt image_number(void)
{
    return number;
}

void record_flush(void)
{
    UInt done = 0;
    while (done < buffered) {
        Int n = VG_(write)(output, buffer + done, buffered - done);
        if (n <= 0)
            break; /* a full disk: the missing end of the file says so */
        done += n;
    }
    buffered = 0;
}

static void put_byte(UChar b)
{
    if (buffered == sizeof buffer)
        record_flush();
    buffer[buffered++] = b;
}

static void put(ULong v)
{
    for (; v >= 0x80; v >>= 7)
        put_byte((UChar)v | 0x80);
    put_byte((UChar)v);
}

static void put_string(const HChar *s)
{
    SizeT n = VG_(strlen)(s);
    put(n);
    for (SizeT i = 0; i < n; i++)
        put_byte(s[i]);
}

void record_start(Bool forked)
{
    HChar path[4200];
    if (forked) {
        VG_(close)(output);
        parent = number;
        buffered = 0;
        reported_shift = 0;
        forget_recorded();
        forget_callers();
        functions = active_count = 0;
        written_count = 0;
        VG_(do_syscall)
        (__NR_madvise, (UWord)written_as, NODES_MAX * sizeof(UInt), 4 /* DONTNEED */, 0, 0, 0, 0,
         0);
    } else {
        written_as = reserve(0, NODES_MAX * sizeof(UInt), "sets of bytes");
        parent = 0;
    }
    number = next_number() + 1;
    VG_(snprintf)(path, sizeof path, "%s/%u.bytes", settings.directory, number);
    SysRes fd = VG_(open)(path, VKI_O_WRONLY | VKI_O_CREAT | VKI_O_TRUNC, 0600);
    if (sr_isError(fd)) {
        VG_(message)(Vg_UserMsg, "cannot create %s\n", path);
        VG_(exit)(1);
    }
    output = VG_(safe_fd)(sr_Res(fd));
    for (const HChar *m = "BSBYTES1"; *m; m++)
        put_byte(*m);
    HChar name[4200];
    VG_(client_fname)(name, sizeof name, True);
    put_byte(TAG_IMAGE);
    put(VG_(getpid)());
    put(parent);
    put_string(name);
}

static void put_entity(Entity *e)
{
    if (e->recorded)
        return;
    e->recorded = True;
    put_byte(TAG_ENTITY);
    put(e->id);
    put(e->kind);
    put(e->device);
    put(e->inode);
    put(e->generation);
    put(e->size > 0 ? e->size : 0);
    put(e->modified);
    put(e->modified_ns);
    put_string(e->path);
}

void record_name(Entity *e)
{
    e->recorded = False;
    put_entity(e);
}

static void put_blocks(UInt low, UInt high)
{
    for (Block *b = block_of(low); b < blocks + block_count && b->first <= high; b++) {
        if (b->recorded)
            continue;
        b->recorded = True;
        put_entity(b->entity);
        put_byte(TAG_BLOCK);
        put(b->first);
        put(b->count);
        put(b->shift);
        put(b->entity->id);
        put(b->offset);
        put(b->tick);
    }
}

static UInt number_of(UInt set)
{
    return set < NODE_BASE ? set : written_as[set - NODE_BASE];
}

static Bool is_written(UInt set)
{
    return set == 0 || number_of(set) != 0;
}

void forget_node(UInt set)
{
    if (written_as[set - NODE_BASE])
        written_as[set - NODE_BASE] = 0;
}

static void put_node(UInt set)
{
    Node *n = &nodes[set - NODE_BASE];
    UInt number = written_as[set - NODE_BASE] = NODE_BASE + written_count++;
    if (n->low) {
        put_blocks(n->low, n->high);
        put_byte(TAG_LIST);
        put(number);
        put(n->low);
        put(n->high - n->low);
    } else {
        put_byte(TAG_PAIR);
        put(number);
        put(number_of(n->second));
    }
    put(number_of(n->rest));
}

/* Writes the nodes of a set before the first reference to it: those that it refers to first. */
static void put_set(UInt set)
{
    if (set < NODE_BASE) {
        if (set)
            put_blocks(set, set);
        return;
    }
    if (is_written(set))
        return;
    UInt capacity = 1024, used = 0;
    UInt *stack = VG_(malloc)("record.stack", capacity * sizeof(UInt));
    stack[used++] = set;
    while (used) {
        UInt top = stack[used - 1];
        Node *n = &nodes[top - NODE_BASE];
        UInt first = is_written(n->rest) ? is_written(n->second) ? 0 : n->second : n->rest;
        if (is_written(top) || first == 0) {
            if (!is_written(top)) {
                if (n->rest && n->rest < NODE_BASE)
                    put_blocks(n->rest, n->rest);
                if (n->second && n->second < NODE_BASE)
                    put_blocks(n->second, n->second);
                put_node(top);
            }
            used--;
            continue;
        }
        if (used == capacity) {
            capacity *= 2;
            stack = VG_(realloc)("record.stack", stack, capacity * sizeof(UInt));
        }
        stack[used++] = first;
    }
    VG_(free)(stack);
}

static Label label_at(Addr a)
{
    return shadow[a & ADDRESS_MASK];
}

/* The length of the run of equal kind at `a`. */
static ULong run_length(Addr a, ULong n, UInt *kind)
{
    Label label = label_at(a);
    ULong i = 1;
    if (label == 0) {
        *kind = RUN_NONE;
        while (i < n && label_at(a + i) == 0)
            i++;
        return i;
    }
    while (label < NODE_BASE && i < n && label_at(a + i) == label + i)
        i++;
    *kind = RUN_COPY;
    if (i > 1 || (label < NODE_BASE && (n == 1 || label_at(a + 1) != label)))
        return i;
    *kind = RUN_SET;
    while (i < n && label_at(a + i) == label)
        i++;
    return i;
}

static void put_coarse(void)
{
    if (coarse_shift == reported_shift)
        return;
    reported_shift = coarse_shift;
    put_byte(TAG_COARSE);
    put(coarse_shift);
}

/* The set that decided about a byte, and about the call that writes it. */
static UInt decided_at(Addr a, UInt all)
{
    return implicit_union(implicit_label(a), all);
}

/* Writes what decided about the bytes of the WRITE before, if anything did. */
static void put_implicit_runs(Addr a, ULong n)
{
    UInt all = deciding(running);
    ULong runs = 0, i = 0, end;
    Bool any = False;
    for (; i < n; runs++, i = end) {
        UInt set = decided_at(a + i, all);
        any |= set != 0;
        put_set(set);
        for (end = i + 1; end < n && decided_at(a + end, all) == set;)
            end++;
    }
    if (!any)
        return;
    put_byte(TAG_IMPLICIT);
    put(runs);
    for (i = 0; i < n; i = end) {
        UInt set = decided_at(a + i, all);
        for (end = i + 1; end < n && decided_at(a + end, all) == set;)
            end++;
        put(end - i);
        put(number_of(set));
    }
}

void record_callers(Bool known)
{
    Caller *active[CALLERS_MAX];
    UInt count = known ? callers(active) : 0;
    Bool same = count == active_count;
    for (UInt i = 0; i < count; i++) {
        Caller *caller = active[i];
        if (!caller->id) {
            caller->id = ++functions;
            put_byte(TAG_FUNCTION);
            put(caller->id);
            put(caller->line);
            put_string(caller->name);
            put_string(caller->file ? caller->file : "");
        }
        same &= active_ids[i] == caller->id;
        active_ids[i] = caller->id;
    }
    if (same)
        return;
    active_count = count;
    put_byte(TAG_CALLERS);
    put(count);
    for (UInt i = 0; i < count; i++)
        put(active_ids[i]);
}

void record_write(Entity *e, ULong offset, Addr a, ULong n, ULong tick)
{
    ULong runs = 0;
    UInt kind;
    put_coarse();
    put_entity(e);
    for (ULong i = 0; i < n; runs++) {
        put_set(SET_OF(label_at(a + i)));
        ULong length = run_length(a + i, n - i, &kind);
        if (kind == RUN_COPY)
            put_blocks(label_at(a + i), label_at(a + i) + length - 1);
        i += length;
    }
    put_byte(TAG_WRITE);
    put(e->id);
    put(offset);
    put(n);
    put(tick);
    put(runs);
    for (ULong i = 0; i < n;) {
        ULong length = run_length(a + i, n - i, &kind);
        Label label = label_at(a + i);
        put(length << 3 | (label & COMPUTED ? 4 : 0) | kind);
        if (kind != RUN_NONE)
            put(number_of(SET_OF(label)));
        i += length;
    }
    if (settings.implicit)
        put_implicit_runs(a, n);
}

void record_mapped(Entity *e, ULong offset, Addr a, ULong n)
{
    ULong start = 0, tick = next_tick();
    record_callers(False);
    for (ULong i = 0; i <= n; i++) {
        Label label = i < n ? label_at(a + i) : 0;
        Bool own = i == n;
        if (!own && label && label < NODE_BASE) {
            Block *b = block_of(label);
            own = b->entity == e && b->offset + ((ULong)(label - b->first) << b->shift) ==
                                        (offset + i) >> b->shift << b->shift;
        }
        if (!own)
            continue;
        if (i > start)
            record_write(e, offset + start, a + start, i - start, tick);
        start = i + 1;
    }
}

void record_move(Entity *from, ULong from_offset, Entity *to, ULong to_offset, ULong n, ULong tick)
{
    put_entity(from);
    put_entity(to);
    put_byte(TAG_MOVE);
    put(from->id);
    put(from_offset);
    put(to->id);
    put(to_offset);
    put(n);
    put(tick);
}

void record_possible(const HChar *reason)
{
    static HChar last[128];
    if (VG_(strncmp)(last, reason, sizeof last - 1) == 0)
        return;
    VG_(strncpy)(last, reason, sizeof last - 1);
    put_byte(TAG_POSSIBLE);
    put(next_tick());
    put_string(reason);
}

void record_end(void)
{
    put_coarse();
    put_byte(TAG_END);
    put(next_tick());
    record_flush();
}
