/* See calls.h.
 *
 * The offset of an access to a file is the descriptor's after the call, less the bytes that it
 * moved. A pipe, socket or device has the count of bytes that went through it (shared.h). */
#include "calls.h"

#include "execute.h"
#include "labels.h"
#include "record.h"
#include "sockets.h"
#include "under_way.h"

typedef struct {
    Addr base;
    ULong length;
} Vector;

typedef struct {
    Addr name;
    ULong name_length;
    Vector *vectors;
    ULong vector_count;
    ULong rest[3];
} Message;

#define CURRENT (~0ULL)

static ULong write_tick; /* taken before the call that is under way */

static Bool is_stream(const Entity *e)
{
    return e->kind != KIND_FILE;
}

/* `explicit_offset`: of pread and pwrite; CURRENT for calls that move the descriptor's offset. */
static ULong file_offset(const Place *p, ULong explicit_offset, ULong n)
{
    if (explicit_offset != CURRENT)
        return explicit_offset;
    if (!p->is_native)
        return p->offset;
    return p->offset >= n ? p->offset - n : 0;
}

static ULong read_offset(Entity *e, const Place *p, ULong explicit_offset, ULong n)
{
    if (is_stream(e) && p->is_native)
        return advance(&e->stream->read, n);
    return file_offset(p, is_stream(e) ? CURRENT : explicit_offset, n);
}

static ULong write_offset(Entity *e, const Place *p, ULong explicit_offset, ULong n)
{
    if (is_stream(e) && p->is_native)
        return advance(&e->stream->written, n);
    if (!is_stream(e))
        e->stream->last_write = write_tick;
    return file_offset(p, is_stream(e) ? CURRENT : explicit_offset, n);
}

/* `before`: bytes of earlier messages of the same call, for a stand-in. */
static void bytes_in(Int fd, const Vector *v, ULong count, ULong explicit_offset, ULong n,
                     ULong before)
{
    Place place;
    Entity *e = entity_to_read(fd, explicit_offset != CURRENT, &place);
    if (!e)
        return;
    ULong offset = read_offset(e, &place, explicit_offset, n) + (place.is_native ? 0 : before);
    for (ULong i = 0; i < count && n; i++) {
        ULong part = v[i].length < n ? v[i].length : n;
        add_source(e, offset, v[i].base, part);
        offset += part;
        n -= part;
    }
}

static void bytes_out(Int fd, const Vector *v, ULong count, ULong explicit_offset, ULong n,
                      ULong before)
{
    Place place;
    Entity *e = entity_to_write(fd, explicit_offset != CURRENT, &place);
    if (!e || (e->kind == KIND_DEVICE && e->ignored))
        return;
    ULong offset = write_offset(e, &place, explicit_offset, n) + (place.is_native ? 0 : before);
    record_callers(True);
    for (ULong i = 0; i < count && n; i++) {
        ULong part = v[i].length < n ? v[i].length : n;
        if (part)
            record_write(e, offset, v[i].base, part, write_tick);
        offset += part;
        n -= part;
    }
    /* The supervisor kills the program when its record is over. */
    if (settings.asks)
        record_flush();
}

static void moved(Int in, Int out, ULong in_offset, ULong out_offset, ULong n, Bool keeps)
{
    Place source, target;
    Entity *from = entity_to_read(in, in_offset != CURRENT, &source);
    Entity *to = entity_to_write(out, out_offset != CURRENT, &target);
    if (!from || !to)
        return;
    ULong at = keeps ? from->stream->read : read_offset(from, &source, in_offset, n);
    record_callers(True);
    record_move(from, at, to, write_offset(to, &target, out_offset, n), n, write_tick);
}

/* The offset that a call advanced through a pointer, before the call. */
static ULong pointed(UWord pointer, ULong n)
{
    return pointer ? *(ULong *)pointer - n : CURRENT;
}

/* ---- mappings ---- */

typedef struct Mapping {
    Addr start;
    ULong length, offset;
    Entity *entity;
    struct Mapping *next;
} Mapping;

static Mapping *mappings;

static void add_mapping(UWord *args, Addr start)
{
    ULong length = args[1], offset = args[5];
    if (args[3] & VKI_MAP_ANONYMOUS) {
        if ((args[3] & 3) == 1)
            record_possible("memory is shared between processes");
        return;
    }
    Place place;
    Entity *e = place_of(args[4], IDENTITY, &place) ? entity_at(args[4], &place) : NULL;
    if (!e || e->ignored || args[2] & VKI_PROT_EXEC)
        return;
    ULong there = place.size > offset ? place.size - offset : 0;
    add_source(e, offset, start, there < length ? there : length);
    SysRes flags = VG_(do_syscall)(__NR_fcntl, args[4], VKI_F_GETFL, 0, 0, 0, 0, 0, 0);
    if ((args[3] & 3) != 1 || (sr_Res(flags) & 3) != VKI_O_RDWR)
        return;
    Mapping *m = VG_(malloc)("mapping", sizeof *m);
    *m = (Mapping){start, there < length ? there : length, offset, e, mappings};
    mappings = m;
}

