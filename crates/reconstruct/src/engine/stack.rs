//! Where the stack of an executed program begins.
//!
//! The kernel puts the path of a program, its variables and its arguments above its stack. Without
//! randomization, these end at a fixed address. A recorded program had variables of the recorder,
//! too, so its stack began lower. A longer path of the same file moves the stack there.
//!
//! In: the strings that the program will get, and the recorded beginning. Out: its path with more
//! slashes. Invariant: the path leads to the same file, and ends with the same name. The program
//! sees the longer path as `AT_EXECFN` only (getauxval(3)).

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;

/// The end of all stacks, without randomization.
const END: u64 = 0x7fff_ffff_f000;
/// The kernel leaves this much free at the end.
const FREE: u64 = 8;
/// Stacks begin at multiples of this.
const STEP: u64 = 16;
/// The name of the platform (`AT_PLATFORM`), and the random bytes (`AT_RANDOM`).
const PLATFORM: u64 = "x86_64\0".len() as u64 + 16;
const WORD: u64 = 8;
/// Most bytes of arguments and variables, and more.
const LARGEST: u64 = 8 << 20;

/// The strings that the kernel puts above a stack, without the path of the program.
#[derive(Debug, Clone, Copy, Default)]
pub struct StackStrings {
    count: u64,
    bytes: u64,
}

impl StackStrings {
    /// Adds an argument or a variable, which has so many bytes without its NUL.
    pub fn add(&mut self, length: usize) {
        self.count += 1;
        self.bytes += length as u64 + 1;
    }

    /// The end of the strings' room, below a path of this length.
    fn below(self, path: usize) -> u64 {
        (END - FREE).saturating_sub(path as u64 + 1 + self.bytes)
    }

    /// Where the stack begins, with so many words in the auxiliary vector (`create_elf_tables` in
    /// `fs/binfmt_elf.c`).
    fn begins(self, path: usize, auxiliary: u64) -> u64 {
        let vectors = (self.below(path) / STEP * STEP).saturating_sub(PLATFORM);
        // Both lists end with a null pointer. The number of arguments precedes them.
        let words = auxiliary + self.count + 3;
        vectors.saturating_sub(words * WORD) / STEP * STEP
    }

    /// A path of the same file with which the stack begins at this address. `None`: it does so with
    /// this path, or no path can be so long.
    pub fn longer_path(self, path: &[u8], begins: u64) -> Option<Vec<u8>> {
        self.longer_path_with(path, begins, auxiliary_words()?)
    }

    fn longer_path_with(self, path: &[u8], begins: u64, auxiliary: u64) -> Option<Vec<u8>> {
        let down = self.begins(path.len(), auxiliary).checked_sub(begins)?;
        if down == 0 || down % STEP != 0 {
            return None;
        }
        let more = usize::try_from(down + self.below(path.len()) % STEP).ok()?;
        // The limit has room for the NUL.
        let is_short = path.len().checked_add(more)? < libc::PATH_MAX as usize;
        is_short.then(|| with_slashes(path, more))
    }
}

/// The same path with so many more bytes, two at least.
fn with_slashes(path: &[u8], more: usize) -> Vec<u8> {
    let slashes = |count| vec![b'/'; count];
    match path.iter().position(|byte| *byte == b'/') {
        Some(at) => [&path[..at], &slashes(more), &path[at..]].concat(),
        None => [b".", &slashes(more - 1)[..], path].concat(),
    }
}

/// True if a stack that began here ended at the fixed address, by all appearances.
pub fn is_fixed(begins: u64) -> bool {
    (END - LARGEST..END).contains(&begins)
}

/// Words in the auxiliary vector of each program that this kernel executes.
fn auxiliary_words() -> Option<u64> {
    static WORDS: OnceLock<Option<u64>> = OnceLock::new();
    *WORDS.get_or_init(|| {
        let own = std::fs::read("/proc/self/auxv").ok()?;
        Some(own.len() as u64 / WORD)
    })
}

/// True for a program that gets its path from the kernel as `AT_EXECFN` only. The interpreter of a
/// script gets it as an argument.
pub fn is_elf(path: &Path) -> bool {
    let mut head = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head == *b"\x7fELF"
}

#[cfg(test)]
mod tests {
    use super::{StackStrings, is_elf, is_fixed, with_slashes};
    use std::path::Path;

    /// Words in the auxiliary vector of Linux 6.1.
    const AUXILIARY: u64 = 46;

    fn strings(all: &[&str]) -> StackStrings {
        let mut strings = StackStrings::default();
        all.iter().for_each(|one| strings.add(one.len()));
        strings
    }

    #[test]
    fn a_stack_begins_where_the_kernel_lets_it_begin() {
        // As a program with these two arguments and this variable printed it.
        let strings = strings(&["a", "b", "A=1"]);
        for (path, begins) in [
            (23, 0x7fff_ffff_ee10),
            (28, 0x7fff_ffff_ee10),
            (38, 0x7fff_ffff_ee00),
            (123, 0x7fff_ffff_edb0),
            (149, 0x7fff_ffff_ed90),
            (4023, 0x7fff_ffff_de70),
        ] {
            assert_eq!(strings.begins(path, AUXILIARY), begins, "{path}");
        }
    }

    #[test]
    fn a_longer_path_makes_up_for_variables_that_are_missing() {
        let path = b"/usr/bin/mktemp";
        for variables in [&[][..], &["HOME=/"], &["HOME=/root", "LANG=C.UTF-8"]] {
            let own = [&["mktemp", "-u"][..], variables].concat();
            for length in 0..64 {
                let hidden = "x".repeat(length);
                let all = [&own[..], &[hidden.as_str(), "ARENA=/dev/shm/a"]].concat();
                let begins = strings(&all).begins(path.len(), AUXILIARY);
                let longer = strings(&own).longer_path_with(path, begins, AUXILIARY);
                let longer = longer.unwrap();
                let now = strings(&own).begins(longer.len(), AUXILIARY);
                assert_eq!(now, begins, "{all:?}");
                assert_eq!(Path::new("/usr/bin/mktemp"), as_path(&longer));
            }
        }
    }

    fn as_path(bytes: &[u8]) -> &Path {
        Path::new(std::str::from_utf8(bytes).unwrap())
    }

    #[test]
    fn a_stack_that_begins_there_already_or_lower_keeps_its_path() {
        let own = strings(&["mktemp", "A=1"]);
        let begins = own.begins(8, AUXILIARY);
        let longer = |begins| own.longer_path_with(b"/bin/one", begins, AUXILIARY);
        assert!(longer(begins - 16).is_some());
        assert!(is_fixed(begins) && !is_fixed(0x7ffd_1234_5670));
        // With random addresses, it began anywhere.
        for other in [begins, begins + 16, begins - 8, begins - 8192, 0] {
            assert_eq!(longer(other), None, "{other:#x}");
        }
    }

    #[test]
    fn slashes_stand_before_the_last_name() {
        for (path, expected) in [
            ("/bin/one", "////bin/one"),
            ("./one", ".////one"),
            ("bin/one", "bin////one"),
            ("one", ".//one"),
        ] {
            assert_eq!(with_slashes(path.as_bytes(), 3), expected.as_bytes());
        }
        assert!(is_elf(Path::new("/proc/self/exe")));
        assert!(!is_elf(Path::new("/proc/self/auxv")));
    }
}
