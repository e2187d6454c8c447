/*
 * Prints the cost of a statement of libbackstory in ns: the best of 40 rounds of 5,000 calls.
 *
 * gcc -O2 -Icrates/disclosure/include -o cost crates/disclosure/benches/cost.c
 * ./cost; backstory record -- ./cost
 */
#include <backstory.h>
#include <stdio.h>
#include <time.h>

enum { ROUNDS = 40, CALLS = 5000 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(void)
{
    double best = 1e18;
    backstory_note("first", "1");
    for (int round = 0; round < ROUNDS; round++) {
        double begin = now();
        for (int call = 0; call < CALLS; call++)
            backstory_note("loss", "0.123");
        double each = (now() - begin) / CALLS;
        best = each < best ? each : best;
    }
    printf("%.1f ns\n", best);
    return 0;
}