/* Changed bytes of mapped files become writes. Mappings that end are forgotten. */
static void write_mappings(Addr start, ULong length, Bool forget)
{
    for (Mapping **at = &mappings; *at;) {
        Mapping *m = *at;
        if (m->start < start + length && start < m->start + m->length) {
            m->entity->stream->last_write = next_tick();
            record_mapped(m->entity, m->offset, m->start, m->length);
            if (forget) {
                *at = m->next;
                VG_(free)(m);
                continue;
            }
        }
        at = &m->next;
    }
}

void write_all_mappings(void)
{
    write_mappings(0, ADDRESS_MASK, False);
}

/* ---- arguments ---- */

#define ARGUMENTS_DEVICE (~0ULL)

/* A new image begins without labels: its arguments are an entity between the two. */
static void pass_arguments(Addr *list)
{
    Stream *s = stream_of(ARGUMENTS_DEVICE, VG_(getpid)());
    s->written = 0;
    Bool any = False;
    for (UInt i = 0; list && list[i]; i++) {
        const HChar *text = (const HChar *)list[i];
        for (SizeT k = 0; text[k] && !any; k++)
            any = shadow[(list[i] + k) & ADDRESS_MASK] != 0;
    }
    if (!any)
        return;
    s->generation++;
    s->written = 1;
    Entity *e = arguments_entity(VG_(getpid)(), s->generation);
    ULong offset = 0, tick = next_tick();
    record_callers(False);
    for (UInt i = 0; list[i]; i++) {
        SizeT n = VG_(strlen)((const HChar *)list[i]) + 1;
        record_write(e, offset, list[i], n, tick);
        offset += n;
    }
}

void take_arguments(Addr stack)
{
    Stream *s = stream_of(ARGUMENTS_DEVICE, VG_(getpid)());
    if (!s->written)
        return;
    Entity *e = arguments_entity(VG_(getpid)(), s->generation);
    ULong offset = 0, count = *(ULong *)stack;
    for (ULong i = 0; i < count; i++) {
        Addr text = ((Addr *)stack)[1 + i];
        SizeT n = VG_(strlen)((const HChar *)text) + 1;
        add_source(e, offset, text, n);
        offset += n;
    }
}

/* ---- the two callbacks ---- */

#define NOT_FOLLOWED "bytes were moved by a call that is not followed"

void before_call(ThreadId tid, UInt call, UWord *args, UInt count)
{
    catch_up(thread_of(tid));
    write_tick = next_tick();
    program_calls(tid, call, args);
    switch (call) {
    case __NR_munmap: write_mappings(args[0], args[1], True); break;
    case __NR_msync: write_mappings(args[0], args[1], False); break;
    case __NR_execve:
        pass_arguments((Addr *)args[1]);
        write_all_mappings();
        record_end();
        break;
    case __NR_process_vm_readv:
    case __NR_process_vm_writev:
        if (args[0] != VG_(getpid)())
            record_possible(NOT_FOLLOWED);
        break;
    case __NR_io_submit:
    case 425: /* io_uring_setup */ record_possible(NOT_FOLLOWED); break;
    default: break;
    }
}

static void after_messages(UWord *args, UWord n, Bool in)
{
    struct {
        Message message;
        UInt length, padding;
    } *list = (void *)args[1];
    ULong before = 0;
    for (UWord i = 0; i < n; i++) {
        Message *m = &list[i].message;
        (in ? bytes_in : bytes_out)(args[0], m->vectors, m->vector_count, CURRENT, list[i].length,
                                    before);
        before += list[i].length;
    }
}

static void new_pipe(Int *fds)
{
    struct vg_stat st;
    /* The supervisor's pipes have numbers that no other one has. */
    if (settings.asks || VG_(fstat)(fds[0], &st) != 0)
        return;
    /* The inode number may be that of an older pipe. */
    Stream *s = stream_of(st.dev, st.ino);
    s->generation++;
    s->written = s->read = 0;
}

/* vmsplice moves memory into a pipe, or the other way, as the descriptor is opened. */
static void between_memory(UWord *args, UWord n)
{
    SysRes flags = VG_(do_syscall)(__NR_fcntl, args[0], VKI_F_GETFL, 0, 0, 0, 0, 0, 0);
    Bool in = (sr_Res(flags) & 3) == VKI_O_RDONLY;
    (in ? bytes_in : bytes_out)(args[0], (Vector *)args[1], args[2], CURRENT, n, 0);
}

