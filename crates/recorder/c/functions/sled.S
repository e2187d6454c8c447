/*
 * The sleds of a program lead here. The number of the function is in %r10d. All registers that
 * a function may have arguments or results in are left as they are.
 */

/* Saves the registers of arguments, and calls a function with number, stack and site. */
.macro arguments_to function
    push %rdi
    push %rsi
    push %rdx
    push %rcx
    push %r8
    push %r9
    push %rax
    sub $136, %rsp
    movups %xmm0, (%rsp)
    movups %xmm1, 16(%rsp)
    movups %xmm2, 32(%rsp)
    movups %xmm3, 48(%rsp)
    movups %xmm4, 64(%rsp)
    movups %xmm5, 80(%rsp)
    movups %xmm6, 96(%rsp)
    movups %xmm7, 112(%rsp)
    mov %r10d, %edi
    lea 200(%rsp), %rsi
    mov (%rsi), %rdx
    call \function
    movups (%rsp), %xmm0
    movups 16(%rsp), %xmm1
    movups 32(%rsp), %xmm2
    movups 48(%rsp), %xmm3
    movups 64(%rsp), %xmm4
    movups 80(%rsp), %xmm5
    movups 96(%rsp), %xmm6
    movups 112(%rsp), %xmm7
    add $136, %rsp
    pop %rax
    pop %r9
    pop %r8
    pop %rcx
    pop %rdx
    pop %rsi
    pop %rdi
    ret
.endm

.section .text.sleds, "ax", @progbits

/* Called by the sled: above this return address is the function's own. */
.globl bs_sled_entry
.hidden bs_sled_entry
.type bs_sled_entry, @function
bs_sled_entry:
    arguments_to bs_function_called
.size bs_sled_entry, . - bs_sled_entry

/* The function jumps to another one, whose arguments are in registers. */
.globl bs_sled_tail
.hidden bs_sled_tail
.type bs_sled_tail, @function
bs_sled_tail:
    arguments_to bs_function_returned
.size bs_sled_tail, . - bs_sled_tail

/* The sled jumps here in the place of the function's `ret`. */
.globl bs_sled_exit
.hidden bs_sled_exit
.type bs_sled_exit, @function
bs_sled_exit:
    push %rax
    push %rdx
    sub $40, %rsp
    movups %xmm0, (%rsp)
    movups %xmm1, 16(%rsp)
    mov %r10d, %edi
    lea 56(%rsp), %rsi
    call bs_function_returned
    movups (%rsp), %xmm0
    movups 16(%rsp), %xmm1
    add $40, %rsp
    pop %rdx
    pop %rax
    ret
.size bs_sled_exit, . - bs_sled_exit

.section .note.GNU-stack, "", @progbits
