/* See wide.h. */
#include "wide.h"

#define MOST_KEPT 64

typedef struct KeptWide {
    Addr address;
    Wide *wide;
    struct KeptWide *before;
} KeptWide;

Bool has_wide_registers(void)
{
    static Int known = -1;
    if (known >= 0)
        return known;
    known = 0;
    UInt a = 0, b, c = 0, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    if (a < 7)
        return False;
    a = 7, c = 0;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    Bool foundation = b >> 16 & 1, words = b >> 30 & 1;
    if (foundation && words) {
        /* XCR0: masks, and both parts of the vectors. */
        __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
        known = (a & 0xe6) == 0xe6;
    }
    return known;
}

Wide *wide_of(Thread *t)
{
    if (!t->wide)
        t->wide = VG_(calloc)("wide", 1, sizeof(Wide));
    return t->wide;
}

Wide *copy_of_wide(const Wide *wide)
{
    if (!wide)
        return NULL;
    Wide *copy = VG_(malloc)("wide.copy", sizeof *copy);
    *copy = *wide;
    return copy;
}

void empty_upper_halves(Wide *wide, Words *words)
{
    for (UInt n = 0; n < YMM_COUNT; n++) {
        if (!words->narrowed[n])
            continue;
        words->narrowed[n] = 0;
        VG_(memset)(wide->vectors[n] + YMM_BYTES, 0, VECTOR_BYTES - YMM_BYTES);
        VG_(memset)(wide->labels[n], 0, sizeof wide->labels[n]);
    }
}

static void free_kept(KeptWide *kept)
{
    VG_(free)(kept->wide);
    VG_(free)(kept);
}

/* Takes what is kept under an address out of the list. The oldest is dropped if there are too many:
   what XSAVE stored may never be loaded. */
static KeptWide *take_kept(Thread *t, Addr address)
{
    UInt count = 0;
    for (KeptWide **at = &t->kept; *at; at = &(*at)->before) {
        KeptWide *found = *at;
        if (found->address == address || ++count == MOST_KEPT) {
            *at = found->before;
            if (found->address == address)
                return found;
            free_kept(found);
            return NULL;
        }
    }
    return NULL;
}

VG_REGPARM(2) void keep_wide(UChar *guest, Addr address)
{
    Thread *t = running;
    KeptWide *kept = take_kept(t, address);
    if (kept)
        free_kept(kept);
    if (!t->wide)
        return;
    empty_upper_halves(t->wide, (Words *)(guest + REGISTERS));
    kept = VG_(malloc)("wide.kept", sizeof *kept);
    *kept = (KeptWide){.address = address, .wide = copy_of_wide(t->wide), .before = t->kept};
    t->kept = kept;
}

VG_REGPARM(2) void put_wide_back(UChar *guest, Addr address)
{
    Thread *t = running;
    KeptWide *kept = take_kept(t, address);
    if (!kept)
        return;
    Words *words = (Words *)(guest + REGISTERS);
    VG_(memset)(words->narrowed, 0, sizeof words->narrowed);
    *wide_of(t) = *kept->wide;
    free_kept(kept);
}

void forget_wide(Thread *t)
{
    VG_(free)(t->wide);
    t->wide = NULL;
    while (t->kept) {
        KeptWide *kept = t->kept;
        t->kept = kept->before;
        free_kept(kept);
    }
}

void each_wide(const Thread *t, const Wide *wide, void (*visit)(const Label *, UInt))
{
    if (wide)
        visit(wide->labels[0], VECTORS * VECTOR_BYTES);
    if (wide != t->wide)
        return;
    for (const KeptWide *kept = t->kept; kept; kept = kept->before)
        visit(kept->wide->labels[0], VECTORS * VECTOR_BYTES);
}
