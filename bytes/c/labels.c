/* See labels.h. */
#include "labels.h"

#include "record.h"

#define MERGE_LIMIT 64
#define TABLE_SIZE (1u << 17) /* entries, at first */

Node *nodes;
UInt node_count, used_nodes;
UInt coarse_shift;
Union union_memory[UNION_MEMORY];

/* A node by its hash, so that only equal hashes lead to the node itself. id 0: free. */
typedef struct {
    UInt id, hash;
} Entry;

static UInt next_leaf = 1;
static Bool leaves_exhausted;
static UInt free_node; /* id of the first free node; each has the next one as its rest */
static Entry *table;   /* open addressing */
static UInt table_size, largest_table;

ULong set_memory(void)
{
    return node_count * sizeof(Node) + largest_table * sizeof(Entry) + sizeof union_memory;
}

UInt leaf_count(void)
{
    return next_leaf - 1;
}

UInt new_leaves(UInt count)
{
    if (count > LEAF_MAX - next_leaf) {
        leaves_exhausted = True;
        coarse_shift = 63;
        return 0;
    }
    UInt first = next_leaf;
    next_leaf += count;
    return first;
}

/* Sets that differ by the next byte stand in one line of the table. They are made one after the
   other. */
static UInt hash_of(UInt a, UInt b, UInt c, UInt d)
{
    ULong h = (a >> 3) * 0x9e3779b97f4a7c15ULL ^ ((b >> 3) + 0x7f4a7c15ULL) * 0xbf58476d1ce4e5b9ULL;
    h ^= ((c >> 3) + 0x1ce4e5b9ULL) * 0x94d049bb133111ebULL ^ (d >> 3) * 0xd6e8feb86659fd93ULL;
    return (((UInt)(h >> 32) ^ (UInt)h) & ~7u) | ((a + b + c + d) & 7);
}

static void put_entry(Entry entry)
{
    UInt at = entry.hash & (table_size - 1);
    while (table[at].id)
        at = (at + 1) & (table_size - 1);
    table[at] = entry;
}

static void new_table(UInt size)
{
    table_size = size;
    largest_table = VG_MAX(largest_table, size);
    table = VG_(calloc)("labels.table", size, sizeof(Entry));
}

static void grow_table(void)
{
    Entry *old = table;
    UInt old_size = table_size;
    new_table(2 * old_size);
    for (UInt i = 0; i < old_size; i++) {
        if (old[i].id)
            put_entry(old[i]);
    }
    VG_(free)(old);
}

void keep_nodes(const UChar *marked)
{
    Entry *old = table;
    UInt old_size = table_size, size = TABLE_SIZE;
    used_nodes = free_node = 0;
    /* The lowest free node is the first, so that sets made together stand together. */
    for (UInt i = node_count; i-- > 0;) {
        if (marked[i / 8] >> i % 8 & 1) {
            used_nodes++;
            continue;
        }
        forget_node(NODE_BASE + i);
        nodes[i] = (Node){.rest = free_node};
        free_node = NODE_BASE + i;
    }
    while (size < 4 * used_nodes)
        size *= 2;
    new_table(size);
    for (UInt i = 0; i < old_size; i++) {
        UInt index = old[i].id - NODE_BASE;
        if (old[i].id && marked[index / 8] >> index % 8 & 1)
            put_entry(old[i]);
    }
    VG_(free)(old);
    VG_(memset)(union_memory, 0, sizeof union_memory);
    if (!leaves_exhausted && used_nodes < settings.node_limit / 2)
        coarse_shift = 0;
}

void labels_start(void)
{
    nodes = reserve(0, (ULong)NODES_MAX * sizeof(Node), "sets of bytes");
    new_table(TABLE_SIZE);
}

static UInt new_node(void)
{
    UInt id = free_node;
    used_nodes++;
    if (id) {
        free_node = nodes[id - NODE_BASE].rest;
        return id;
    }
    tl_assert2(node_count < NODES_MAX, "sets of bytes: more than %u", NODES_MAX);
    return NODE_BASE + node_count++;
}

