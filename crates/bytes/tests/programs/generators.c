/* The generators of the truth table, in C: their flows are known to the engine and to clang's
 * DataFlowSanitizer. With ORACLE, the sanitizer labels the 8 bytes of `in` from the offset in the
 * first argument. Then `out` has its label of each byte instead: bit `i` stands for the byte
 * `i` of these 8. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef ORACLE
#include <sanitizer/dfsan_interface.h>
#endif

#define ROWS 8
#define IN (8 * ROWS)

static unsigned char in[IN], out[1024];
static int used;

static void put(unsigned char byte)
{
    out[used++] = byte;
}

/* A row is: key, three letters, four digits. */
static const unsigned char *row(int number)
{
    return &in[8 * number];
}

static void permute(void)
{
    for (int i = ROWS - 1; i >= 0; i--) {
        for (int k = 0; k < 8; k++)
            put(row(i)[(k * 3 + i) % 8]);
    }
}

static void filter(void)
{
    for (int i = 0; i < ROWS; i++) {
        if (row(i)[1] > 'm')
            for (int k = 1; k < 4; k++)
                put(row(i)[k]);
    }
}

static int by_key(const void *a, const void *b)
{
    return **(const unsigned char *const *)a - **(const unsigned char *const *)b;
}

static void sort(void)
{
    const unsigned char *rows[ROWS];
    for (int i = 0; i < ROWS; i++)
        rows[i] = row(i);
    qsort(rows, ROWS, sizeof rows[0], by_key);
    for (int i = 0; i < ROWS; i++)
        put(rows[i][4]);
}

static void join(void)
{
    for (int i = 0; i < ROWS / 2; i++) {
        for (int k = ROWS / 2; k < ROWS; k++) {
            if (row(i)[0] % 4 == row(k)[0] % 4) {
                put(row(i)[1]);
                put(row(k)[2]);
            }
        }
    }
}

static void aggregate(void)
{
    unsigned sum = 0;
    for (int i = 0; i < ROWS; i++) {
        unsigned number = 0;
        for (int k = 4; k < 8; k++)
            number = number * 10 + (row(i)[k] - '0');
        sum = i % 4 ? sum + number : number;
        put((unsigned char)sum);
        put((unsigned char)(sum >> 8));
    }
}

static void compress(void)
{
    for (int i = 0; i < IN;) {
        int n = 1;
        while (i + n < IN && in[i + n] == in[i])
            n++;
        put((unsigned char)n);
        put(in[i]);
        i += n;
    }
}

static void encrypt(void)
{
    unsigned state = 12345;
    for (int i = 0; i < IN; i++) {
        state = state * 1103515245 + 12345;
        put(in[i] ^ (unsigned char)(state >> 16));
        /* Each block of 8 is chained. */
        state = i % 8 == 7 ? 12345u : state ^ in[i];
    }
}

int main(int argc, char **argv)
{
    int fd = open("in", O_RDONLY);
    if (read(fd, in, IN) != IN)
        return 3;
#ifdef ORACLE
    int first = argc > 1 ? atoi(argv[1]) : 0;
    for (int i = 0; i < 8; i++)
        dfsan_set_label((dfsan_label)(1 << i), &in[first + i], 1);
#endif
    permute();
    filter();
    sort();
    join();
    aggregate();
    compress();
    encrypt();
#ifdef ORACLE
    for (int i = 0; i < used; i++) {
        dfsan_label label = dfsan_read_label(&out[i], 1);
        dfsan_set_label(0, &out[i], 1);
        out[i] = (unsigned char)label;
    }
#endif
    fd = open("out", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    return argc < 3 && argv && write(fd, out, used) == used ? 0 : 3;
}
