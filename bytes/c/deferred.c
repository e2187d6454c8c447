/* See deferred.h. */
#include "deferred.h"

Deferred deferred[DEFERRED];
UInt deferred_count = 1;

static Bool is_open(UInt set)
{
    return set >= DEFERRED_BASE && deferred[set - DEFERRED_BASE].result == 0;
}

static UInt known(UInt set)
{
    return set < DEFERRED_BASE ? set : deferred[set - DEFERRED_BASE].result;
}

UInt resolve_deferred(UInt set)
{
    static UInt stack[DEFERRED];
    UInt used = 0;
    if (deferred[set - DEFERRED_BASE].result)
        return deferred[set - DEFERRED_BASE].result;
    stack[used++] = set;
    while (used) {
        Deferred *d = &deferred[stack[used - 1] - DEFERRED_BASE];
        if (d->b & IS_RANGE)
            d->result = range_set(d->a, d->b & ~IS_RANGE);
        else if (is_open(d->a))
            stack[used++] = d->a;
        else if (is_open(d->b))
            stack[used++] = d->b;
        else
            d->result = unite_sets(known(d->a), known(d->b));
        if (d->result)
            used--;
    }
    return deferred[set - DEFERRED_BASE].result;
}

UInt merge_now(UInt a, UInt b)
{
    return unite_sets(SET_OF(resolve(a)), SET_OF(resolve(b)));
}

static UInt range(UInt low, UInt high)
{
    return deferred_count == DEFERRED ? range_set(low, high) : defer(low, high | IS_RANGE);
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
            all = unite(all, range(first, first + (end - i) - 1));
            i = end - 1;
            last = labels[i];
        } else {
            all = unite(all, last);
        }
    }
    return all ? all | COMPUTED : 0;
}
