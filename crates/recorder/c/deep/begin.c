/*
 * Records how a deep stream begins: what the kernel gave a program, a forked child or a thread.
 */
#include "../arena.h"
#include "../elf.h"
#include "exact.h"

enum { WHOLE = BS_ARENA_HEADER + BS_MAX_CHUNKS * BS_CHUNK_SIZE };

u8 *bs_deep_arena;
bool bs_deep_is_go;

/* Arguments and variables of the program. */
static char **arguments, **variables;
static const u64 *auxiliary;
/* True once a stream began in this program. A forked child inherits it. */
static bool program_began;

/*
 * Maps the arena up to its largest size: address space only, until chunks are used. So taking a
 * chunk needs no call. A copy of the mapping needs no descriptor.
 */
bool bs_deep_map(void)
{
    if (bs_deep_arena)
        return true;
    s64 at = bs_copy_arena(WHOLE, WHOLE_PLACE);
    if (is_error(at))
        return false;
    u8 *none = 0; /* another thread may have been faster */
    if (!__atomic_compare_exchange_n(&bs_deep_arena, &none, (u8 *)at, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        bs_raw(__NR_munmap, at, (u64)WHOLE);
    return true;
}

/* Strings that lie one behind the other, as the kernel puts them on the stack. */
static struct bs_part words(u16 arg, char **list)
{
    struct bs_part part = {.kind = BS_DEEP_WORDS, .arg = arg};
    if (!list || !*list)
        return part;
    part.at = *list;
    u32 last = 0;
    while (list[last + 1] && list[last + 1] == list[last] + bs_length(list[last], ~0u) + 1)
        last++;
    part.size = (u64)(list[last] - *list) + bs_length(list[last], ~0u) + 1;
    return part;
}

static u64 auxiliary_bytes(const u64 *aux)
{
    const u64 *end = aux;
    while (end[0])
        end += 2;
    return (u64)(end + 2 - aux) * sizeof *aux;
}

static const void *auxiliary_value(const u64 *aux, u64 kind)
{
    for (; *aux; aux += 2)
        if (*aux == kind)
            return (const void *)aux[1];
    return 0;
}

/* ---- notes of the program -------------------------------------------------------------------- */

/* True if the bytes of a note lie in memory that was mapped from the program. */
static bool is_mapped(const struct bs_program_header *note, const struct bs_program_header *headers,
                      u64 count)
{
    for (u64 i = 0; i < count; i++) {
        const struct bs_program_header *load = &headers[i];
        u64 offset = note->address - load->address;
        if (load->type != PT_LOAD || !(load->flags & PF_READABLE) || note->address < load->address)
            continue;
        if (offset <= load->in_file && note->in_file <= load->in_file - offset)
            return true;
    }
    return false;
}

/*
 * The content of the note with this type and name among these words. A note has the sizes of its
 * name and of its content, its type, its name of one word, and its content.
 */
static struct bs_part content_of(const u32 *word, u64 count, u32 type, u32 name)
{
    enum { NAME_SIZE = 4, HEAD = 4 };
    for (; count >= HEAD; word++, count--)
        if (word[0] == NAME_SIZE && word[2] == type && word[3] == name &&
            word[1] <= (count - HEAD) * sizeof *word)
            return (struct bs_part){.size = word[1], .at = word + HEAD};
    return (struct bs_part){0};
}

/* The content of a note of the program. It lies in memory, so no file is read. */
static BS_COLD struct bs_part note_of(const u64 *aux, u32 type, u32 name)
{
    enum { AT_PHDR = 3, AT_PHNUM = 5 };
    const struct bs_program_header *headers = auxiliary_value(aux, AT_PHDR);
    u64 count = headers ? (u64)auxiliary_value(aux, AT_PHNUM) : 0, base = 0;
    for (u64 i = 0; i < count; i++)
        if (headers[i].type == PT_PHDR)
            base = (u64)headers - headers[i].address;
    for (u64 i = 0; i < count; i++) {
        const struct bs_program_header *note = &headers[i];
        if (note->type != PT_NOTE || note->address % sizeof(u32) != 0 ||
            !is_mapped(note, headers, count))
            continue;
        struct bs_part found = content_of((const u32 *)(base + note->address),
                                          note->in_file / sizeof(u32), type, name);
        if (found.at)
            return found;
    }
    return (struct bs_part){0};
}

/* True if a note of the program names Go's linker. */
static bool is_go(const u64 *aux)
{
    enum { BUILD = 4, GO = 'G' | 'o' << 8 };
    return note_of(aux, BUILD, GO).at;
}

/* The build id of the program, if its linker gave it one. */
static struct bs_part build_id(const u64 *aux)
{
    enum { BUILD_ID = 3, GNU = 'G' | 'N' << 8 | 'U' << 16 };
    struct bs_part found = note_of(aux, BUILD_ID, GNU);
    found.kind = BS_DEEP_LEFT;
    found.arg = 6;
    return found;
}

/* The record of a program's beginning. */
static BS_COLD void log_program(struct bs_deep_record *begin)
{
    enum { AT_EXECFN = 31, AT_RANDOM = 25, RANDOM_BYTES = 16, PARTS = 8 };
    struct bs_part parts[PARTS] = {words(0, arguments), words(1, variables)};
    u32 count = 2;
    u64 stack = (u64)arguments - sizeof *arguments; /* of the number of arguments */
    if (arguments)
        parts[count++] =
            (struct bs_part){.kind = BS_DEEP_LEFT, .arg = 7, .size = sizeof stack, .at = &stack};
    if (auxiliary) {
        const void *random = auxiliary_value(auxiliary, AT_RANDOM);
        const char *program = auxiliary_value(auxiliary, AT_EXECFN);
        parts[count++] = (struct bs_part){
            .kind = BS_DEEP_LEFT, .arg = 2, .size = auxiliary_bytes(auxiliary), .at = auxiliary};
        parts[count++] = (struct bs_part){
            .kind = BS_DEEP_LEFT, .arg = 3, .size = random ? RANDOM_BYTES : 0, .at = random};
        parts[count++] = (struct bs_part){.kind = BS_DEEP_PATH,
                                          .arg = 4,
                                          .size = program ? bs_length(program, BS_PATH_MAX) : 0,
                                          .at = program};
        parts[count++] = build_id(auxiliary);
    }
    char directory[512];
    s64 n = bs_raw(__NR_getcwd, directory, sizeof directory);
    if (n > 1)
        parts[count++] =
            (struct bs_part){.kind = BS_DEEP_PATH, .arg = 5, .size = (u64)n - 1, .at = directory};
    bs_deep_append(begin, parts, count);
}

void bs_deep_log_begin(void)
{
    bool first = bs_me.tid == bs_process->pid;
    bool executed = first && !program_began;
    struct bs_deep_record begin = {
        .call = BS_DEEP_BEGIN,
        .time = bs_now(),
        .fd = (s32)bs_process->pid,
        .result = bs_process->ppid,
        .a = !first     ? BS_DEEP_BY_THREAD
             : executed ? BS_DEEP_BY_EXEC
                        : BS_DEEP_BY_FORK,
        .b = bs_me.tid,
    };
    if (executed) {
        program_began = true;
        log_program(&begin);
    } else {
        bs_deep_append(&begin, 0, 0);
        bs_exact_tell();
        bs_instructions_tell();
    }
}

void bs_deep_begin(char **argv, char **env, const u64 *aux, bool is_glibc)
{
    if (!bs_arena_path[0])
        return;
    arguments = argv;
    variables = env;
    auxiliary = is_glibc ? aux : 0;
    bs_deep_is_go = is_go(aux);
    bs_redirect_internal();
    if (bs_deep_is_on() && bs_arena->flags & BS_ARENA_EXACT) {
        bs_exact_begin(auxiliary);
        bs_instructions_begin();
    }
}
