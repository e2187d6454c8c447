/*
 * Has the note of Go's linker, as a Go program that is linked with libc. It makes a call that
 * passes no library, and one of libc. Then it executes a program.
 */
#include <unistd.h>

__asm__(".pushsection .note.go.buildid, \"a\", @note\n"
        ".balign 4\n"
        ".long 4, 4, 4\n"
        ".ascii \"Go\\0\\0test\"\n"
        ".popsection\n");

int main(void)
{
    enum { WRITE = 1 };
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(WRITE), "D"(1), "S"("raw\n"), "d"(4)
                     : "rcx", "r11", "memory");
    if (result != 4 || write(1, "libc\n", 5) != 5)
        return 1;
    execl("/bin/echo", "echo", "deep", (char *)0);
    return 1;
}