/* process_vm_readv and process_vm_writev of a process in its own memory. */
static void inside_memory(const Vector *from, const Vector *to, UWord n)
{
    ULong read = 0, written = 0;
    while (n) {
        ULong part = from->length - read, room = to->length - written;
        part = part < room ? part : room;
        part = part < n ? part : n;
        copy_labels(from->base + read, to->base + written, part);
        read += part, written += part, n -= part;
        if (read == from->length)
            from++, read = 0;
        if (written == to->length)
            to++, written = 0;
    }
}

/* A file got another name. It may have been written under the former one, by any process. */
static void new_name(Int directory, const HChar *name)
{
    SysRes fd = VG_(do_syscall)(__NR_openat, directory, (UWord)name,
                                010000000 | 0400000 | 02000000 /* O_PATH|O_NOFOLLOW|O_CLOEXEC */, 0,
                                0, 0, 0, 0);
    const HChar *path = NULL;
    if (sr_isError(fd))
        return;
    Entity *e = entity_of_fd(sr_Res(fd));
    if (e && e->kind == KIND_FILE && VG_(resolve_filename)(sr_Res(fd), &path) && path) {
        VG_(free)(e->path);
        e->path = VG_(strdup)("entity.path", path);
        record_name(e);
    }
    VG_(close)(sr_Res(fd));
}

void after_call(ThreadId tid, UInt call, UWord *args, UInt count, SysRes result)
{
    program_called(tid);
    if (sr_isError(result))
        return;
    UWord n = sr_Res(result);
    Vector one = {args[1], args[2]};
    Vector *list = (Vector *)args[1];
    Message *message = (Message *)args[1];
    switch (call) {
    case __NR_read:
    case __NR_recvfrom: bytes_in(args[0], &one, 1, CURRENT, n, 0); break;
    case __NR_pread64: bytes_in(args[0], &one, 1, args[3], n, 0); break;
    case __NR_readv: bytes_in(args[0], list, args[2], CURRENT, n, 0); break;
    case __NR_preadv: bytes_in(args[0], list, args[2], args[3], n, 0); break;
    case 327: /* preadv2 */ bytes_in(args[0], list, args[2], args[3], n, 0); break;
    case __NR_recvmsg:
        bytes_in(args[0], message->vectors, message->vector_count, CURRENT, n, 0);
        break;
    case __NR_recvmmsg: after_messages(args, n, True); break;
    case __NR_write:
    case __NR_sendto: bytes_out(args[0], &one, 1, CURRENT, n, 0); break;
    case __NR_pwrite64: bytes_out(args[0], &one, 1, args[3], n, 0); break;
    case __NR_writev: bytes_out(args[0], list, args[2], CURRENT, n, 0); break;
    case __NR_pwritev: bytes_out(args[0], list, args[2], args[3], n, 0); break;
    case 328: /* pwritev2 */ bytes_out(args[0], list, args[2], args[3], n, 0); break;
    case __NR_sendmsg:
        bytes_out(args[0], message->vectors, message->vector_count, CURRENT, n, 0);
        break;
    case __NR_sendmmsg: after_messages(args, n, False); break;
    case __NR_mmap: add_mapping(args, n); break;
    case __NR_pipe:
    case __NR_pipe2: new_pipe((Int *)args[0]); break;
    case __NR_sendfile: moved(args[1], args[0], pointed(args[2], n), CURRENT, n, False); break;
    case 326: /* copy_file_range */
    case __NR_splice:
        moved(args[0], args[2], pointed(args[1], n), pointed(args[3], n), n, False);
        break;
    case __NR_rename:
    case __NR_link: new_name(-100 /* AT_FDCWD */, (const HChar *)args[1]); break;
    case __NR_renameat:
    case __NR_linkat:
    case 316: /* renameat2 */ new_name((Int)args[2], (const HChar *)args[3]); break;
    case __NR_vmsplice: between_memory(args, n); break;
    case __NR_socketpair: new_socket_pair((const Int *)args[3]); break;
    case __NR_process_vm_readv:
        if (args[0] == VG_(getpid)())
            inside_memory((Vector *)args[3], list, n);
        break;
    case __NR_process_vm_writev:
        if (args[0] == VG_(getpid)())
            inside_memory(list, (Vector *)args[3], n);
        break;
    case __NR_tee: moved(args[0], args[1], CURRENT, CURRENT, n, True); break;
    default: break;
    }
}
