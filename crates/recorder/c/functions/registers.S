/*
 * The hooks of gcc, and sleds of functions whose arguments are recorded. They save all registers as
 * a struct bs_registers: 16 general ones of 8 bytes, 16 vectors of 16 bytes.
 */

#include "registers.inc"

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
    restore_arguments
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
