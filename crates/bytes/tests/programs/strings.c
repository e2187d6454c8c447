/* Through the processor's instructions for strings, which repeat themselves. */
#include "files.h"

static void move(char *to, const char *from, size_t n)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n)::"memory");
}

static void move_words(char *to, const char *from, size_t n)
{
    __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(n)::"memory");
}

/* From the last byte to the first, so that the ranges may overlap. */
static void move_up(char *to, const char *from, size_t n)
{
    to += n - 1, from += n - 1;
    __asm__ volatile("std\n rep movsb\n cld" : "+D"(to), "+S"(from), "+c"(n)::"memory");
}

static void fill(char *to, size_t n)
{
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(0) : "memory");
}

/* The byte at the end of a string, and the end of the string before it. */
static char last(const char **end)
{
    char byte;
    __asm__ volatile("std\n lodsb\n cld" : "=a"(byte), "+S"(*end)::"memory");
    return byte;
}

int main(void)
{
    char in[N], copy[N + 1], out[N];
    read_in(in);
    /* These bytes leave nothing behind. */
    move(out, in, N);
    fill(out, N);
    move_words(copy, in, N / 8);
    move_up(copy + 1, copy, N);
    const char *end = copy + N;
    for (int i = 0; i < N; i++)
        out[i] |= last(&end);
    write_out(out);
}
