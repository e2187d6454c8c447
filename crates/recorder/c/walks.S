/*
 * Wrappers for functions of libc that list directories inside. Each makes sure that libc's own
 * entry points come to the recorder (redirect.c). It ends in a jump to libc's function.
 */
    .macro walk name, also
    .section .rodata.str1.1, "aMS", @progbits, 1
9:  .asciz "\name"
    .text
    .fill 5, 1, 0x90 /* room for a jump, as in BS_INTERCEPTED */
    .globl \name
    .type \name, @function
\name:
    .ifnb \also
    .globl \also
    .type \also, @function
\also:
    .endif
    nop
    nop
    lea 9b(%rip), %rax
    jmp bs_walk
    .size \name, . - \name
    .endm

    walk glob, glob64
    walk wordexp
    walk scandir, scandir64
    walk scandirat, scandirat64
    walk ftw, ftw64
    walk nftw, nftw64
    walk fts_open, fts64_open

    .type bs_walk, @function
bs_walk:
    .cfi_startproc
    .irp register, rdi, rsi, rdx, rcx, r8
    push %\register
    .cfi_adjust_cfa_offset 8
    .endr
    mov %rax, %rdi
    call bs_begin_walk
    .irp register, r8, rcx, rdx, rsi, rdi
    pop %\register
    .cfi_adjust_cfa_offset -8
    .endr
    jmp *%rax
    .cfi_endproc
    .size bs_walk, . - bs_walk

    .section .note.GNU-stack, "", @progbits
