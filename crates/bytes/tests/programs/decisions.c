/* Branches and comparisons of bytes of `in` decide about bytes of `out`:
 * - 0: how many are at most 3
 * - 1: whether one is greater than another
 * - 2: one of two constants
 * - 3: a constant
 * - 4: a copy of byte 30
 * - 5: whether a function returned early */
#include "files.h"

static volatile int found;

static __attribute__((noinline)) void count(void)
{
    found++;
}

static __attribute__((noinline)) int is_dot(const char *at)
{
    if (*at == '.')
        return 7;
    return 5;
}

int main(void)
{
    unsigned char in[N], out[6];
    read_in((char *)in);
    for (int i = 0; i < N; i++) {
        if (in[i] <= 3)
            count();
    }
    out[0] = (unsigned char)(found + '0');
    out[1] = in[9] > in[10];
    out[2] = in[20] == 5 ? 'y' : 'n';
    out[3] = 'k';
    out[4] = in[30];
    out[5] = (unsigned char)is_dot((char *)in + 40);
    need(write(create_out(), out, 6) == 6);
}
