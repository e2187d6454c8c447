/* See labels.h. */
#include "labels.h"

#define MERGE_LIMIT 64
#define NODES_MAX 0x20000000u

Node *nodes;
UInt node_count;
UInt coarse_shift;
Union union_memory[UNION_MEMORY];

static UInt next_leaf = 1;
static UInt *table; /* open addressing: ids of nodes, 0 is free */
static UInt table_size;

void labels_start(void)
{
    nodes = reserve(0, (ULong)NODES_MAX * sizeof(Node), "sets of bytes");
    table_size = 1u << 16;
    table = VG_(calloc)("labels.table", table_size, sizeof(UInt));
}

UInt leaf_count(void)
{
    return next_leaf - 1;
}

UInt new_leaves(UInt count)
{
    if (count > LEAF_MAX - next_leaf) {
        coarse_shift = 63;
        return 0;
    }
    UInt first = next_leaf;
    next_leaf += count;
    return first;
}

static UInt hash_of(UInt a, UInt b, UInt c, UInt d)
{
    ULong h = a * 0x9e3779b97f4a7c15ULL ^ (b + 0x7f4a7c15ULL) * 0xbf58476d1ce4e5b9ULL;
    h ^= (c + 0x1ce4e5b9ULL) * 0x94d049bb133111ebULL ^ d * 0xd6e8feb86659fd93ULL;
    return (UInt)(h >> 32) ^ (UInt)h;
}

static void grow_table(void)
{
    VG_(free)(table);
    table_size *= 2;
    table = VG_(calloc)("labels.table", table_size, sizeof(UInt));
    for (UInt i = 0; i < node_count; i++) {
        Node *n = &nodes[i];
        UInt at = hash_of(n->low, n->high, n->rest, n->second) & (table_size - 1);
        while (table[at])
            at = (at + 1) & (table_size - 1);
        table[at] = NODE_BASE + i;
    }
}

static UInt intern(Node want)
{
    UInt at = hash_of(want.low, want.high, want.rest, want.second) & (table_size - 1);
    for (; table[at]; at = (at + 1) & (table_size - 1)) {
        Node *n = &nodes[table[at] - NODE_BASE];
        if (n->low == want.low && n->high == want.high && n->rest == want.rest &&
            n->second == want.second)
            return table[at];
    }
    tl_assert2(node_count < NODES_MAX, "sets of bytes: more than %u", NODES_MAX);
    nodes[node_count] = want;
    table[at] = NODE_BASE + node_count++;
    UInt id = table[at];
    if (node_count > table_size / 2)
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
    if (node_count < settings.node_limit)
        return coarse_shift != 0;
    if (node_count > 2 * settings.node_limit)
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

Label unite_run(const Label *labels, UInt count)
{
    Label all = 0, last = 0;
    for (UInt i = 0; i < count; i++) {
        if (labels[i] == 0 || labels[i] == last)
            continue;
        last = labels[i];
        /* Neighbouring input bytes are one range. */
        UInt first = SET_OF(last), end = i + 1;
        while (end < count && SET_OF(labels[end]) == first + (end - i) &&
               first + (end - i) < NODE_BASE)
            end++;
        if (end - i > 1 && first < NODE_BASE) {
            all = unite(all, range_set(first, first + (end - i) - 1));
            i = end - 1;
            last = labels[i];
        } else {
            all = unite(all, last);
        }
    }
    return all ? all | COMPUTED : 0;
}
