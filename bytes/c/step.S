/* Executes one instruction with the registers of the program. See unknown.h.
 *
 * In: rdi, the StepState. Invariants: the stack pointer is Valgrind's, the instruction does not use
 * it. If the instruction faults, Valgrind leaves this function by a jump, and loads its own MXCSR
 * before it runs a block again.
 *
 * Part of backstory's byte engine: GPL-2.0-or-later, because it is linked to Valgrind. */
#define MASKS 2048
#define GENERAL 2112
#define FLAGS 2240
#define STUB 2248
#define CONTROL 2256
#define OWN_CONTROL 2260

    .text
    .globl step_once
    .type step_once, @function
step_once:
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    push %rdi
    pushq STUB(%rdi)
    stmxcsr OWN_CONTROL(%rdi)
    ldmxcsr CONTROL(%rdi)
    .altmacro
    .macro load_vector n
    vmovdqu64 (64 * \n)(%rdi), %zmm\n
    .endm
    .macro store_vector n
    vmovdqu64 %zmm\n, (64 * \n)(%rax)
    .endm
    .macro load_mask n
    kmovq (MASKS + 8 * \n)(%rdi), %k\n
    .endm
    .macro store_mask n
    kmovq %k\n, (MASKS + 8 * \n)(%rax)
    .endm
    .macro each what, first, last
    .set at, \first
    .rept \last - \first + 1
    \what %at
    .set at, at + 1
    .endr
    .endm
    each load_vector, 0, 31
    each load_mask, 0, 7
    pushq FLAGS(%rdi)
    popfq
    .macro load_general n, name
    mov (GENERAL + 8 * \n)(%rdi), %\name
    .endm
    load_general 0, rax
    load_general 1, rcx
    load_general 2, rdx
    load_general 3, rbx
    load_general 5, rbp
    load_general 6, rsi
    load_general 8, r8
    load_general 9, r9
    load_general 10, r10
    load_general 11, r11
    load_general 12, r12
    load_general 13, r13
    load_general 14, r14
    load_general 15, r15
    load_general 7, rdi
    call *(%rsp)
    pushfq
    push %rax
    mov 24(%rsp), %rax
    .macro store_general n, name
    mov %\name, (GENERAL + 8 * \n)(%rax)
    .endm
    store_general 1, rcx
    store_general 2, rdx
    store_general 3, rbx
    store_general 5, rbp
    store_general 6, rsi
    store_general 7, rdi
    store_general 8, r8
    store_general 9, r9
    store_general 10, r10
    store_general 11, r11
    store_general 12, r12
    store_general 13, r13
    store_general 14, r14
    store_general 15, r15
    popq GENERAL(%rax)
    popq FLAGS(%rax)
    each store_vector, 0, 31
    each store_mask, 0, 7
    ldmxcsr OWN_CONTROL(%rax)
    vzeroupper
    add $16, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    ret
    .size step_once, . - step_once
    .section .note.GNU-stack, "", @progbits
