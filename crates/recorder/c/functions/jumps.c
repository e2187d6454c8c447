/*
 * Closes the frames of functions that a longjmp or an exception leaves: their compilers' hooks do
 * not run then.
 *
 * In: the stack pointer with which the thread goes on. Out: no frame below it is open.
 */
#include "functions.h"

BS_API void longjmp(void *buffer, int value) __attribute__((noreturn));
BS_API void _longjmp(void *buffer, int value) __attribute__((noreturn));
BS_API void siglongjmp(void *buffer, int value) __attribute__((noreturn));
BS_API void __longjmp_chk(void *buffer, int value) __attribute__((noreturn));
BS_API void *__cxa_begin_catch(void *exception);

extern const char *gnu_get_libc_version(void) __attribute__((weak));

/* The word of a jump buffer with the stack pointer. */
enum { STACK_POINTER = 6 };

/* glibc hides pointers in jump buffers: it xors a secret of the thread, and rotates. */
static u64 target(const void *buffer)
{
    u64 stack = ((const u64 *)buffer)[STACK_POINTER], secret;
    if (!gnu_get_libc_version)
        return stack;
    __asm__("movq %%fs:0x30, %0" : "=r"(secret));
    return (stack >> 17 | stack << 47) ^ secret;
}

void longjmp(void *buffer, int value)
{
    bs_functions_left(target(buffer));
    BS_NEXT(longjmp)(buffer, value);
    __builtin_unreachable();
}

void _longjmp(void *buffer, int value)
{
    bs_functions_left(target(buffer));
    BS_NEXT(_longjmp)(buffer, value);
    __builtin_unreachable();
}

void siglongjmp(void *buffer, int value)
{
    bs_functions_left(target(buffer));
    BS_NEXT(siglongjmp)(buffer, value);
    __builtin_unreachable();
}

void __longjmp_chk(void *buffer, int value)
{
    bs_functions_left(target(buffer));
    BS_NEXT(__longjmp_chk)(buffer, value);
    __builtin_unreachable();
}

/* The runtime of C++: the caller catches an exception. */
void *__cxa_begin_catch(void *exception)
{
    bs_functions_left((u64)__builtin_dwarf_cfa());
    return BS_NEXT(__cxa_begin_catch)(exception);
}
