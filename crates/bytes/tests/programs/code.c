/* Machine code that the program writes moves the bytes: `mov al, [rsi]; mov [rdi], al; ret`, with
 * another offset each time. */
#include "files.h"

int main(void)
{
    char in[N], out[N];
    read_in(in);
    unsigned char *code =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(code != MAP_FAILED);
    for (int i = 0; i < N; i++) {
        int from = N - 1 - i, to = i;
        memcpy(code, "\x8a\x86", 2);
        memcpy(code + 2, &from, 4);
        memcpy(code + 6, "\x88\x87", 2);
        memcpy(code + 8, &to, 4);
        code[12] = 0xc3;
        __asm__ volatile("call *%0" ::"r"(code), "S"(in), "D"(out) : "rax", "memory", "cc");
    }
    write_out(out);
}
