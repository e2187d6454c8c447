/*
 * Forbids itself and all programs that it executes to make memory executable. Then it executes its
 * arguments, or makes the calls of a typical program.
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

int main(int argc, char **argv)
{
    if (prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) != 0)
        return 77; /* an older kernel lacks this */
    if (argc > 1) {
        execvp(argv[1], argv + 1);
        return 1;
    }
    printf("locale %s\n", setlocale(LC_ALL, ""));
    fflush(stdout);
    return system("cat input");
}
