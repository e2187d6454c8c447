/* Starts the byte engine, for programs that are being recorded (`record --bytes`).
 *
 * In: the options of the engine, and a command. Out: the engine in this process, which loads the
 * command. For each program that the command executes, the engine executes this launcher again.
 * Valgrind's own launcher would do, but it is a dynamic program, which would be recorded itself.
 * Debian's is a script that changes the environment, too.
 *
 * A static program without libc. GPL-2.0-or-later, as the engine. */
#include <asm/unistd.h>

enum { PATH = 4096, VARIABLES = 16384 };

static const char tool[] = "bytes-amd64-linux";
static const char launcher_name[] = "VALGRIND_LAUNCHER=", library_name[] = "VALGRIND_LIB=";

/* Longer than any of the names. */
static char launcher[32 + PATH], library[32 + PATH], program[PATH + 32];
static const char *environment[VARIABLES];

static long call(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return result;
}

static int starts(const char *text, const char *with)
{
    while (*with)
        if (*text++ != *with++)
            return 0;
    return 1;
}

static char *append(char *at, const char *text)
{
    while (*text)
        *at++ = *text++;
    *at = 0;
    return at;
}

static int fails(const char *why)
{
    char text[128], *end = append(append(text, why), "\n");
    call(__NR_write, 2, (long)text, end - text);
    return 125;
}

/* The variables by which Valgrind knows its launcher and its files. */
static int add_variables(const char *const *given, const char *own)
{
    unsigned count = 0;
    append(append(launcher, launcher_name), own);
    *append(append(library, library_name), program) = 0;
    for (; *given; given++)
        if (!starts(*given, launcher_name) && !starts(*given, library_name)) {
            if (count >= VARIABLES - 3)
                return 0;
            environment[count++] = *given;
        }
    environment[count++] = launcher;
    environment[count] = library;
    return 1;
}

__attribute__((used)) int start(const long *stack)
{
    char own[PATH];
    const char *const *arguments = (const char *const *)stack + 1;
    long length = call(__NR_readlink, (long)"/proc/self/exe", (long)own, PATH - 1);
    if (length <= 0)
        return fails("the byte engine's launcher cannot find itself: is /proc mounted?");
    own[length] = 0;
    append(program, own);
    while (length > 0 && program[length - 1] != '/')
        length--;
    program[length - 1] = 0;
    if (!add_variables(arguments + stack[0] + 1, own))
        return fails("the environment has too many variables for the byte engine");
    program[length - 1] = '/';
    append(program + length, tool);
    call(__NR_execve, (long)program, (long)arguments, (long)environment);
    return fails("the byte engine cannot be executed");
}

__asm__(".globl _start\n"
        "_start:\n"
        "    mov %rsp, %rdi\n"
        "    and $-16, %rsp\n"
        "    call start\n"
        "    mov %eax, %edi\n"
        "    mov $60, %eax\n" /* exit */
        "    syscall\n");
