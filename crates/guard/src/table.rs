//! The system call table: for every call what the guard does with it, and where its arguments lie.
//!
//! Filter and decoder are both driven by it, so that they can't disagree. The rows themselves are in `rows.rs` and
//! `rows32.rs`, the words of their last column in `shape.rs`.

use super::rows;
use super::rows_arm64::{ARM64, COMMON};
use super::rows32::{self, X32};

pub use super::shape::{Changed, LookUp, Peer, Shape};

/// Position of an argument, 0 to 5.
pub type Arg = u8;

/// In the place of an argument: the call has none.
pub const NONE: Arg = 0xff;
/// In the place of a directory argument: paths start at the current directory.
pub const CWD: Arg = 0xfe;

/// `AUDIT_ARCH_X86_64`, which x32 calls have, too.
pub const ARCH_X86_64: u32 = 0xc000_003e;
/// `AUDIT_ARCH_I386`: 32-bit programs, and `int 0x80` from any.
pub const ARCH_I386: u32 = 0x4000_0003;
/// Bit of the number of an x32 call.
pub const X32_BIT: u32 = 0x4000_0000;

/// `CLONE_NEW*` of `clone` that change what a name or a pid means.
pub const NEW_NAMESPACE: u32 = 0x7e02_0000;

/// One system call.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Name as in the kernel's headers.
    pub name: &'static str,
    /// Number on x86-64, or -1.
    pub x64: i16,
    /// Number on i386, or -1.
    pub i386: i16,
    /// The recorder wraps the function of this name (or what replaces it in libc).
    pub recorder: bool,
    /// What the guard does.
    pub guard: Guard,
}

impl Row {
    /// Its number on aarch64; none for calls that aarch64 has not.
    pub fn arm64(&self) -> Option<i16> {
        let older = || ARM64.iter().find(|(name, _)| *name == self.name);
        Some(self.x64)
            .filter(|nr| *nr >= COMMON)
            .or_else(|| older().map(|(_, nr)| *nr))
    }
}

pub(super) const fn row(
    name: &'static str,
    x64: i16,
    i386: i16,
    recorder: bool,
    guard: Guard,
) -> Row {
    Row {
        name,
        x64,
        i386,
        recorder,
        guard,
    }
}

/// What the guard does with a call.
#[derive(Debug, Clone, Copy)]
pub enum Guard {
    /// Notified unless it comes from the gate.
    Flow(When, Shape),
    /// Changes what paths or pids mean: notified wherever it comes from, logged unless it comes from the gate.
    View(When, Shape),
    /// A look-up: as `Flow`, but only with `lookups=all`.
    Lookup(Shape),
    /// `getpriority` with the magic argument, wherever it comes from.
    Magic,
    /// No effect on provenance, and why.
    Free(&'static str),
    /// Has an effect, but is never watched here, and why.
    Never(&'static str),
}

/// Which calls of a number are meant; the kernel looks at the low half of one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// All.
    Always,
    /// Those with any of these bits.
    Any {
        /// Which argument.
        arg: Arg,
        /// Bits.
        mask: u32,
    },
    /// Those with none of these bits.
    Without {
        /// Which argument.
        arg: Arg,
        /// Bits.
        mask: u32,
    },
    /// Those with one of these values.
    OneOf {
        /// Which argument.
        arg: Arg,
        /// Values.
        values: &'static [u32],
    },
}

/// Every system call: those that x86-64 has, then those that only i386 has.
pub static ROWS: &[Row] = &{
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

/// Numbers below this have an entry in the indexes; no supported kernel has a higher one.
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

/// The way a call entered the kernel: which numbers and which pointer width it has.
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
    /// From what the kernel says of a call; none for an architecture that x86 kernels don't have.
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
    pub fn row(self, nr: u32) -> Option<&'static Row> {
        let (index, nr) = match self {
            Abi::X64 => (&X64_INDEX, nr),
            Abi::X32 => (&X32_INDEX, nr & !X32_BIT),
            Abi::I386 => (&I386_INDEX, nr),
        };
        let position = *index.get(nr as usize)?;
        ROWS.get(usize::from(position).checked_sub(1)?)
    }

