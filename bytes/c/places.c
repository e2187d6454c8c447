/* See places.h. */
#include "places.h"

static Bool kernels_place(Int fd, Place *p)
{
    struct vg_stat st;
    if (VG_(fstat)(fd, &st) != 0)
        return False;
    switch (st.mode & 0170000) {
    case 0100000: p->kind = KIND_FILE; break;
    case 0010000: p->kind = KIND_PIPE; break;
    case 0140000: p->kind = KIND_SOCKET; break;
    case 0020000:
    case 0060000: p->kind = KIND_DEVICE; break;
    default: return False;
    }
    p->device = st.dev;
    p->inode = st.ino;
    p->generation = 0;
    p->size = st.size;
    p->modified = st.mtime;
    p->modified_ns = st.mtime_nsec;
    p->is_native = 1;
    p->path[0] = 0;
    return True;
}

const HChar *path_of(Int fd, const Place *p)
{
    const HChar *path = NULL;
    if (settings.asks)
        return p->path;
    return VG_(resolve_filename)(fd, &path) && path ? path : "";
}

Bool place_of(Int fd, Asked asked, Place *p)
{
    if (fd < 0)
        return False;
    if (settings.asks) {
        SysRes r = VG_(do_syscall)(ASK, fd, asked, (UWord)p, sizeof *p, 0, 0, 0, 0);
        return !sr_isError(r);
    }
    if (!kernels_place(fd, p))
        return False;
    p->offset = 0;
    if (p->kind == KIND_FILE && asked != IDENTITY) {
        Off64T now = VG_(lseek)(fd, 0, VKI_SEEK_CUR);
        p->offset = now > 0 ? now : 0;
    }
    return True;
}
