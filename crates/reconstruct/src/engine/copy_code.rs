//! The code by which a started program copies itself, without a tracer.
//!
//! In: a program that waits for the response to a call. Out: the same program, which asks the
//! supervisor for each copy, and makes the call again at last. The code lies behind the kernel's
//! functions for the time, where that shared object has no bytes. Behind the instruction of the
//! call lies a jump to the code, until the call is to be made again.
//!
//! Invariant: registers and flags are as before when the call is made again. Only `rcx` and `r11`
//! change, as at each system call. Memory is as before, too, but for the code itself, and the stack
//! below the red zone.

use super::caller::NotifiedCall;
use super::vdso;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// ```text
///        lea rsp, [rsp - 128]        below the red zone
///        pushfq; push rdi, rsi, rdx, r10, r8, r9
///        sub rsp, 32
/// ask:   xor r9d, r9d                whether a timer runs
///        mov r8d, 3
/// timer: dec r8d
///        mov edi, r8d                ITIMER_PROF, ITIMER_VIRTUAL, ITIMER_REAL
///        mov rsi, rsp
///        mov eax, 36                 getitimer
///        syscall
///        or r9, [rsp + 16]
///        or r9, [rsp + 24]
///        test r8d, r8d
///        jne timer
///        mov rdi, r9
///        mov eax, COPY
///        syscall                     1: copy; an error, too, lets the program go on
///        cmp eax, 1
///        jne go
///        xor esi, esi; xor edx, edx; xor r10d, r10d; xor r8d, r8d
///        mov edi, CLONE_PARENT
///        mov eax, 56                 clone
///        syscall
///        test eax, eax
///        jne ask
///        mov eax, 112                setsid, in the copy
///        syscall
///        jmp ask
/// go:    add rsp, 32
///        pop r9, r8, r10, rdx, rsi, rdi; popfq
///        lea rsp, [rsp + 128]
///        mov eax, the number of the call
///        jmp [rip]                   to the instruction of the call
/// ```
const CODE: [u8; 132] = [
    0x48, 0x8d, 0x64, 0x24, 0x80, 0x9c, 0x57, 0x56, 0x52, 0x41, 0x52, 0x41, 0x50, 0x41, 0x51, 0x48,
    0x83, 0xec, 0x20, 0x45, 0x31, 0xc9, 0x41, 0xb8, 0x03, 0x00, 0x00, 0x00, 0x41, 0xff, 0xc8, 0x44,
    0x89, 0xc7, 0x48, 0x89, 0xe6, 0xb8, 0x24, 0x00, 0x00, 0x00, 0x0f, 0x05, 0x4c, 0x0b, 0x4c, 0x24,
    0x10, 0x4c, 0x0b, 0x4c, 0x24, 0x18, 0x45, 0x85, 0xc0, 0x75, 0xe1, 0x4c, 0x89, 0xcf, 0xb8, 0x75,
    0x62, 0x00, 0x00, 0x0f, 0x05, 0x83, 0xf8, 0x01, 0x75, 0x23, 0x31, 0xf6, 0x31, 0xd2, 0x45, 0x31,
    0xd2, 0x45, 0x31, 0xc0, 0xbf, 0x00, 0x80, 0x00, 0x00, 0xb8, 0x38, 0x00, 0x00, 0x00, 0x0f, 0x05,
    0x85, 0xc0, 0x75, 0xaf, 0xb8, 0x70, 0x00, 0x00, 0x00, 0x0f, 0x05, 0xeb, 0xa6, 0x48, 0x83, 0xc4,
    0x20, 0x41, 0x59, 0x41, 0x58, 0x41, 0x5a, 0x5a, 0x5e, 0x5f, 0x9d, 0x48, 0x8d, 0xa4, 0x24, 0x80,
    0x00, 0x00, 0x00, 0xb8,
];

/// `jmp [rip]`, with the address behind it.
const JUMP: [u8; 6] = [0xff, 0x25, 0, 0, 0, 0];

/// The length of the instruction `syscall`.
const INSTRUCTION: u64 = 2;

/// The code in a program, and what the jump to it has replaced.
#[derive(Debug)]
pub struct CopyCode {
    behind: u64,
    replaced: Vec<u8>,
}

impl CopyCode {
    /// Lets a program run the code when its call returns.
    ///
    /// # Errors
    /// There is no room for the code, or the memory of the program cannot be written.
    pub fn put(call: &NotifiedCall) -> io::Result<CopyCode> {
        let code = code(call);
        let at = vdso::free_place(call.tid, code.len())?;
        let memory = memory(call.tid)?;
        let jump = jump(at);
        let mut replaced = vec![0; jump.len()];
        memory.read_exact_at(&mut replaced, call.behind)?;
        memory.write_all_at(&code, at)?;
        let placed = CopyCode {
            behind: call.behind,
            replaced,
        };
        if let Err(error) = memory.write_all_at(&jump, call.behind) {
            let _ = placed.take_jump_from(call.tid);
            return Err(error);
        }
        Ok(placed)
    }

    /// Puts back what the jump has replaced, in the program or a copy of it.
    ///
    /// # Errors
    /// The memory of the program cannot be written.
    pub fn take_jump_from(&self, tid: u32) -> io::Result<()> {
        memory(tid)?.write_all_at(&self.replaced, self.behind)
    }
}

fn memory(tid: u32) -> io::Result<File> {
    let mut options = File::options();
    let options = options.read(true).write(true);
    options.open(format!("/proc/{tid}/mem"))
}

fn jump(to: u64) -> Vec<u8> {
    [&JUMP[..], &to.to_le_bytes()].concat()
}

/// The code for a call, at any address. [`CODE`] ends with the opcode that loads the number.
fn code(call: &NotifiedCall) -> Vec<u8> {
    let number = u32::try_from(call.number).unwrap_or(u32::MAX);
    let back = jump(call.behind.wrapping_sub(INSTRUCTION));
    [&CODE[..], &number.to_le_bytes(), &back].concat()
}

#[cfg(test)]
mod tests {
    use super::CODE;
    use crate::engine::filter::COPY;

    #[test]
    fn the_code_asks_by_the_call_that_the_filter_notifies_of() {
        let load = [&[0xb8][..], &(COPY as u32).to_le_bytes(), &[0x0f, 0x05]].concat();
        assert!(CODE.windows(load.len()).any(|code| code == load));
    }
}
