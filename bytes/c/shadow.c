/* See shadow.h. */
#include "shadow.h"

#include "implicit_labels.h"
#include "memory.h"

#include "pub_tool_vkiscnums.h"

#define MANY (1ULL << 22)

void *reserve(ULong address, ULong length, const HChar *purpose)
{
    SysRes r = VG_(do_syscall)(__NR_mmap, address, length, VKI_PROT_READ | VKI_PROT_WRITE,
                               VKI_MAP_PRIVATE | VKI_MAP_ANONYMOUS | VKI_MAP_NORESERVE |
                                   (address ? VKI_MAP_FIXED : 0),
                               -1, 0, 0, 0);
    if (sr_isError(r)) {
        VG_(message)
        (Vg_UserMsg,
         "cannot reserve %llu GiB of addresses for %s: no limit of the address space "
         "(ulimit -v) may be set, and vm.overcommit_memory may not be 2\n",
         length >> 30, purpose);
        VG_(exit)(1);
    }
    return (void *)sr_Res(r);
}

UChar *chunk_known;
UInt *chunk_list, chunk_count;

void shadow_start(void)
{
    const ULong chunks = 1ULL << (ADDRESS_BITS - CHUNK_SHIFT);
    chunk_known = reserve(0, chunks, "the list of labelled memory");
    chunk_list = reserve(0, chunks * sizeof *chunk_list, "the list of labelled memory");
    reserve(SHADOW_BASE, sizeof(Label) << ADDRESS_BITS, "the labels of memory");
    reserve(LINES_BASE, 1ULL << (ADDRESS_BITS - LINE_SHIFT), "the counts of labels");
    /* Huge pages would hold labels of memory that has none. */
    VG_(do_syscall)
    (__NR_madvise, SHADOW_BASE, sizeof(Label) << ADDRESS_BITS, 15 /* NOHUGEPAGE */, 0, 0, 0, 0, 0);
}

static void clear_line_part(Addr a, Addr end)
{
    if (implicit_chunks)
        clear_implicit_labels(a, end - a, False);
    for (; a < end; a++)
        set_label(a, 0);
}

void clear_labels(Addr a, ULong length)
{
    a &= ADDRESS_MASK;
    Addr end = a + length;
    if (length > MANY) {
        /* Whole pages of labels go back to the kernel: 4 KiB of labels are 1 KiB of memory. Their
           lines' counts are a page for each 64 KiB. */
        Addr first = VG_ROUNDUP(a, 1 << 18), last = VG_ROUNDDN(end, 1 << 18);
        /* The first labels are also in the count of the line before. The last line's count is also
           of labels behind it. */
        clear_labels(a, first + REACH - a);
        clear_labels(last, end - last);
        if (settings.memory)
            note_memory();
        VG_(do_syscall)
        (__NR_madvise, (UWord)&shadow[first], (last - first) * sizeof(Label), 4 /* DONTNEED */, 0,
         0, 0, 0, 0);
        VG_(do_syscall)
        (__NR_madvise, (UWord)&line_counts[first >> LINE_SHIFT], (last - first) >> LINE_SHIFT, 4, 0,
         0, 0, 0, 0);
        if (implicit_chunks)
            clear_implicit_labels(first, last - first, True);
        for (Addr behind = last; behind < last + REACH; behind++) {
            UChar *count = &line_counts[(last - 1) >> LINE_SHIFT];
            *count += shadow[behind] != 0;
            *count += implicit_chunks && implicit_label(behind);
        }
        return;
    }
    while (a < end) {
        Addr next = VG_MIN(VG_ROUNDDN(a, 1 << LINE_SHIFT) + (1 << LINE_SHIFT), end);
        if (line_counts[a >> LINE_SHIFT])
            clear_line_part(a, next);
        a = next;
    }
}

void copy_labels(Addr from, Addr to, SizeT length)
{
    for (ULong i = 0; i < length; i++) {
        if (((from + i) & 63) == 0 && length - i >= 64 && !labelled(from + i, 63) &&
            !labelled(to + i, 63)) {
            i += 63;
            continue;
        }
        set_label(to + i, shadow[(from + i) & ADDRESS_MASK]);
        if (implicit_chunks)
            set_implicit_label(to + i, implicit_label(from + i));
    }
}
