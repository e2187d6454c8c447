/*
 * Redirected calls of a library's functions.
 *
 * A call goes to the stub of the function. It logs the call, puts the address of a return stub in
 * the place of the return address, and jumps to the function. So the arguments on the stack stay
 * where they are. The function returns to the return stub, which logs that and jumps to the caller.
 *
 * An unwinder finds a return stub in the place of the caller. The stub's unwind information says
 * where the address of the caller is: as far from the stub as all entries of the table are. So
 * exceptions, cancellation and debuggers pass through.
 */
#include "registers.inc"

.set STUBS, 4096 /* BS_REDIRECTED and BS_RETURNS */

/*
 * The frame of a return stub has no room on the stack. Its end is said to be 8 bytes behind the
 * stack pointer, because libgcc tells frames apart by their ends. The address of the caller is in
 * memory, 16 MB behind the stub. The stub's address is 16 bytes below the frame's end.
 */
.macro caller_behind_stub
    /* DW_CFA_val_offset: the caller's stack pointer is the frame's end less 8. */
    .cfi_escape 0x14, 0x07, 0x01
    /* DW_CFA_expression, the return address: lit16, minus, deref, plus_uconst 0x1000000 */
    .cfi_escape 0x10, 0x10, 8, 0x40, 0x1c, 0x06, 0x23, 0x80, 0x80, 0x80, 0x08
.endm

.macro stubs to
    .set number, 0
    .rept STUBS
    .balign 16
    mov $number, %r11d
    jmp \to
    .set number, number + 1
    .endr
    .balign 16
.endm

.section .text.redirection, "ax", @progbits

.balign 16
.globl bs_call_stubs
.hidden bs_call_stubs
.type bs_call_stubs, @function
bs_call_stubs:
    .cfi_startproc
    stubs 1f
1:  sub $REGISTERS + 8, %rsp
    .cfi_adjust_cfa_offset REGISTERS + 8
    save_registers REGISTERS + 8
    mov %r11d, %edi
    mov %rsp, %rsi
    call bs_redirected_call
    mov %rax, %r11
    restore_arguments
    mov 80(%rsp), %r10
    add $REGISTERS + 8, %rsp
    .cfi_adjust_cfa_offset -(REGISTERS + 8)
    jmp *%r11
    .cfi_endproc
.size bs_call_stubs, . - bs_call_stubs

/* An unwinder looks one byte below a return address: that byte belongs to the stubs, too. */
.balign 16
    .cfi_startproc
    caller_behind_stub
    .fill 16, 1, 0x90
.globl bs_return_stubs
.hidden bs_return_stubs
.type bs_return_stubs, @function
bs_return_stubs:
    stubs 1f
1:  sub $REGISTERS + 16, %rsp
    .cfi_adjust_cfa_offset REGISTERS + 16
    save_registers REGISTERS + 16
    mov %r11d, %edi
    mov %rsp, %rsi
    call bs_redirected_return
    mov %rax, %r11
    mov (%rsp), %rax
    mov 8(%rsp), %rdx
    movups 128(%rsp), %xmm0
    movups 144(%rsp), %xmm1
    add $REGISTERS + 16, %rsp
    .cfi_adjust_cfa_offset -(REGISTERS + 16)
    jmp *%r11
    .cfi_endproc
.size bs_return_stubs, . - bs_return_stubs

.section .note.GNU-stack, "", @progbits
