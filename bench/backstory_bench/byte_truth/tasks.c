/* Tasks whose flows are known, one after the other in one process. The function `do_NAME` reads
 * `NAME.in`, and writes `NAME.out`. `do_join` reads two files. `do_report` reads none: it writes
 * what `do_sum` left in memory.
 *
 * With ORACLE, clang's DataFlowSanitizer follows 8 bytes of the file that the first argument names,
 * from the offset in the second. Then each output has the label of each byte instead: bit `i`
 * stands for byte `i` of these 8. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef ORACLE
#include <sanitizer/dfsan_interface.h>
#endif

/* A row is: a key, three letters, four digits. */
#define ROW 8
#define ROWS 62
#define MOST (ROW * ROWS)

static unsigned char out[4 * MOST];
static unsigned totals[ROWS];
static int used, groups;
static char **words;

static void put(unsigned char byte)
{
    out[used++] = byte;
}

static int load(const char *name, unsigned char *in)
{
    int fd = open(name, O_RDONLY);
    int size = (int)read(fd, in, MOST);
    close(fd);
    if (size < 0)
        exit(3);
#ifdef ORACLE
    if (strcmp(words[1], name) == 0)
        for (int i = 0, first = atoi(words[2]); i < 8; i++)
            dfsan_set_label((dfsan_label)(1 << i), &in[first + i], 1);
#endif
    return size;
}

static void save(const char *name)
{
#ifdef ORACLE
    for (int i = 0; i < used; i++) {
        dfsan_label label = dfsan_read_label(&out[i], 1);
        dfsan_set_label(0, &out[i], 1);
        out[i] = (unsigned char)label;
    }
#endif
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (write(fd, out, used) != used)
        exit(3);
    close(fd);
    used = 0;
}

void do_permute(void)
{
    unsigned char in[MOST];
    for (int i = load("permute.in", in) - 1; i >= 0; i--)
        put(in[i]);
    save("permute.out");
}

void do_filter(void)
{
    unsigned char in[MOST];
    int size = load("filter.in", in);
    for (int i = 0; i < size; i += ROW) {
        if (in[i + 1] > 'm')
            for (int k = 1; k < 4; k++)
                put(in[i + k]);
    }
    save("filter.out");
}

static int by_key(const void *a, const void *b)
{
    return **(const unsigned char *const *)a - **(const unsigned char *const *)b;
}

void do_sort(void)
{
    unsigned char in[MOST];
    const unsigned char *rows[ROWS];
    int size = load("sort.in", in);
    for (int i = 0; i < size / ROW; i++)
        rows[i] = &in[i * ROW];
    qsort(rows, size / ROW, sizeof rows[0], by_key);
    for (int i = 0; i < size / ROW; i++)
        for (int k = 0; k < ROW; k++)
            put(rows[i][k]);
    save("sort.out");
}

void do_join(void)
{
    unsigned char left[MOST], right[MOST];
    int size = load("join.in", left), other = load("join.too.in", right);
    for (int i = 0; i < size; i += ROW) {
        for (int j = 0; j < other; j += ROW) {
            if (left[i] == right[j])
                for (int k = 1; k < ROW; k++)
                    put(k < 4 ? left[i + k] : right[j + k]);
        }
    }
    save("join.out");
}

void do_sum(void)
{
    unsigned char in[MOST];
    int size = load("sum.in", in);
    for (int i = 0; i < size; i += ROW) {
        unsigned number = 0;
        for (int k = 4; k < ROW; k++)
            number = number * 10 + (in[i + k] - '0');
        /* Four rows are a group. */
        if (i / ROW % 4 == 0)
            totals[groups++] = number;
        else
            totals[groups - 1] += number;
    }
    for (int i = 0; i < groups; i++) {
        put((unsigned char)totals[i]);
        put((unsigned char)(totals[i] >> 8));
    }
    save("sum.out");
}

void do_base64(void)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned char in[MOST];
    int size = load("base64.in", in);
    /* An incomplete group of three bytes at the end is left out. */
    for (int i = 0; i + 2 < size; i += 3) {
        put((unsigned char)digits[in[i] >> 2]);
        put((unsigned char)digits[(in[i] & 3) << 4 | in[i + 1] >> 4]);
        put((unsigned char)digits[(in[i + 1] & 15) << 2 | in[i + 2] >> 6]);
        put((unsigned char)digits[in[i + 2] & 63]);
    }
    save("base64.out");
}

void do_compress(void)
{
    unsigned char in[MOST];
    int size = load("compress.in", in);
    for (int i = 0, n; i < size; i += n) {
        for (n = 1; i + n < size && in[i + n] == in[i];)
            n++;
        put((unsigned char)n);
        put(in[i]);
    }
    save("compress.out");
}

void do_encrypt(void)
{
    unsigned char in[MOST];
    int size = load("encrypt.in", in);
    unsigned state = 12345;
    for (int i = 0; i < size; i++) {
        state = state * 1103515245 + 12345;
        put(in[i] ^ (unsigned char)(state >> 16));
        /* Each block of 8 is chained. */
        state = i % 8 == 7 ? 12345U : state ^ in[i];
    }
    save("encrypt.out");
}

void do_report(void)
{
    for (int i = 0; i < groups; i++)
        put((unsigned char)(totals[i] >> 8));
    save("report.out");
}

int main(int argc, char **argv)
{
    words = argv;
    do_permute();
    do_filter();
    do_sort();
    do_join();
    do_sum();
    do_base64();
    do_compress();
    do_encrypt();
    do_report();
    return argc ? 0 : 3;
}
