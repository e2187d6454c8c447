/* See memory.h. */
#include "memory.h"

#include "labels.h"
#include "shadow.h"

static Bool is_labels(ULong start)
{
    return start >= LINES_BASE && start < SHADOW_BASE + (sizeof(Label) << ADDRESS_BITS);
}

static Bool is_programs(Addr start)
{
    const NSegment *segment = VG_(am_find_nsegment)(start);
    return segment &&
           (segment->kind == SkAnonC || segment->kind == SkFileC || segment->kind == SkShmC);
}

static ULong most_labels, most_program;

/* The resident memory now, from /proc/self/smaps. */
void note_memory(void)
{
    SysRes fd = VG_(open)("/proc/self/smaps", VKI_O_RDONLY, 0);
    HChar line[512];
    UInt used = 0;
    ULong labels = 0, program = 0, nowhere, *sum = &nowhere;
    HChar part[4096], c;
    Int got = 0;
    for (Int at = 0; !sr_isError(fd); at++) {
        if (at == got) {
            got = VG_(read)(sr_Res(fd), part, sizeof part);
            if (got <= 0)
                break;
            at = 0;
        }
        c = part[at];
        if (c != '\n') {
            if (used < sizeof line - 1)
                line[used++] = c;
            continue;
        }
        line[used] = 0;
        used = 0;
        HChar *end;
        ULong start = VG_(strtoull16)(line, &end);
        if (*end == '-')
            sum = is_labels(start) ? &labels : is_programs(start) ? &program : &nowhere;
        else if (VG_(strncmp)(line, "Rss:", 4) == 0)
            *sum += VG_(strtoull10)(line + 4, NULL) << 10;
    }
    if (!sr_isError(fd))
        VG_(close)(sr_Res(fd));
    most_labels = VG_MAX(most_labels, labels);
    most_program = VG_MAX(most_program, program);
}

void report_memory(void)
{
    note_memory();
    VG_(message)
    (Vg_UserMsg, "memory: %llu bytes of the program, %llu of labels, %llu of sets\n", most_program,
     most_labels, set_memory());
}
