/*
 * Corrects what a program reads about itself in /proc. The recorder removes its variables' text
 * from the memory of the environment. But the kernel still has the length from the exec, so a
 * reader would find empty strings at the end. When the program opens the file, and only then, the
 * recorder passes the real end of the environment to the kernel.
 */
#include "bs.h"
#include <linux/prctl.h>

/* environ.c: the end of the last remaining variable; 0 if the kernel has the right end */
u64 bs_environment_end;

/* Reads `count` fields of the file, beginning with number `first` as counted in proc(5). */
static bool fields(const char *text, u32 first, u64 *to, u32 count)
{
    const char *c = text;
    for (const char *end = text; *end; end++)
        if (*end == ')')
            c = end; /* the name before it may contain any character */
    for (u32 number = 2; number < first + count; number++) {
        while (*c && *c != ' ')
            c++;
        if (!*c++)
            return false;
        u64 value = 0;
        for (const char *d = c; *d >= '0' && *d <= '9'; d++)
            value = value * 10 + (u64)(*d - '0');
        if (number + 1 >= first && number + 1 < first + count)
            to[number + 1 - first] = value;
    }
    return true;
}

static BS_COLD void set_environment_end(u64 end)
{
    char text[1024];
    s64 fd = bs_gated(__NR_openat, BS_AT_FDCWD, "/proc/self/stat", O_RDONLY | O_CLOEXEC, 0);
    s64 n = fd < 0 ? -1 : bs_raw(__NR_read, fd, text, sizeof text - 1);
    if (fd >= 0)
        bs_raw(__NR_close, fd);
    if (n <= 0)
        return;
    text[n] = 0;
    u64 code[3], data[7];
    if (!fields(text, 26, code, 3) || !fields(text, 45, data, 7) || end <= data[5] || end > data[6])
        return;
    struct prctl_mm_map map = {
        .start_code = code[0],
        .end_code = code[1],
        .start_stack = code[2],
        .start_data = data[0],
        .end_data = data[1],
        .start_brk = data[2],
        .brk = (u64)bs_raw(__NR_brk, 0),
        .arg_start = data[3],
        .arg_end = data[4],
        .env_start = data[5],
        .env_end = end,
        .exe_fd = (u32)-1,
    };
    bs_raw(__NR_prctl, PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0);
}

/*
 * Called when the program has opened a path that may be its own environment, and has not read it
 * yet.
 */
void bs_opened_proc(const char *path)
{
    u32 n = bs_length(path, 64);
    if (bs_environment_end && n >= 8 && n < 64 && bs_same(path + n - 8, "/environ") &&
        !(bs_modes & BS_MODE_SANDBOX)) {
        set_environment_end(bs_environment_end);
        bs_environment_end = 0;
    }
}
