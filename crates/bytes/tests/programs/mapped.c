/* Both files are mapped. One half is synchronized by msync, the other by the end of the program. */
#include "files.h"

int main(void)
{
    int from = open("in", O_RDONLY), to = create_out();
    need(ftruncate(to, N) == 0);
    char *in = mmap(NULL, N, PROT_READ, MAP_PRIVATE, from, 0);
    char *out = mmap(NULL, N, PROT_READ | PROT_WRITE, MAP_SHARED, to, 0);
    need(in != MAP_FAILED && out != MAP_FAILED);
    reverse(out, in + N / 2, N / 2);
    msync(out, N, MS_SYNC);
    reverse(out + N / 2, in, N / 2);
}
