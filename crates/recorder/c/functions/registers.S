/*
 * The hooks of gcc, and sleds of functions whose arguments are recorded. They save all registers as
 * a struct bs_registers: 16 general ones of 8 bytes, 16 vectors of 16 bytes.
 */

.set REGISTERS, 384

/* `above`: the bytes from the saved registers to the stack pointer that is saved. */
.macro save_registers above
    mov %rax, (%rsp)
    mov %rdx, 8(%rsp)
    mov %rcx, 16(%rsp)
    mov %rbx, 24(%rsp)
    mov %rsi, 32(%rsp)
    mov %rdi, 40(%rsp)
    mov %rbp, 48(%rsp)
    lea \above(%rsp), %rax
    mov %rax, 56(%rsp)
    mov %r8, 64(%rsp)
    mov %r9, 72(%rsp)
    mov %r10, 80(%rsp)
    mov %r11, 88(%rsp)
    mov %r12, 96(%rsp)
    mov %r13, 104(%rsp)
    mov %r14, 112(%rsp)
    mov %r15, 120(%rsp)
    movups %xmm0, 128(%rsp)
    movups %xmm1, 144(%rsp)
    movups %xmm2, 160(%rsp)
    movups %xmm3, 176(%rsp)
    movups %xmm4, 192(%rsp)
    movups %xmm5, 208(%rsp)
    movups %xmm6, 224(%rsp)
    movups %xmm7, 240(%rsp)
    movups %xmm8, 256(%rsp)
    movups %xmm9, 272(%rsp)
    movups %xmm10, 288(%rsp)
    movups %xmm11, 304(%rsp)
    movups %xmm12, 320(%rsp)
    movups %xmm13, 336(%rsp)
    movups %xmm14, 352(%rsp)
    movups %xmm15, 368(%rsp)
.endm

/* A hook: function and site are in %rdi and %rsi, where they stay. */
.macro hook name, plain, with_registers
.globl \name
.type \name, @function
\name:
    cmpb $0, bs_values_wanted(%rip)
    je \plain
    sub $REGISTERS + 8, %rsp
    save_registers REGISTERS + 16
    mov %rsp, %rdx
    mov REGISTERS + 8(%rsp), %rcx
    call \with_registers
    add $REGISTERS + 8, %rsp
    ret
.size \name, . - \name
.endm

.section .text.values, "ax", @progbits

hook __cyg_profile_func_enter, bs_hook_entered, bs_hook_entered_with
hook __cyg_profile_func_exit, bs_hook_left, bs_hook_left_with

/* As bs_sled_entry. The stack pointer that is saved is that of the function's beginning. */
.globl bs_sled_entry_with
.hidden bs_sled_entry_with
.type bs_sled_entry_with, @function
bs_sled_entry_with:
    sub $REGISTERS + 16, %rsp
    save_registers REGISTERS + 24
    mov %r10d, %edi
    mov 56(%rsp), %rsi
    mov (%rsi), %rdx
    mov %rsp, %rcx
    call bs_sled_entered_with
    mov (%rsp), %rax
    mov 8(%rsp), %rdx
    mov 16(%rsp), %rcx
    mov 32(%rsp), %rsi
    mov 40(%rsp), %rdi
    mov 64(%rsp), %r8
    mov 72(%rsp), %r9
    movups 128(%rsp), %xmm0
    movups 144(%rsp), %xmm1
    movups 160(%rsp), %xmm2
    movups 176(%rsp), %xmm3
    movups 192(%rsp), %xmm4
    movups 208(%rsp), %xmm5
    movups 224(%rsp), %xmm6
    movups 240(%rsp), %xmm7
    add $REGISTERS + 16, %rsp
    ret
.size bs_sled_entry_with, . - bs_sled_entry_with

/* As bs_sled_exit. */
.globl bs_sled_exit_with
.hidden bs_sled_exit_with
.type bs_sled_exit_with, @function
bs_sled_exit_with:
    sub $REGISTERS + 8, %rsp
    save_registers REGISTERS + 8
    mov %r10d, %edi
    mov 56(%rsp), %rsi
    mov %rsp, %rdx
    call bs_sled_left_with
    mov (%rsp), %rax
    mov 8(%rsp), %rdx
    movups 128(%rsp), %xmm0
    movups 144(%rsp), %xmm1
    add $REGISTERS + 8, %rsp
    ret
.size bs_sled_exit_with, . - bs_sled_exit_with

.section .note.GNU-stack, "", @progbits
