//! From the number of a system call to its row, for each entry into the kernel.

use super::row::TableRow;
use super::rows;
use super::rows32::{self, X32};

/// `AUDIT_ARCH_X86_64`, which x32 calls have too.
pub const ARCH_X86_64: u32 = 0xc000_003e;
/// `AUDIT_ARCH_I386`: calls of 32-bit programs, and of any program by `int 0x80`.
pub const ARCH_I386: u32 = 0x4000_0003;
/// Bit of the number of an x32 call.
pub const X32_BIT: u32 = 0x4000_0000;

/// Every system call: those that x86-64 has, then those that only i386 has.
pub static ROWS: &[TableRow] = &{
    let (first, second) = (rows::ROWS, rows32::ROWS);
    let mut all = [first[0]; rows::ROWS.len() + rows32::ROWS.len()];
    let mut i = 1;
    while i < all.len() {
        all[i] = if i < first.len() {
            first[i]
        } else {
            second[i - first.len()]
        };
        i += 1;
    }
    all
};

/// Numbers below this are in the indexes. No supported kernel has a higher one.
const NUMBERS: usize = 640;

/// Position in `ROWS` plus one, by number.
type Index = [u16; NUMBERS];

static X64_INDEX: Index = index(false);
static I386_INDEX: Index = index(true);
static X32_INDEX: Index = index_x32();

const fn index(i386: bool) -> Index {
    let mut table = [0; NUMBERS];
    let mut i = 0;
    while i < ROWS.len() {
        let nr = if i386 { ROWS[i].i386 } else { ROWS[i].x64 };
        if nr >= 0 {
            table[nr as usize] = i as u16 + 1;
        }
        i += 1;
    }
    table
}

const fn index_x32() -> Index {
    let mut table = index(false);
    let mut i = 0;
    while i < X32.len() {
        let mut j = 0;
        while j < ROWS.len() {
            if same(ROWS[j].name.as_bytes(), X32[i].0.as_bytes()) {
                table[X32[i].1 as usize] = j as u16 + 1;
            }
            j += 1;
        }
        i += 1;
    }
    table
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut i = 0;
    while i < a.len() && i < b.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    a.len() == b.len()
}

/// The entry by which a call reached the kernel: it decides the numbers and the width of pointers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abi {
    /// 64 bit.
    X64,
    /// 64-bit registers, 32-bit pointers.
    X32,
    /// 32 bit.
    I386,
}

impl Abi {
    /// From the architecture and the number of a notification. `None` for an architecture that x86
    /// kernels do not have.
    pub fn of(arch: u32, nr: u32) -> Option<Abi> {
        match arch {
            ARCH_X86_64 if nr & X32_BIT != 0 => Some(Abi::X32),
            ARCH_X86_64 => Some(Abi::X64),
            ARCH_I386 => Some(Abi::I386),
            _ => None,
        }
    }

    /// Bytes of a pointer in memory.
    pub fn pointer(self) -> usize {
        if self == Abi::X64 { 8 } else { 4 }
    }

    /// The row of a number.
    pub fn row(self, nr: u32) -> Option<&'static TableRow> {
        let (index, nr) = match self {
            Abi::X64 => (&X64_INDEX, nr),
            Abi::X32 => (&X32_INDEX, nr & !X32_BIT),
            Abi::I386 => (&I386_INDEX, nr),
        };
        let position = *index.get(nr as usize)?;
        ROWS.get(usize::from(position).checked_sub(1)?)
    }

    /// Every number of this entry that has a row, in order, as a filter sees it.
    pub fn numbers(self) -> impl Iterator<Item = (u32, &'static TableRow)> {
        let bit = if self == Abi::X32 { X32_BIT } else { 0 };
        (0..NUMBERS as u32).filter_map(move |nr| self.row(nr | bit).map(|row| (nr | bit, row)))
    }
}
