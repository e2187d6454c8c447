/*
 * Wrappers for functions of libc that make watched calls inside, where no redirection sees them, or
 * return functions of libc behind the recorder's. Each makes sure that the process has the filter.
 * It ends in a jump to libc's function, whose caller is thus the program itself.
 */
    .macro stub name, also
    .section .rodata.str1.1, "aMS", @progbits, 1
9:  .asciz "\name"
    .text
    .globl \name
    .type \name, @function
\name:
    .ifnb \also
    .globl \also
    .type \also, @function
\also:
    .endif
    lea 9b(%rip), %rax
    jmp bs_unseen_function
    .size \name, . - \name
    .endm

    stub tmpfile, tmpfile64
    stub sem_open
    stub sem_unlink

/*
 * `dlsym` in a certain library: what it returns decides. With RTLD_DEFAULT (0) and RTLD_NEXT (-1),
 * the result depends on the caller.
 */
    .section .rodata.str1.1, "aMS", @progbits, 1
9:  .asciz "dlsym"
    .text
    .globl dlsym
    .type dlsym, @function
dlsym:
    lea 1(%rdi), %rax
    cmp $1, %rax
    ja 1f
    lea 9b(%rip), %rax
    jmp bs_unseen_function
1:  jmp bs_find_in_library
    .size dlsym, . - dlsym

    .type bs_unseen_function, @function
bs_unseen_function:
    .cfi_startproc
    .irp register, rdi, rsi, rdx, rcx, r8
    push %\register
    .cfi_adjust_cfa_offset 8
    .endr
    mov %rax, %rdi
    call bs_begin_unseen_function
    .irp register, r8, rcx, rdx, rsi, rdi
    pop %\register
    .cfi_adjust_cfa_offset -8
    .endr
    jmp *%rax
    .cfi_endproc
    .size bs_unseen_function, . - bs_unseen_function

    .section .note.GNU-stack, "", @progbits
