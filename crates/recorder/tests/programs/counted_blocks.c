/* Prints the number of blocks allocated and freed before `main`. It has its own allocator. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static char heap[1 << 20] __attribute__((aligned(16)));
static size_t used;
static int allocated, freed;

void *malloc(size_t size)
{
    void *block = heap + used;
    allocated++;
    used += (size + 15) & ~(size_t)15;
    return block;
}

void *calloc(size_t count, size_t size)
{
    return memset(malloc(count * size), 0, count * size);
}

void *realloc(void *block, size_t size)
{
    void *larger = malloc(size);
    return block ? memcpy(larger, block, size) : larger;
}

void free(void *block)
{
    freed += block != NULL;
}

int main(void)
{
    int before = allocated, gone = freed;
    printf("%d allocated, %d freed\n", before, gone);
    return 0;
}
