//! The interpreter of a script and the dynamic loader of an ELF file, as a program's first bytes
//! name them.
//!
//! The kernel opens these files itself while it runs the program. The process makes no system call
//! for them, so neither the recorder nor the guard sees them opened.
//!
//! Absent on purpose: opening anything. The caller passes the bytes.

use crate::elf::{self, ElfHead};

/// Bytes of a program that are read: its headers, and the name of its interpreter, lie within them.
pub const HEAD: usize = 4096;

/// Bytes of a script's first line that the kernel reads (`BINPRM_BUF_SIZE`).
const LINE: usize = 256;

/// The interpreter or loader that a program's first bytes name, as it is written there; `None` if
/// they name none.
pub fn interpreter(head: &[u8]) -> Option<&[u8]> {
    match head {
        [b'#', b'!', ..] => script(&head[2..head.len().min(LINE)]),
        _ => loader(head),
    }
    .filter(|path| !path.is_empty())
}

/// The first word of a script's first line.
fn script(line: &[u8]) -> Option<&[u8]> {
    let line = line.split(|&byte| byte == b'\n').next()?;
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | 0);
    line.split(blank).find(|word| !word.is_empty())
}

/// The loader that the first bytes of an ELF file name (`PT_INTERP`).
///
/// `None` for a static program, and for a file that is not a little-endian ELF file.
pub fn loader(head: &[u8]) -> Option<&[u8]> {
    let elf = ElfHead::new(head)?;
    for segment in elf.segments() {
        let segment = segment?;
        if segment.kind == elf::INTERPRETER {
            return elf.bytes(segment)?.split(|&byte| byte == 0).next();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scripts_interpreter_is_the_first_word_of_its_first_line() {
        assert_eq!(
            interpreter(b"#! \t/usr/bin/env sh\nexit\n"),
            Some(&b"/usr/bin/env"[..])
        );
        assert_eq!(interpreter(b"#!bin/own\n"), Some(&b"bin/own"[..]));
        for none in [
            &b"#!\n/bin/sh\n"[..],
            b"#!",
            b"text",
            b"",
            b"\x7fELF\x02\x01",
        ] {
            assert_eq!(interpreter(none), None);
        }
    }

    #[test]
    fn this_programs_loader_is_found_and_a_cut_header_names_no_loader() {
        let whole = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let head = &whole[..HEAD];
        let found = interpreter(head).expect("a dynamically linked test");
        assert!(found.starts_with(b"/lib"), "{found:?}");
        for cut in 0..800 {
            let _ = interpreter(&head[..cut]);
        }
    }
}
