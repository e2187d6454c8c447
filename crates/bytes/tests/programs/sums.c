/* Each byte comes as a sum of two bytes, less one of them. Between, `ROUNDS` sums of three bytes
 * are made. They are kept if `KEEP` is 1, and else overwritten. */
#include "files.h"

#ifndef ROUNDS
#define ROUNDS 200
#endif
#ifndef KEEP
#define KEEP 0
#endif

static char sums[(KEEP ? ROUNDS : 1) * N];

int main(void)
{
    char in[N], out[N], pairs[N];
    read_in(in);
    for (int i = 0; i < N; i++)
        pairs[i] = in[N - 1 - i] + in[i];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < N; i++)
            *(volatile char *)&sums[(KEEP ? round * N : 0) + i] =
                in[i] + in[(i + round) % N] + in[(i + 2 * round + 1) % N];
    }
    for (int i = 0; i < N; i++)
        out[i] = pairs[i] - in[i];
    write_out(out);
}
