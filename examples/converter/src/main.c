#include <stdio.h>

#include "convert.h"
#include "version.h"

int main(int argc, char **argv)
{
    double length;
    char unit[16];
    if (argc != 3 || !parse(argv[1], &length, unit)) {
        fprintf(stderr, "converter %s\nusage: converter '12 km' mile\n", VERSION);
        return 2;
    }
    printf("%g %s\n", convert(length, unit, argv[2]), argv[2]);
    return 0;
}