static UInt intern(Node want)
{
    UInt hash = hash_of(want.low, want.high, want.rest, want.second);
    UInt at = hash & (table_size - 1);
    for (; table[at].id; at = (at + 1) & (table_size - 1)) {
        if (table[at].hash != hash)
            continue;
        Node *n = &nodes[table[at].id - NODE_BASE];
        if (n->low == want.low && n->high == want.high && n->rest == want.rest &&
            n->second == want.second)
            return table[at].id;
    }
    UInt id = new_node();
    nodes[id - NODE_BASE] = want;
    table[at] = (Entry){id, hash};
    if (used_nodes > table_size / 2)
        grow_table();
    return id;
}

static UInt lowest_of(UInt set)
{
    return set < NODE_BASE ? set : nodes[set - NODE_BASE].lowest;
}

static UInt highest_of(UInt set)
{
    return set < NODE_BASE ? set : nodes[set - NODE_BASE].high;
}

static Bool is_pair(UInt set)
{
    return set >= NODE_BASE && nodes[set - NODE_BASE].low == 0;
}

static UInt prepend(UInt low, UInt high, UInt rest)
{
    if (low == high && rest == 0)
        return low;
    return intern((Node){low, high, rest, 0, rest ? lowest_of(rest) : low});
}

UInt range_set(UInt low, UInt high)
{
    return prepend(low, high, 0);
}

/* Takes the highest range off a list. */
static void take(UInt *set, UInt *low, UInt *high)
{
    if (*set < NODE_BASE) {
        *low = *high = *set;
        *set = 0;
    } else {
        Node *n = &nodes[*set - NODE_BASE];
        *low = n->low;
        *high = n->high;
        *set = n->rest;
    }
}

static UInt pair_of(UInt a, UInt b)
{
    for (int i = 0; i < 2; i++) {
        UInt x = i ? b : a, y = i ? a : b;
        if (is_pair(x) && (nodes[x - NODE_BASE].rest == y || nodes[x - NODE_BASE].second == y))
            return x;
    }
    UInt low = lowest_of(a) < lowest_of(b) ? lowest_of(a) : lowest_of(b);
    UInt high = highest_of(a) > highest_of(b) ? highest_of(a) : highest_of(b);
    return intern((Node){0, high, a > b ? a : b, a > b ? b : a, low});
}

/* One range around both sets. Its ends are widened, so that few ranges exist. */
static UInt cover(UInt a, UInt b)
{
    if (coarse_shift == 63)
        return range_set(1, leaf_count() ? leaf_count() : 1);
    UInt low = lowest_of(a) < lowest_of(b) ? lowest_of(a) : lowest_of(b);
    UInt high = highest_of(a) > highest_of(b) ? highest_of(a) : highest_of(b);
    UInt mask = (1u << coarse_shift) - 1;
    low &= ~mask;
    high |= mask;
    return range_set(low ? low : 1, high > leaf_count() ? leaf_count() : high);
}

static Bool too_many(void)
{
    if (used_nodes < settings.node_limit)
        return coarse_shift != 0;
    if (used_nodes > 2 * settings.node_limit)
        coarse_shift = 63;
    else if (coarse_shift < 12)
        coarse_shift = 12;
    return True;
}

UInt merge_sets(UInt a, UInt b)
{
    if (too_many())
        return cover(a, b);
    if (is_pair(a) || is_pair(b))
        return pair_of(a, b);
    UInt lows[MERGE_LIMIT], highs[MERGE_LIMIT], count = 0, x = a, y = b;
    while (x && y && x != y) {
        UInt low, high;
        if (is_pair(x) || is_pair(y) || count == MERGE_LIMIT)
            return pair_of(a, b);
        take(highest_of(x) >= highest_of(y) ? &x : &y, &low, &high);
        if (count && high + 1 >= lows[count - 1]) {
            if (low < lows[count - 1])
                lows[count - 1] = low;
        } else {
            lows[count] = low;
            highs[count++] = high;
        }
    }
    UInt rest = x ? x : y;
    while (rest && !is_pair(rest) && highest_of(rest) + 1 >= lows[count - 1]) {
        UInt low, high;
        take(&rest, &low, &high);
        if (low < lows[count - 1])
            lows[count - 1] = low;
    }
    if (rest && is_pair(rest))
        return pair_of(a, b);
    while (count--)
        rest = prepend(lows[count], highs[count], rest);
    return rest;
}
