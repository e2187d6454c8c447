/*
 * Tells whether a program uses the loader of 64-bit programs. For such a program the recorder's
 * entry of LD_PRELOAD can name the library itself. An entry with `$LIB` makes the loader read
 * /proc/self/exe. That costs more than everything else that the recorder adds to a program's start.
 *
 * Invariant: only a program that certainly uses this loader gets such an entry. The recorder in it
 * removes the variable before the program can pass it on. A process that may hold a record lock
 * opens no program here, because it would lose its lock on that program.
 */
#include "elf.h"

enum { INTERPRETERS = 4 };

s64 bs_read_beginning(int dir, const char *path, u8 *text)
{
    s64 fd = bs_gated(__NR_openat, dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0)
        return fd;
    s64 size = bs_raw(__NR_read, fd, text, BS_FILE_BEGINNING);
    bs_raw(__NR_close, fd);
    return size;
}

/*
 * True if the file requests glibc's loader at the path that every distribution uses. musl's loader
 * takes `$LIB` literally.
 */
static bool asks_for_wide_loader(const u8 *text, u64 size)
{
    static const char wide[] = "/lib64/ld-linux-x86-64.so.2";
    const struct bs_elf *elf = (const struct bs_elf *)text;
    if (size < sizeof *elf || elf->class != ELF_64 || elf->machine != MACHINE_X86_64 ||
        elf->header_size != sizeof(struct bs_program_header))
        return false;
    u64 at = elf->headers;
    for (u32 i = 0; i < elf->header_count && at <= size - sizeof(struct bs_program_header);
         i++, at += sizeof(struct bs_program_header)) {
        struct bs_program_header header;
        bs_copy(&header, text + at, sizeof header);
        if (header.type == PT_INTERP)
            return header.in_file == sizeof wide && header.offset <= size - sizeof wide &&
                   bs_same((const char *)text + header.offset, wide);
    }
    return false;
}

/* Returns the interpreter that a script names, terminated in place; null if it names none. */
static const char *interpreter(u8 *text, u64 size)
{
    u64 from = 2, to;
    while (from < size && (text[from] == ' ' || text[from] == '\t'))
        from++;
    for (to = from;
         to < size && text[to] && text[to] != ' ' && text[to] != '\t' && text[to] != '\n'; to++)
        ;
    if (to == from || to == size)
        return 0;
    text[to] = 0;
    return (const char *)text + from;
}

#ifdef BS_AUTO
const char *bs_script_interpreter(u8 *text, u64 size)
{
    return interpreter(text, size);
}
#endif

/*
 * Its calls go through the gate. Where the guard would still take them for the program's, this
 * function makes none.
 */
__attribute__((noinline)) bool bs_has_wide_loader(int dir, const char *path)
{
    u8 text[BS_FILE_BEGINNING] __attribute__((aligned(8)));
    if (bs_modes & (BS_MODE_STRICT | BS_MODE_SANDBOX | BS_MODE_CLOSED | BS_MODE_MOVED) ||
        !bs_is_ready(BS_OP_EXEC) || bs_may_hold_locks())
        return false;
    for (int i = 0; i < INTERPRETERS; i++) {
        s64 size = bs_read_beginning(dir, path, text);
        if (size < 4)
            return false;
        if (text[0] != '#' || text[1] != '!')
            return bs_is_elf(text) && asks_for_wide_loader(text, (u64)size);
        path = interpreter(text, (u64)size);
        if (!path)
            return false;
        dir = BS_AT_FDCWD;
    }
    return false;
}
