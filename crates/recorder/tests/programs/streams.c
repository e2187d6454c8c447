/* Uses streams: libc itself reads, writes and closes the files. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MUST(x) \
    do { \
        if (!(x)) { \
            perror(#x); \
            exit(1); \
        } \
    } while (0)

int main(void)
{
    char text[64];
    FILE *in = fopen("input", "r"), *out = fopen("out", "w"), *more = fopen("out", "a+");
    MUST(in && out && more);
    MUST(fgets(text, sizeof text, in) && fputs(text, out) >= 0);
    MUST(fclose(out) == 0);
    MUST(fprintf(more, "appended\n") > 0 && fclose(more) == 0);
    MUST(!fopen("input", "?") && !fopen("absent", "r"));
    MUST((in = freopen("input", "rb", in)) && fgetc(in) != EOF && fclose(in) == 0);
    FILE *at_end = fopen("out", "a");
    MUST(at_end && ftell(at_end) > 0 && fclose(at_end) == 0);
    FILE *excl = fopen("out", "wx");
    MUST(!excl);
    puts("to stdout");
    return 0;
}
