/* AVX-512, which Valgrind does not know: moves whose labels are exact. */
#include "files.h"

#include <immintrin.h>

static char rows[N], copies[N] __attribute__((aligned(64)));

/* By a register that only AVX-512 has, and by an address that is relative to the instruction. */
static void through_high_registers(void)
{
    __asm__ volatile("vmovdqu64 rows(%%rip), %%zmm17\n vmovdqa32 %%zmm17, %%zmm3\n"
                     "vmovdqa64 %%zmm3, copies(%%rip)\n" ::
                         : "memory", "xmm3");
}

/* By addresses with a register, an index and a short displacement, whose unit is 64 bytes. */
static void through_addresses(void)
{
    __asm__ volatile("vmovups 64(%0,%2,4), %%zmm0\n vmovups %%zmm0, 64(%1)\n" ::"r"(rows),
                     "r"(copies), "r"(0L)
                     : "memory", "xmm0");
}

/* Two halves, each chosen by a mask, and one by the low half of a register that both know. */
static void through_masks(void)
{
    __m512i low = _mm512_maskz_loadu_epi32(0x00ff, rows + 128);
    __m512i both = _mm512_mask_loadu_epi32(low, 0xff00, rows + 128);
    _mm512_mask_storeu_epi8(copies + 128, 0x00000000ffffffffULL, both);
    __m256i high = _mm512_extracti64x4_epi64(both, 1);
    _mm256_storeu_si256((__m256i *)(copies + 160), high);
    /* The extraction mixes: the exact labels come from a copy again. */
    _mm512_mask_storeu_epi8(copies + 128, 0xffffffff00000000ULL, both);
}

/* An addition of bytes has the label of each byte; a known instruction empties the upper half. */
static void through_elements(void)
{
    __m512i zero;
    __asm__ volatile("vpternlogd $0xff, %%zmm9, %%zmm9, %%zmm9\n vpxor %%xmm9, %%xmm9, %%xmm9\n"
                     "vmovdqa64 %%zmm9, %0\n"
                     : "=v"(zero)::"xmm9");
    __m512i all = _mm512_add_epi8(_mm512_loadu_si512(rows + 192), zero);
    _mm512_storeu_si512(copies + 192, all);
}

/* The dynamic linker keeps the registers of the first call of a function in memory meanwhile. */
static void through_a_first_call(void)
{
    __asm__ volatile("vmovdqu64 64+rows(%%rip), %%zmm5" ::: "xmm5");
    getpgrp();
    __asm__ volatile("vmovdqu64 %%zmm5, 64+copies(%%rip)" ::: "memory");
}

static void interrupt(int signal)
{
    /* The interrupted code finds its registers as they were. */
    __asm__ volatile("vpternlogd $0xff, %%zmm17, %%zmm17, %%zmm17\n kxnorw %%k1, %%k1, %%k1" ::
                         : "xmm0");
    (void)signal;
}

int main(void)
{
    char in[N];
    signal(SIGUSR1, interrupt);
    read_in(in);
    reverse(rows, in, N);
    through_high_registers();
    through_addresses();
    through_masks();
    through_elements();
    through_a_first_call();
    __asm__ volatile("vmovdqu64 %0, %%zmm17" ::"m"(rows[0]));
    raise(SIGUSR1);
    __asm__ volatile("vmovdqu64 %%zmm17, %0" : "=m"(copies[0]));
    write_out(copies);
}
