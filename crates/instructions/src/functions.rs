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

/// The instructions of a function, from its start. They end before bytes that are no instruction.
pub(crate) struct Function<'a> {
    decoder: Decoder<'a>,
    bytes: &'a [u8],
    /// The address behind its last byte, as its description says. The instructions end earlier
    /// where another function begins.
    pub end: u64,
}

impl<'a> Function<'a> {
    /// A function, by its number. `None`: it has no usual description, or is not in code.
    pub fn of(object: &Object<'a>, number: usize) -> Option<Function<'a>> {
        let (start, described) = object.function(number)?;
        let next = object.functions.get(number + 1).copied();
        // So no byte of an object is decoded for two functions.
        let most = next.unwrap_or(u64::MAX).saturating_sub(start);
        let mut segments = object.segments.iter();
        let bytes = segments.find_map(|segment| {
            let from = start.checked_sub(segment.address)?;
            let rest = segment.bytes.get(usize::try_from(from).ok()?..)?;
            segment.executable.then_some(rest)
        })?;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(described.len()).min(most)];
        Some(Function {
            decoder: Decoder::with_ip(64, bytes, start, DecoderOptions::NONE),
            bytes,
            end: start.saturating_add(described.len() as u64),
        })
    }

    /// Bytes that are decoded at most.
    pub fn length(&self) -> usize {
        self.bytes.len()
    }
}

impl<'a> Iterator for Function<'a> {
    type Item = Decoded<'a>;

    fn next(&mut self) -> Option<Decoded<'a>> {
        if !self.decoder.can_decode() {
            return None;
        }
        let from = self.decoder.position();
        let instruction = self.decoder.decode();
        if instruction.is_invalid() {
            return None;
        }
        let bytes: &'a [u8] = self.bytes;
        Some(Decoded {
            offsets: self.decoder.get_constant_offsets(&instruction),
            bytes: &bytes[from..self.decoder.position()],
            instruction,
        })
    }
}
