/* One instruction of AVX-512 for each way in which labels flow. Each writes 64 bytes of `out`. The
 * operands are a, b and c: the first three blocks of `in`. engine.rs has the sources. */
#include "files.h"

static char in[N], out[9 * 64];

#define OPERANDS \
    "vmovdqu64 in(%%rip), %%zmm1\n vmovdqu64 64+in(%%rip), %%zmm2\n" \
    "vmovdqu64 128+in(%%rip), %%zmm0\n"
#define CASE(n, code) \
    __asm__ volatile(OPERANDS code "\n vmovdqu64 %%zmm18, %0" \
                     : "=m"(out[64 * (n)])::"memory", "rax", "xmm0", "xmm1", "xmm2")

int main(void)
{
    static const int mask = 0x5555;
    read_all(open("in", O_RDONLY), in, N);
    /* A rounding mode takes the place of the length. */
    CASE(0, "vaddps %{rn-sae%}, %%zmm1, %%zmm2, %%zmm18");
    /* The mask chooses b, and else a. */
    __asm__ volatile("kmovw %0, %%k1" ::"m"(mask));
    CASE(1, "vpblendmd %%zmm2, %%zmm1, %%zmm18%{%%k1%}");
    CASE(2, "vprorq $32, %%zmm1, %%zmm18");
    /* The second operand has the number 0. */
    CASE(3, "vmovlhps %%xmm1, %%xmm0, %%xmm18");
    CASE(4, "vmovdqa64 %%zmm0, %%zmm18\n vpshldvw %%zmm2, %%zmm1, %%zmm18");
    /* No vector is an operand, although 0 stands in its place. */
    CASE(5, "movl in(%%rip), %%eax\n vmovd %%eax, %%xmm18");
    /* A mask has no label, and replaces what was there. */
    memcpy(out + 6 * 64, in, 64);
    __asm__ volatile("kmovq %%k1, %0" : "=m"(out[6 * 64]));
    CASE(7, "vpmovzxbd %%xmm1, %%zmm18");
    CASE(8, "vpbroadcastd in(%%rip), %%zmm18");
    int fd = create_out();
    need(write(fd, out, sizeof out) == sizeof out);
}
