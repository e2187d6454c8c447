/*
 * Uses inherited descriptors through libc's streams alone: reads its standard input, writes its
 * standard output.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    char line[256];
    if (strchr(how, 'b')) /* setting a buffer does not count as a use of the stream */
        setvbuf(stdin, malloc(4096), _IOFBF, 4096), setvbuf(stdout, malloc(4096), _IOFBF, 4096);
    if (strchr(how, 'r'))
        while (fgets(line, sizeof line, stdin))
            if (strchr(how, 'w'))
                printf("%s", line);
    if (strchr(how, 'f'))
        puts("flushed"), fflush(stdout);
    if (strchr(how, 'u'))
        fputs("unbuffered", stderr);
    if (strchr(how, 'x'))
        exit(0);
    if (strchr(how, 'q'))
        _exit(0);
    return 0;
}
