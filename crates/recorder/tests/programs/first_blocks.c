/* Prints the addresses of its first allocated blocks, one of each size. */
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    static char *blocks[600];
    for (int size = 1; size < 600; size++)
        blocks[size] = malloc(size);
    for (int size = 1; size < 600; size++)
        printf("%d %lx\n", size, (unsigned long)blocks[size] & 0xffffff);
    return 0;
}
