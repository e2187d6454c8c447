/*
 * An experiment: what a recorder in a Go program would cost (docs/design/guard.md).
 *
 * The library is preloaded into a Go program that is linked with libc. Its constructor finds the
 * code of `Syscall6` in the executable and puts a jump there. Each call is then made on a stack of
 * the thread's own. A record of 64 bytes goes into the thread's memory, where nothing reads it.
 *
 * With GO_CALLS_SAYS in the environment, it prints where it put the jump. x86-64 only.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

#define IN_THREAD __attribute__((tls_model("initial-exec")))

__thread char go_calls_stack[16384] __attribute__((aligned(16), tls_model("initial-exec")));
static __thread unsigned long records[8 * 512] IN_THREAD;
static __thread unsigned long made IN_THREAD;

/* The beginning of `Syscall6`: from the registers of Go to those of the kernel, then the call. */
static const unsigned char code[] = {0x49, 0x89, 0xf2, 0x48, 0x89, 0xfa, 0x48,
                                     0x89, 0xce, 0x48, 0x89, 0xdf, 0x0f, 0x05};

static inline long make_call(long n, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* Leaves the vector registers as they are: Go expects zero in one of them. */
__attribute__((used, target("general-regs-only"))) long
go_calls_record(long n, long a, long b, long c, long d, long e, long f)
{
    unsigned long *record = records + 8 * (made++ % 512);
    record[0] = __rdtsc();
    record[1] = n;
    record[2] = a;
    record[3] = b;
    if (n == SYS_openat) {
        const char *path = (const char *)b;
        char *to = (char *)(record + 4);
        for (int i = 0; i < 24 && path[i]; i++)
            to[i] = path[i];
    }
    long result = make_call(n, a, b, c, d, e, f);
    record[7] = result;
    return result;
}

/*
 * Takes the place of the code above and of the code behind it, which puts the result or an error
 * into Go's registers. `futex` (202) is made at once, on the stack of the goroutine.
 */
extern char go_calls_entry[];
__asm__(".text\n.globl go_calls_entry\ngo_calls_entry:\n"
        " mov %rsi,%r10\n mov %rdi,%rdx\n mov %rcx,%rsi\n mov %rbx,%rdi\n"
        " cmp $202,%rax\n jne 1f\n syscall\n jmp 2f\n"
        "1: push %rbp\n mov %rsp,%rbp\n mov go_calls_stack@gottpoff(%rip),%r11\n"
        " mov %fs:0,%rbx\n lea 16384(%rbx,%r11),%rsp\n"
        " push %rbp\n push %r14\n push %r15\n push %r12\n push %r13\n sub $8,%rsp\n"
        " sub $8,%rsp\n push %r9\n mov %r8,%r9\n mov %r10,%r8\n mov %rdx,%rcx\n"
        " mov %rsi,%rdx\n mov %rdi,%rsi\n mov %rax,%rdi\n call go_calls_record\n"
        " add $24,%rsp\n pop %r13\n pop %r12\n pop %r15\n pop %r14\n pop %rbp\n"
        " mov %rbp,%rsp\n pop %rbp\n xor %edx,%edx\n"
        "2: cmp $0xfffffffffffff001,%rax\n jbe 3f\n"
        " neg %rax\n mov %rax,%rcx\n mov $-1,%rax\n xor %ebx,%ebx\n ret\n"
        "3: mov %rdx,%rbx\n xor %ecx,%ecx\n ret\n");

/* The place of the code in the executable, or NULL. */
static char *find_code(void)
{
    char line[4096], executable[4096] = {0}, rights[8], *found = NULL;
    FILE *maps = fopen("/proc/self/maps", "r");
    if (!maps)
        return NULL;
    long named = readlink("/proc/self/exe", executable, sizeof executable - 1);
    while (named > 0 && !found && fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3 && rights[2] == 'x' &&
            strstr(line, executable))
            found = memmem((void *)from, to - from, code, sizeof code);
    }
    fclose(maps);
    return found;
}

/* A jump of five bytes reaches 2 GiB. It leads to a longer one, near the executable. */
__attribute__((constructor)) static void redirect(void)
{
    char *call = find_code();
    if (!call)
        return;
    char *near = mmap((void *)0x10000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    long distance = near - (call + 5);
    if (near == MAP_FAILED || distance != (int)distance) {
        fprintf(stderr, "go_calls: no page near the executable\n");
        return;
    }
    void *entry = go_calls_entry, *page = (void *)((unsigned long)call & ~0xfffUL);
    memcpy(near, (unsigned char[]){0xff, 0x25, 0, 0, 0, 0}, 6);
    memcpy(near + 6, &entry, sizeof entry);
    mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
    call[0] = (char)0xe9;
    memcpy(call + 1, &(int){distance}, 4);
    mprotect(page, 8192, PROT_READ | PROT_EXEC);
    if (getenv("GO_CALLS_SAYS"))
        fprintf(stderr, "go_calls: a jump at %p\n", (void *)call);
}
