//! The table of a file's functions, in the form that recorders test calls with.

use std::io;
use std::os::fd::OwnedFd;

use backstory_abi::{FUNCTIONS_MAGIC, FunctionTable, Sled, Target};
use rustix::fs::{MemfdFlags, SealFlags};

use crate::elf::CodeFile;
use crate::value_table::ValueTable;

/// The bytes of a table. `first` is the number of a function at the lowest address. `libraries` are
/// the patterns of libraries.
pub(crate) fn bytes<'a>(
    code: &CodeFile,
    first: u32,
    libraries: impl Iterator<Item = &'a str>,
) -> Vec<u8> {
    let number = |address: u64| first + (address - code.low) as u32;
    let words = match code.functions.is_empty() {
        true => 0,
        false => code.size.div_ceil(64) as usize,
    };
    let mut bits = vec![0u64; words];
    for function in &code.functions {
        let at = (function.address - code.low) as usize;
        if let Some(word) = bits.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }
    let bits_at = FunctionTable::SIZE;
    let sleds_at = bits_at + 8 * words;
    let values_at = sleds_at + size_of::<Sled>() * code.sleds.len();
    let numbered = code.signatures.iter();
    let values = ValueTable::of(numbered.map(|(&address, one)| (number(address), one)));
    let (at, values_bytes) = values.bytes(values_at);
    let libraries: Vec<u8> = libraries.chain([""]).flat_map(terminated).collect();
    let targets_at = values_at + values_bytes.len();
    // The targets are aligned as their words.
    let targets_at = targets_at.next_multiple_of(8);
    let libraries_at = targets_at + size_of::<Target>() * code.targets.len();
    let head = FunctionTable {
        magic: FUNCTIONS_MAGIC,
        bytes: (libraries_at + libraries.len()) as u64,
        low: code.low,
        size: code.size,
        bits: bits_at as u64,
        sleds: sleds_at as u64,
        count: code.functions.len() as u32,
        sled_count: code.sleds.len() as u32,
        first,
        signature_count: values.signatures.len() as u32,
        signatures: at[0],
        values: at[1],
        places: at[2],
        names: at[3],
        targets: targets_at as u64,
        libraries: libraries_at as u64,
        target_count: code.targets.len() as u32,
        pad: 0,
    };
    let mut bytes = head.to_bytes();
    bytes.extend(bits.iter().flat_map(|word| word.to_le_bytes()));
    for sled in &code.sleds {
        let sled = Sled {
            address: sled.address,
            number: number(sled.function),
            kind: sled.kind.into(),
        };
        bytes.extend_from_slice(&sled.to_bytes());
    }
    bytes.extend(values_bytes);
    bytes.resize(targets_at, 0);
    for &address in &code.targets {
        let target = Target {
            address,
            number: number(address),
            is_chosen: code.chosen.contains(&address).into(),
        };
        bytes.extend_from_slice(&target.to_bytes());
    }
    bytes.extend(libraries);
    bytes
}

/// A text with its NUL.
fn terminated(text: &str) -> impl Iterator<Item = u8> {
    text.bytes().filter(|&byte| byte != 0).chain([0])
}

/// A memory file with the table, which no process can change.
pub(crate) fn memory_file(bytes: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create("backstory-functions", flags)?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest)?;
        rest = &rest[written..];
    }
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    Ok(file)
}
