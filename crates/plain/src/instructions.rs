//! Finds the instructions that enter the kernel: `syscall`, `sysenter` and `int 0x80`.
//!
//! The bytes of such an instruction also occur inside of other instructions, in numbers and
//! offsets. So the function around each occurrence is decoded from its start.
//!
//! Absent on purpose: code that jumps into the middle of an instruction. A program can evade a
//! record on purpose (`docs/limits.md`).

use crate::elf::Object;
use iced_x86::{Code, Decoder, DecoderOptions};
use memchr::memmem;

/// Most occurrences that are looked at in one file. The largest compiler has some hundred.
const MOST: usize = 20_000;
/// Most bytes that are decoded for one occurrence: no known function is longer.
const LONGEST_FUNCTION: u64 = 4 << 20;
/// Most bytes that are decoded for one file.
const MOST_DECODED: u64 = 1 << 30;

/// The bytes of `syscall`, `sysenter` and `int 0x80`.
const ENTERING: [[u8; 2]; 3] = [[0x0f, 0x05], [0x0f, 0x34], [0xcd, 0x80]];

/// How a program could enter the kernel by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// An instruction at this address enters the kernel.
    At(u64),
    /// The bytes of such an instruction are at this address, and the code around them is unknown.
    Perhaps(u64),
}

/// Finds the first instruction that enters the kernel. `None`: no such instruction exists.
pub fn find_entry(object: &Object<'_>) -> Option<Entry> {
    let mut decoded = 0;
    let mut looked_at = 0;
    for segment in object.segments.iter().filter(|s| s.executable) {
        let found = ENTERING
            .iter()
            .flat_map(|pair| memmem::find_iter(segment.bytes, pair));
        for at in found {
            let address = segment.address.wrapping_add(at as u64);
            looked_at += 1;
            if looked_at > MOST {
                return Some(Entry::Perhaps(address));
            }
            match is_instruction(object, address, &mut decoded) {
                Some(false) => {}
                Some(true) => return Some(Entry::At(address)),
                None => return Some(Entry::Perhaps(address)),
            }
        }
    }
    None
}

/// The address of the first instruction that surely enters the kernel: it lies in a function that
/// the table for unwinding describes. Bytes between functions can be data. They do not count here,
/// and neither does code that this table lacks.
pub fn find_certain_entry(object: &Object<'_>) -> Option<u64> {
    let mut decoded = 0;
    let mut looked_at = 0;
    for segment in object.segments.iter().filter(|s| s.executable) {
        for pair in &ENTERING {
            for at in memmem::find_iter(segment.bytes, pair) {
                let address = segment.address.wrapping_add(at as u64);
                looked_at += 1;
                if looked_at > MOST || decoded > MOST_DECODED {
                    return None;
                }
                if is_in_function(object, address, &mut decoded) {
                    return Some(address);
                }
            }
        }
    }
    None
}

/// True if an instruction that enters the kernel is at an address within a described function.
fn is_in_function(object: &Object<'_>, address: u64, decoded: &mut u64) -> bool {
    let number = object.function_number(address);
    let Some((start, code)) = number.and_then(|number| object.function(number)) else {
        return false;
    };
    let length = address.wrapping_sub(start);
    if length >= (code.len() as u64).min(LONGEST_FUNCTION) {
        return false;
    }
    *decoded += length;
    enters_at(code, start, address) == Some(true)
}

/// Whether an instruction that enters the kernel begins at an address. `None`: unknown.
fn is_instruction(object: &Object<'_>, address: u64, decoded: &mut u64) -> Option<bool> {
    let (start, bytes) = object.function_around(address)?;
    let length = address.checked_sub(start)?;
    *decoded += length;
    if length > LONGEST_FUNCTION || *decoded > MOST_DECODED {
        return None;
    }
    enters_at(bytes, start, address)
}

/// The same for code that begins at `start`. `None`: the bytes before are no instructions.
fn enters_at(code: &[u8], start: u64, address: u64) -> Option<bool> {
    let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    while decoder.can_decode() && decoder.ip() <= address {
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return None;
        }
        // A prefix may stand before the two bytes.
        let enters = matches!(instruction.code(), Code::Syscall | Code::Sysenter)
            || instruction.code() == Code::Int_imm8 && instruction.immediate8() == 0x80;
        if enters && (instruction.ip()..instruction.next_ip()).contains(&address) {
            return Some(true);
        }
    }
    Some(false)
}
