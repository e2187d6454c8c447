/* Two computations over 8 bytes of `in`: base64, and a table look-up of running sums. With ORACLE,
 * clang's DataFlowSanitizer follows the bytes. Then `out` has its label of each byte instead: bit
 * `i` stands for byte `i`. */
#include <fcntl.h>
#include <unistd.h>
#ifdef ORACLE
#include <sanitizer/dfsan_interface.h>
#endif

#define IN 8
#define OUT (12 + IN)

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void base64(const unsigned char *in, char *out)
{
    for (int i = 0; i < 9; i += 3) {
        unsigned a = in[i], b = in[i + 1], c = i + 2 < IN ? in[i + 2] : 0;
        *out++ = digits[a >> 2];
        *out++ = digits[(a & 3) << 4 | b >> 4];
        *out++ = digits[(b & 15) << 2 | c >> 6];
        *out++ = i + 2 < IN ? digits[c & 63] : '=';
    }
}

static void sums(const unsigned char *in, char *out)
{
    static char table[256];
    unsigned sum = 0;
    for (int i = 0; i < 256; i++)
        table[i] = (char)(i * 31);
    for (int i = 0; i < IN; i++) {
        /* Each sum forgets what came before the last multiple of 3. */
        sum = i % 3 ? sum + in[i] : in[i];
        out[i] = table[sum & 255];
    }
}

int main(void)
{
    unsigned char in[IN];
    char out[OUT];
    int fd = open("in", O_RDONLY);
    if (read(fd, in, IN) != IN)
        return 3;
#ifdef ORACLE
    for (int i = 0; i < IN; i++)
        dfsan_set_label((dfsan_label)(1 << i), &in[i], 1);
#endif
    base64(in, out);
    sums(in, out + 12);
#ifdef ORACLE
    for (int i = 0; i < OUT; i++) {
        dfsan_label label = dfsan_read_label(&out[i], 1);
        dfsan_set_label(0, &out[i], 1);
        out[i] = (char)label;
    }
#endif
    fd = open("out", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    return write(fd, out, OUT) == OUT ? 0 : 3;
}
