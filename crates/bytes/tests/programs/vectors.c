/* A permutation of vectors, in assembly. */
#include "files.h"

int main(void)
{
    char in[N], out[N];
    static const char backwards[16] = {15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
    read_in(in);
    for (int i = 0; i < N; i += 16) {
        __asm__ volatile("movdqu (%0), %%xmm0\n pshufb (%2), %%xmm0\n movdqu %%xmm0, (%1)" ::"r"(
                             in + N - 16 - i),
                         "r"(out + i), "r"(backwards)
                         : "xmm0", "memory");
    }
    write_out(out);
}
