//! The functions of an object, decoded.

use backstory_abi::deep;
use backstory_plain::Object;
use iced_x86::{
    Code, ConstantOffsets, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register,
};

/// An instruction with its bytes.
pub(crate) struct Decoded<'a> {
    pub instruction: Instruction,
    pub offsets: ConstantOffsets,
    pub bytes: &'a [u8],
}

impl Decoded<'_> {
    /// The question that this instruction is, by the number of its kind in the deep log.
    pub fn question(&self) -> Option<u64> {
        match self.instruction.code() {
            Code::Rdtsc => Some(deep::RDTSC),
            Code::Rdtscp => Some(deep::RDTSCP),
            Code::Cpuid => Some(deep::CPUID_INSTRUCTION),
            _ => None,
        }
    }

    /// The address of code that this instruction names, if it names one.
    pub fn names(&self) -> Option<u64> {
        let one = &self.instruction;
        if one.op_count() > 0 && one.op0_kind() == OpKind::NearBranch64 {
            return Some(one.near_branch_target());
        }
        let is_relative = one.is_ip_rel_memory_operand();
        is_relative.then(|| one.ip_rel_memory_address())
    }

    /// It goes on where a table or a register says.
    pub fn jumps_anywhere(&self) -> bool {
        let one = &self.instruction;
        one.mnemonic() == Mnemonic::Jmp && one.op0_kind() != OpKind::NearBranch64
    }

    /// The next instruction follows, whatever happens.
    fn is_straight(&self) -> bool {
        let one = &self.instruction;
        let branches = one.op_count() > 0
            && matches!(
                one.op0_kind(),
                OpKind::NearBranch16
                    | OpKind::NearBranch32
                    | OpKind::NearBranch64
                    | OpKind::FarBranch16
                    | OpKind::FarBranch32
            );
        let leaves = matches!(
            one.mnemonic(),
            Mnemonic::Call
                | Mnemonic::Jmp
                | Mnemonic::Ret
                | Mnemonic::Retf
                | Mnemonic::Iret
                | Mnemonic::Iretd
                | Mnemonic::Iretq
                | Mnemonic::Int
                | Mnemonic::Int1
                | Mnemonic::Int3
                | Mnemonic::Into
                | Mnemonic::Syscall
                | Mnemonic::Sysenter
                | Mnemonic::Sysexit
                | Mnemonic::Sysret
                | Mnemonic::Hlt
                | Mnemonic::Ud0
                | Mnemonic::Ud1
                | Mnemonic::Ud2
                | Mnemonic::Xbegin
                | Mnemonic::Xabort
        );
        !branches && !leaves && !one.is_invalid()
    }

    /// The same instruction for another address. `None`: it cannot be moved.
    pub fn moved(&self, to: u64) -> Option<Vec<u8>> {
        let relative = |target: u64, next: u64| {
            let distance = target.wrapping_sub(next).cast_signed();
            i32::try_from(distance).ok().map(i32::to_le_bytes)
        };
        if self.instruction.op_count() > 0 && self.instruction.op0_kind() == OpKind::NearBranch64 {
            let condition = match self.bytes {
                [short @ 0x70..=0x7f, _] => short & 15,
                [0x0f, near @ 0x80..=0x8f, _, _, _, _] => near & 15,
                _ => return None,
            };
            let mut moved = vec![0x0f, 0x80 | condition];
            moved.extend(relative(self.instruction.near_branch_target(), to + 6)?);
            return Some(moved);
        }
        let mut moved = self.bytes.to_vec();
        if self.instruction.is_ip_rel_memory_operand() {
            let at = self.offsets.displacement_offset();
            let is_usual = self.instruction.memory_base() == Register::RIP
                && self.offsets.displacement_size() == 4;
            let field = moved.get_mut(at..at + 4).filter(|_| is_usual)?;
            let next = to + self.bytes.len() as u64;
            let target = self.instruction.ip_rel_memory_address();
            field.copy_from_slice(&relative(target, next)?);
        }
        self.is_straight().then_some(moved)
    }
}

/// Decodes a function from its start. It ends before bytes that are no instruction.
pub(crate) fn decode<'a>(object: &Object<'a>, number: usize) -> Vec<Decoded<'a>> {
    let Some((start, bytes)) = object.function(number) else {
        return Vec::new();
    };
    let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    let mut decoded = Vec::new();
    while decoder.can_decode() {
        let from = decoder.position();
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            break;
        }
        decoded.push(Decoded {
            offsets: decoder.get_constant_offsets(&instruction),
            bytes: &bytes[from..decoder.position()],
            instruction,
        });
    }
    decoded
}
