/*
 * Takes the marks of libbackstory: statements of a program about its own work.
 *
 * A mark is the attempt to open a path that cannot exist. Its record is the same, with or without
 * the system call. So this function logs the failed open, and makes no call.
 */
#include "bs.h"

BS_API int backstory_mark(const char *path);

/*
 * Returns 0 if nothing was logged. The path is then no mark, or it cannot be read, or no chunk is
 * free, or the guard logs the opens of this process. The program opens the path instead.
 */
int backstory_mark(const char *path)
{
    static const char prefix[] = "/dev/null/backstory/";
    u32 length;
    if (!bs_measure(path, BS_PATH_MAX, &length) || !bs_starts(path, prefix))
        return 0;
    if (!bs_logs_later(BS_OP_OPEN))
        return 0;
    bs_note_path(bs_now(), BS_OP_OPEN, BS_AT_FDCWD, 0, 0, path, -BS_ENOTDIR);
    return 1;
}
