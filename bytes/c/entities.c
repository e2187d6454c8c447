/* See entities.h. */
#include "entities.h"

#include "labels.h"
#include "shadow.h"

#define BUCKETS 4096
#define CHANNEL 1              /* the generation of channels; sockets have 0 */
#define COARSE_FROM (1u << 28) /* leaves: then one for each 4 KiB */

Block *blocks;
UInt block_count;

static Entity *buckets[BUCKETS];
static UInt entity_count;

void entities_start(void)
{
    blocks = reserve(0, sizeof(Block) << 26, "the list of reads");
}

static Bool starts_with(const HChar *s, const HChar *prefix)
{
    return VG_(strncmp)(s, prefix, VG_(strlen)(prefix)) == 0;
}

static Bool ends_with(const HChar *s, const HChar *end)
{
    SizeT n = VG_(strlen)(s), m = VG_(strlen)(end);
    return n >= m && VG_(strcmp)(s + n - m, end) == 0;
}

/* Libraries and the system's tables are read by every program. With --files=all, they are
   sources. `fd`: -1 for a stand-in, whose bytes are those of the record. */
static Bool is_ignored(Int fd, const HChar *path)
{
    static const HChar *const prefixes[] = {"/usr/", "/lib",  "/etc/", "/proc/",
                                            "/sys/", "/dev/", "/bin/", "/sbin/"};
    if (settings.all_files)
        return False;
    for (UInt i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (starts_with(path, prefixes[i]))
            return True;
    }
    UChar magic[4] = {0};
    if (fd >= 0)
        VG_(do_syscall)(__NR_pread64, fd, (UWord)magic, 4, 0, 0, 0, 0, 0);
    return VG_(memcmp)(magic, "\177ELF", 4) == 0 || ends_with(path, ".pyc");
}

static Entity *find(Kind kind, ULong device, ULong inode, ULong generation)
{
    UInt at = (device * 31 + inode) % BUCKETS;
    for (Entity *e = buckets[at]; e; e = e->next) {
        if (e->inode == inode && e->device == device && e->generation == generation &&
            (e->kind == KIND_ARGUMENTS) == (kind == KIND_ARGUMENTS))
            return e;
    }
    Entity *e = VG_(calloc)("entity", 1, sizeof *e);
    *e = (Entity){.id = ++entity_count,
                  .kind = kind,
                  .device = device,
                  .inode = inode,
                  .generation = generation,
                  .next = buckets[at]};
    buckets[at] = e;
    return e;
}

static Bool is_system_device(const HChar *path)
{
    return starts_with(path, "/dev/") && !starts_with(path, "/dev/tty") &&
           !starts_with(path, "/dev/pts");
}

Entity *entity_at(Int fd, const Place *p)
{
    if (p->kind > KIND_DEVICE)
        return NULL;
    Stream *stream = stream_of(p->device, p->inode);
    ULong generation = p->kind == KIND_PIPE && p->is_native ? stream->generation : p->generation;
    Entity *e = find(p->kind, p->device, p->inode, generation);
    if (!e->path) {
        e->path = VG_(strdup)("entity.path", path_of(fd, p));
        e->stream = stream;
        e->size = p->size;
        e->modified = p->modified;
        e->modified_ns = p->modified_ns;
        e->ignored = p->kind == KIND_FILE ? is_ignored(p->is_native ? fd : -1, e->path)
                                          : p->kind == KIND_DEVICE && is_system_device(e->path);
    }
    return e;
}

Entity *entity_of_fd(Int fd)
{
    Place place;
    return place_of(fd, IDENTITY, &place) ? entity_at(fd, &place) : NULL;
}

Entity *channel_entity(const Entity *socket, ULong number)
{
    Entity *e = find(KIND_SOCKET, socket->device, number, CHANNEL);
    if (!e->path) {
        e->path = VG_(strdup)("entity.path", socket->path);
        /* Its bytes are counted apart from those of the socket with the same number. */
        e->stream = stream_of(socket->device | 1ULL << 63, number);
        e->size = 0;
    }
    return e;
}

Entity *arguments_entity(UInt pid, ULong count)
{
    Entity *e = find(KIND_ARGUMENTS, pid, count + 1, 0);
    if (!e->path)
        e->path = VG_(strdup)("entity.path", "");
    return e;
}

/* A range that was read before, and not written since, keeps its leaves. */
static Block *earlier_block(Entity *e, ULong offset, ULong n)
{
    for (UInt i = 0; i < 16; i++) {
        UInt index = e->last_blocks[(e->last_block - i) & 15];
        Block *b = &blocks[index - 1];
        if (index && b->shift == 0 && b->offset <= offset && offset + n <= b->offset + b->count &&
            (!e->stream || b->tick > e->stream->last_write))
            return b;
    }
    return NULL;
}

static Block *new_block(Entity *e, ULong offset, ULong n)
{
    UInt shift = leaf_count() > COARSE_FROM || n > COARSE_FROM ? 12 : 0;
    Block *b = &blocks[block_count];
    *b = (Block){.count = (UInt)((n + (1ULL << shift) - 1) >> shift),
                 .shift = shift,
                 .entity = e,
                 .offset = offset,
                 .tick = next_tick()};
    b->first = new_leaves(b->count);
    if (b->first == 0)
        return NULL;
    block_count++;
    e->last_block = (e->last_block + 1) & 15;
    e->last_blocks[e->last_block] = block_count;
    return b;
}

void add_source(Entity *e, ULong offset, Addr a, ULong n)
{
    clear_labels(a, n);
    if (!e || e->ignored || n == 0)
        return;
    Block *b = e->kind == KIND_FILE ? earlier_block(e, offset, n) : NULL;
    if (!b)
        b = new_block(e, offset, n);
    UInt first = b ? b->first + (UInt)((offset - b->offset) >> b->shift) : leaf_count();
    UInt shift = b ? b->shift : 63;
    for (ULong i = 0; i < n; i++)
        set_label(a + i, first + (UInt)(i >> shift));
}

Block *block_of(UInt leaf)
{
    UInt low = 0, high = block_count;
    while (low + 1 < high) {
        UInt middle = low + (high - low) / 2;
        if (blocks[middle].first <= leaf)
            low = middle;
        else
            high = middle;
    }
    return &blocks[low];
}

void forget_recorded(void)
{
    for (UInt i = 0; i < BUCKETS; i++) {
        for (Entity *e = buckets[i]; e; e = e->next)
            e->recorded = False;
    }
    for (UInt i = 0; i < block_count; i++)
        blocks[i].recorded = False;
}
