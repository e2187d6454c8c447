//! The code that stands in the place of an instruction.
//!
//! ```text
//! function: jmp stub        stub: lea -128(%rsp), %rsp
//!           …                     mov $kind, %edx
//!                                 call entry
//!                                 lea 128(%rsp), %rsp
//!                                 the instructions that the jump covers
//!                                 jmp back
//! ```
//!
//! None of these changes a flag. The memory behind the stack pointer is the function's (the red
//! zone). `%edx` is free: each of the instructions sets it, and none reads it.

/// Bytes that each object has for the entry of its stubs.
pub(crate) const ENTRY_ROOM: u64 = 32;

/// The code that answers. It is called with the kind of the instruction in `%edx`. It returns with
/// all registers as the instruction leaves them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answering(Vec<u8>);

impl Answering {
    /// A function at this address, as the recorder has.
    pub fn by_function(address: u64) -> Answering {
        // jmp *0(%rip); the address
        let mut code = vec![0xff, 0x25, 0, 0, 0, 0];
        code.extend(address.to_le_bytes());
        Answering(code)
    }

    /// A system call with this number, which a supervisor receives. Its arguments are the kind and
    /// the address of the registers (see [`Answering::RAX`] and the others).
    pub fn by_call(number: u32) -> Answering {
        // push %rax, %rbx, %rcx, %rdx, %rdi, %rsi, %r11; mov %edx, %edi; mov %rsp, %rsi
        let mut code = vec![
            0x50, 0x53, 0x51, 0x52, 0x57, 0x56, 0x41, 0x53, 0x89, 0xd7, 0x48, 0x89, 0xe6,
        ];
        // mov $number, %eax; syscall
        code.push(0xb8);
        code.extend(number.to_le_bytes());
        code.extend([0x0f, 0x05]);
        // pop %r11, %rsi, %rdi, %rdx, %rcx, %rbx, %rax; ret
        code.extend([0x41, 0x5b, 0x5e, 0x5f, 0x5a, 0x59, 0x5b, 0x58, 0xc3]);
        Answering(code)
    }

    /// Where `%rdx` is among the registers of [`Answering::by_call`], in bytes.
    pub const RDX: u64 = 24;
    /// The same for `%rcx`.
    pub const RCX: u64 = 32;
    /// The same for `%rbx`.
    pub const RBX: u64 = 40;
    /// The same for `%rax`.
    pub const RAX: u64 = 48;

    /// The instructions.
    pub(crate) fn code(&self) -> &[u8] {
        &self.0
    }
}

/// The call of the entry, for code at this address.
pub(crate) fn call(at: u64, kind: u64, entry: u64) -> Vec<u8> {
    let mut code = vec![0x48, 0x8d, 0x64, 0x24, 0x80, 0xba];
    code.extend((kind as u32).to_le_bytes());
    let to = branch(0xe8, at + code.len() as u64, entry);
    code.extend(to);
    code.extend([0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0]);
    code
}

/// `jmp`, for code at this address.
pub(crate) fn jump(at: u64, to: u64) -> Vec<u8> {
    branch(0xe9, at, to)
}

/// Both ends are in one segment, whose size is limited.
fn branch(opcode: u8, at: u64, to: u64) -> Vec<u8> {
    let distance = to.wrapping_sub(at + 5) as u32;
    let mut code = vec![opcode];
    code.extend(distance.to_le_bytes());
    code
}
