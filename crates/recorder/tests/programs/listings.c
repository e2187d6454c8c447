/* Lists `top` and `top/below` by the function of libc that the argument names. */
#include <dirent.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wordexp.h>

static int found;

static int visited(const char *path, const struct stat *s, int kind)
{
    found++;
    return 0;
}

static int visited_by_nftw(const char *path, const struct stat *s, int kind, struct FTW *where)
{
    found++;
    return 0;
}

static int scanned(const char *path)
{
    struct dirent **list;
    return scandir(path, &list, 0, alphasort);
}

static int walked(void)
{
    char *paths[] = {"top", 0};
    FTS *tree = fts_open(paths, FTS_PHYSICAL, 0);
    while (tree && fts_read(tree))
        found++;
    return tree ? fts_close(tree) : -1;
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "";
    glob_t paths;
    wordexp_t words;
    mkdir("top", 0755);
    mkdir("top/below", 0755);
    close(open("top/below/file", O_WRONLY | O_CREAT, 0644));
    if (!strcmp(how, "glob"))
        found = glob("top/*/*", 0, 0, &paths) ? -1 : (int)paths.gl_pathc;
    if (!strcmp(how, "wordexp"))
        found = wordexp("top/*/*", &words, 0) ? -1 : (int)words.we_wordc;
    if (!strcmp(how, "scandir"))
        found = scanned("top") + scanned("top/below");
    if (!strcmp(how, "ftw"))
        ftw("top", visited, 5);
    if (!strcmp(how, "nftw"))
        nftw("top", visited_by_nftw, 5, 0);
    if (!strcmp(how, "nftw-chdir"))
        nftw("top", visited_by_nftw, 5, FTW_CHDIR);
    if (!strcmp(how, "fts"))
        walked();
    printf("%d\n", found);
    return 0;
}
