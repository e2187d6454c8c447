/*
 * XXH64 with seed 0, as https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md defines it,
 * over one or several pieces of memory.
 */
#include "stream.h"

#define P1 0x9e3779b185ebca87ull
#define P2 0xc2b2ae3d27d4eb4full
#define P3 0x165667b19e3779f9ull
#define P4 0x85ebca77c2b2ae63ull
#define P5 0x27d4eb2f165667c5ull

enum { STRIPE = 32 };

struct state {
    u64 lanes[4];
    u64 total;
    u8 rest[STRIPE];
    u32 held; /* bytes in `rest` */
};

static inline u64 rotated(u64 x, int by)
{
    return x << by | x >> (64 - by);
}

static inline u64 word(const u8 *at)
{
    u64 value;
    __builtin_memcpy(&value, at, sizeof value);
    return value;
}

static inline u64 turn(u64 lane, u64 input)
{
    return rotated(lane + input * P2, 31) * P1;
}

/* Takes whole stripes. */
static const u8 *take_stripes(struct state *s, const u8 *at, const u8 *end)
{
    u64 a = s->lanes[0], b = s->lanes[1], c = s->lanes[2], d = s->lanes[3];
    for (; end - at >= STRIPE; at += STRIPE) {
        a = turn(a, word(at));
        b = turn(b, word(at + 8));
        c = turn(c, word(at + 16));
        d = turn(d, word(at + 24));
    }
    s->lanes[0] = a, s->lanes[1] = b, s->lanes[2] = c, s->lanes[3] = d;
    return at;
}

static void take(struct state *s, const u8 *at, u64 size)
{
    const u8 *end = at + size;
    s->total += size;
    if (s->held) {
        u32 room = STRIPE - s->held, n = size < room ? (u32)size : room;
        bs_copy(s->rest + s->held, at, n);
        s->held += n;
        at += n;
        if (s->held < STRIPE)
            return;
        take_stripes(s, s->rest, s->rest + STRIPE);
        s->held = 0;
    }
    at = take_stripes(s, at, end);
    s->held = (u32)(end - at);
    bs_copy(s->rest, at, s->held);
}

static u64 merged(u64 hash, u64 lane)
{
    return (hash ^ turn(0, lane)) * P1 + P4;
}

static u64 result(const struct state *s)
{
    u64 hash = P5;
    if (s->total >= STRIPE) {
        const u64 *l = s->lanes;
        hash = rotated(l[0], 1) + rotated(l[1], 7) + rotated(l[2], 12) + rotated(l[3], 18);
        for (int i = 0; i < 4; i++)
            hash = merged(hash, l[i]);
    }
    hash += s->total;
    const u8 *at = s->rest, *end = s->rest + s->held;
    for (; end - at >= 8; at += 8)
        hash = rotated(hash ^ turn(0, word(at)), 27) * P1 + P4;
    if (end - at >= 4) {
        u32 half;
        __builtin_memcpy(&half, at, sizeof half);
        hash = rotated(hash ^ half * P1, 23) * P2 + P3;
        at += 4;
    }
    for (; at < end; at++)
        hash = rotated(hash ^ *at * P5, 11) * P1;
    hash = (hash ^ hash >> 33) * P2;
    hash = (hash ^ hash >> 29) * P3;
    return hash ^ hash >> 32;
}

u64 bs_hash(const struct bs_part *part)
{
    struct state s = {.lanes = {P1 + P2, P2, 0, 0 - P1}};
    if (!part->vectors) {
        take(&s, part->at, part->size);
        return result(&s);
    }
    const struct vector *v = part->at;
    u64 left = part->size;
    for (u32 i = 0; i < part->vectors && left; i++) {
        u64 n = v[i].size < left ? v[i].size : left;
        take(&s, v[i].at, n);
        left -= n;
    }
    return result(&s);
}
