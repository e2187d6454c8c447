/* See shared.h. */
#include "shared.h"

#define STREAMS 65536
#define MAP_SHARED_ 1

typedef struct {
    ULong tick;
    ULong number;
    ULong reserved[14];
    Stream streams[STREAMS];
} Shared;

static Shared *shared;

void shared_start(const HChar *directory)
{
    HChar path[4200];
    VG_(snprintf)(path, sizeof path, "%s/shared", directory);
    SysRes fd = VG_(open)(path, VKI_O_RDWR | VKI_O_CREAT | 02000000 /* O_CLOEXEC */, 0600);
    if (!sr_isError(fd)) {
        VG_(do_syscall)(__NR_ftruncate, sr_Res(fd), sizeof(Shared), 0, 0, 0, 0, 0, 0);
        SysRes map = VG_(do_syscall)(__NR_mmap, 0, sizeof(Shared), VKI_PROT_READ | VKI_PROT_WRITE,
                                     MAP_SHARED_, sr_Res(fd), 0, 0, 0);
        VG_(close)(sr_Res(fd));
        if (!sr_isError(map)) {
            shared = (Shared *)sr_Res(map);
            return;
        }
    }
    VG_(message)(Vg_UserMsg, "cannot map %s: is --output a directory?\n", path);
    VG_(exit)(1);
}

ULong advance(ULong *counter, ULong n)
{
    return __atomic_fetch_add(counter, n, __ATOMIC_SEQ_CST);
}

ULong next_tick(void)
{
    return advance(&shared->tick, 1) + 1;
}

UInt next_number(void)
{
    return (UInt)advance(&shared->number, 1);
}

Stream *stream_of(ULong device, ULong inode)
{
    UInt at = (UInt)((device * 31 + inode) * 0x9e3779b97f4a7c15ULL >> 40) % STREAMS;
    for (UInt tries = 0; tries < STREAMS; tries++, at = (at + 1) % STREAMS) {
        Stream *s = &shared->streams[at];
        if (s->inode == inode && s->device == device)
            return s;
        ULong free_inode = 0;
        if (s->inode == 0 && __atomic_compare_exchange_n(&s->inode, &free_inode, inode, False,
                                                         __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            s->device = device;
            return s;
        }
    }
    /* More files than the table has room for share the last entry: offsets of their streams are
       wrong, their names are not. */
    return &shared->streams[STREAMS - 1];
}
