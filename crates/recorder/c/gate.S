/*
 * The gate: the one `syscall` instruction that the guard lets through, at a fixed offset of the
 * library's text. Number and arguments are in the registers that the instruction uses. No other
 * register is changed. A cancelled thread unwinds through here, so the unwind information is
 * needed.
 */
    .section .text.gate, "ax", @progbits
    .balign 16
    .globl bs_gate
    .hidden bs_gate
    .type bs_gate, @function
bs_gate:
    .cfi_startproc
    cmpq $0, bs_gate_elsewhere(%rip)
    jne 1f
    syscall
    .globl bs_gate_ip
    .hidden bs_gate_ip
bs_gate_ip:
    ret
1:  jmp *bs_gate_elsewhere(%rip)
    .cfi_endproc
    .size bs_gate, . - bs_gate

/* The same instruction elsewhere, where the guard watches it. */
    .balign 16
    .globl bs_plain
    .hidden bs_plain
    .type bs_plain, @function
bs_plain:
    .cfi_startproc
    syscall
    ret
    .cfi_endproc
    .size bs_plain, . - bs_plain

/*
 * vfork: the child returns into the caller on the shared stack. So the return address stays in a
 * register during the call: the kernel preserves rdi. The child's records stand between the two
 * marks in its parent's chunk.
 */
    .text
    .globl vfork
    .type vfork, @function
    .globl __vfork
    .type __vfork, @function
    .fill 5, 1, 0x90
vfork:
__vfork:
    .cfi_startproc
    nop /* room for a jump, as in BS_INTERCEPTED */
    nop
    sub $8, %rsp
    .cfi_adjust_cfa_offset 8
    call bs_vfork_begins
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
    .cfi_register %rip, %rdi
    mov $58, %eax /* vfork */
    syscall
    push %rdi
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rip, 0
    test %rax, %rax
    jz 1f
    mov %rax, %rdi
    jmp bs_vfork_ends
1:  ret
    .cfi_endproc
    .size vfork, . - vfork
    .size __vfork, . - __vfork

/*
 * clone and clone3 by number, for clone.c. The arguments are those of `syscall`, the number first.
 * `keeps` is 1 if the child returns on the same stack, as after vfork. `ends` is the function that
 * takes the parent's result.
 */
    .macro clone name, keeps, ends
    .globl \name
    .hidden \name
    .type \name, @function
\name:
    .cfi_startproc
    mov %rdi, %rax
    mov %rsi, %rdi
    mov %rdx, %rsi
    mov %rcx, %rdx
    mov %r8, %r10
    mov %r9, %r8
    .if \keeps
    pop %r9
    .cfi_adjust_cfa_offset -8
    .cfi_register %rip, %r9
    .endif
    syscall
    .if \keeps
    push %r9
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rip, 0
    .endif
    test %rax, %rax
    jz 1f
    mov %rax, %rdi
    jmp \ends
1:  ret
    .cfi_endproc
    .size \name, . - \name
    .endm
    clone bs_clone_on_stack, 1, bs_vfork_ends
    clone bs_clone_suspended, 0, bs_vfork_ends
    clone bs_clone_beside, 0, bs_clone_ends

    .section .note.GNU-stack, "", @progbits