    /// Every number of this kind that has a row, in order, as it stands in a filter's data.
    pub fn numbers(self) -> impl Iterator<Item = (u32, &'static Row)> {
        let bit = if self == Abi::X32 { X32_BIT } else { 0 };
        (0..NUMBERS as u32).filter_map(move |nr| self.row(nr | bit).map(|row| (nr | bit, row)))
    }
}

impl Guard {
    /// What the call does, if the guard ever watches it.
    pub fn shape(&self) -> Option<Shape> {
        match self {
            Guard::Flow(_, shape) | Guard::View(_, shape) | Guard::Lookup(shape) => Some(*shape),
            Guard::Magic | Guard::Free(_) | Guard::Never(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `#define` lines of a kernel header: name and number; x32's are taken without their bit.
    fn header(name: &str) -> Option<Vec<(String, i16)>> {
        let dirs = ["/usr/include/x86_64-linux-gnu/asm", "/usr/include/asm"];
        let text = dirs
            .iter()
            .find_map(|dir| std::fs::read_to_string(format!("{dir}/{name}")).ok())?;
        let calls = text.lines().filter_map(|line| {
            let rest = line.strip_prefix("#define __NR_")?;
            let (name, number) = rest.split_once(' ')?;
            let number = number
                .trim_start_matches("(__X32_SYSCALL_BIT + ")
                .trim_end_matches(')');
            Some((name.to_owned(), number.trim().parse().ok()?))
        });
        Some(calls.collect())
    }

    #[test]
    fn every_system_call_of_the_headers_has_a_row() {
        for (file, abi) in [
            ("unistd_64.h", Abi::X64),
            ("unistd_32.h", Abi::I386),
            ("unistd_x32.h", Abi::X32),
        ] {
            let Some(calls) = header(file) else {
                eprintln!("SKIPPED: no <asm/{file}> here");
                continue;
            };
            assert!(calls.len() > 300, "{file} was not understood");
            for (name, nr) in calls {
                let bit = if abi == Abi::X32 { X32_BIT } else { 0 };
                let row = abi.row(nr as u32 | bit);
                assert_eq!(
                    row.map(|row| row.name),
                    Some(name.as_str()),
                    "{nr} in {file}"
                );
            }
        }
    }

    /// What the kernel's generic header gives an architecture that asks for what aarch64 asks for (see its `asm/unistd.h`).
    fn generic_header() -> Option<Vec<(String, i16)>> {
        const WANTS: [&str; 6] = [
            "RENAMEAT",
            "NEW_STAT",
            "SET_GET_RLIMIT",
            "TIME32_SYSCALLS",
            "SYS_CLONE3",
            "MEMFD_SECRET",
        ];
        let header = "/usr/include/asm-generic/unistd.h";
        if !std::path::Path::new(header).exists() {
            return None;
        }
        let macros = std::process::Command::new("cc")
            .args(WANTS.map(|want| format!("-D__ARCH_WANT_{want}")))
            .args(["-E", "-dM", "-xc", header])
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&macros.stdout).into_owned();
        let defined: std::collections::HashMap<&str, &str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("#define ")?.split_once(' '))
            .collect();
        let calls = defined.iter().filter_map(|(name, mut value)| {
            while let Some(other) = defined.get(value) {
                value = other;
            }
            Some((name.strip_prefix("__NR_")?.to_owned(), value.parse().ok()?))
        });
        // How many there are, and where an architecture's own would begin.
        let bounds = ["syscalls", "arch_specific_syscall"];
        Some(
            calls
                .filter(|(name, _)| !bounds.contains(&name.as_str()))
                .collect(),
        )
    }

    #[test]
    fn every_system_call_of_aarch64_has_a_row() {
        let Some(calls) = generic_header() else {
            eprintln!("SKIPPED: no <asm-generic/unistd.h> or no compiler here");
            return;
        };
        assert!(calls.len() > 300, "the header was not understood");
        for (name, nr) in &calls {
            let row = ROWS.iter().find(|row| row.name == name);
            assert_eq!(row.map(Row::arm64), Some(Some(*nr)), "{name}");
        }
        // A name that aarch64's own headers do not know is no call of it, unless it is newer than they are.
        let newest = calls.iter().map(|call| call.1).max();
        for row in ROWS {
            let known = calls.iter().any(|call| call.0 == row.name);
            assert!(
                known || row.arm64().is_none() || row.arm64() > newest,
                "{}",
                row.name
            );
        }
    }

    /// Headers may be older than the kernel: what the kernel that runs here has built in needs a row all the same.
    #[test]
    fn every_system_call_of_the_running_kernel_has_a_row() {
        let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        let calls: Vec<&str> = symbols
            .lines()
            .filter_map(|line| line.split(' ').nth(2)?.strip_prefix("__x64_sys_"))
            // Parts that the compiler has put elsewhere.
            .filter(|call| !call.contains('.'))
            .collect();
        if calls.len() < 300 {
            eprintln!("SKIPPED: this kernel does not name its system calls");
            return;
        }
        // The kernel's own names, where they are not those of the headers.
        const OTHER: &[(&str, &str)] = &[
            ("mmap_pgoff", "mmap2"),
            ("sendfile64", "sendfile"),
            ("umount", "umount2"),
            ("sysctl", "_sysctl"),
            ("llseek", "_llseek"),
            ("oldumount", "umount"),
            ("recv", "socketcall"),
            ("send", "socketcall"),
            ("ni_syscall", "tuxcall"),
            ("sync_file_range2", "sync_file_range"),
        ];
        // Calls of other architectures, for which an x86 kernel has an empty function.
        const ELSEWHERE: &[&str] = &[
            "gethostname",
            "pciconfig",
            "rtas",
            "s390",
            "spu_",
            "subpage",
        ];
        let row = |name: &str| ROWS.iter().any(|row| row.name == name);
        for call in calls
            .into_iter()
            .filter(|call| !ELSEWHERE.iter().any(|e| call.starts_with(e)))
        {
            let name = OTHER
                .iter()
                .find(|other| other.0 == call)
                .map_or(call, |other| other.1);
            // Older layouts of what 32-bit programs pass, and the forms before and after them.
            let short = ["_time32", "32", "16"]
                .iter()
                .find_map(|end| name.strip_suffix(end));
            let plain = ["new", "old_", "ia32_"]
                .iter()
                .find_map(|start| name.strip_prefix(start));
            assert!(
                [Some(name), short, plain].into_iter().flatten().any(row),
                "{call}"
            );
        }
    }

    #[test]
    fn a_number_stands_for_one_call_only() {
        let numbers: [fn(&Row) -> i16; 3] = [|r| r.x64, |r| r.i386, |r| r.arm64().unwrap_or(-1)];
        for number in numbers {
            let mut numbers: Vec<_> = ROWS.iter().map(number).filter(|nr| *nr >= 0).collect();
            numbers.sort_unstable();
            let all = numbers.len();
            numbers.dedup();
            assert_eq!(numbers.len(), all);
        }
    }

    #[test]
    fn calls_that_must_not_be_disturbed_are_never_watched() {
        let never = [
            "close",
            "read",
            "write",
            "fork",
            "vfork",
            "clone3",
            "exit",
            "exit_group",
            "rt_sigreturn",
        ];
        for name in never {
            let row = ROWS.iter().find(|row| row.name == name).expect(name);
            assert_eq!(row.guard.shape(), None, "{name}");
        }
    }

    #[test]
    fn the_x32_and_i386_numbers_of_execve_are_found() {
        assert_eq!(
            Abi::X32.row(520 | X32_BIT).map(|row| row.name),
            Some("execve")
        );
        assert_eq!(Abi::I386.row(11).map(|row| row.name), Some("execve"));
        assert_eq!(Abi::X64.row(59).map(|row| row.name), Some("execve"));
    }
}
