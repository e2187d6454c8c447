//! Facts about paths and executables that strace's text does not contain.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// `path` as seen from directory `base`, without `.`, `..` and doubled slashes. The file system
/// resolves `..` after a symbolic link, if the link still exists.
pub fn absolute(base: &[u8], path: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    if !path.starts_with(b"/") {
        whole.extend_from_slice(base);
    }
    for part in path.split(|b| *b == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                if let Ok(real) = fs::canonicalize(OsStr::from_bytes(&whole)) {
                    whole = real.as_os_str().as_bytes().to_vec();
                }
                let cut = whole.iter().rposition(|b| *b == b'/').unwrap_or(0);
                whole.truncate(cut);
            }
            _ => {
                if whole.last() != Some(&b'/') {
                    whole.push(b'/');
                }
                whole.extend_from_slice(part);
            }
        }
    }
    if whole.is_empty() {
        b"/".to_vec()
    } else {
        whole
    }
}

/// The files that the kernel loads to run a program.
#[derive(Debug, Default, PartialEq)]
pub struct Loaded {
    /// Interpreters: those of `#!` lines first, then the loader of the last of them.
    pub interpreters: Vec<Vec<u8>>,
    /// True with a loader: the program is dynamically linked.
    pub dynamic: bool,
}

/// Follows `#!` lines and the ELF header's `PT_INTERP` from `path` on.
pub fn loaded(path: &[u8]) -> Loaded {
    let mut found = Loaded::default();
    let mut file = path.to_vec();
    for _ in 0..4 {
        let head = head_of(&file);
        if let Some(interpreter) = shebang(&head) {
            found.interpreters.push(interpreter.clone());
            file = interpreter;
            continue;
        }
        if let Some(loader) = elf_interpreter(&head) {
            found.interpreters.push(loader);
            found.dynamic = true;
        }
        break;
    }
    found
}

fn head_of(path: &[u8]) -> Vec<u8> {
    let mut head = Vec::new();
    if let Ok(file) = fs::File::open(Path::new(OsStr::from_bytes(path))) {
        // The interpreters of an unreadable file are unknown.
        let _ = file.take(16384).read_to_end(&mut head);
    }
    head
}

fn shebang(head: &[u8]) -> Option<Vec<u8>> {
    let line = head.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    line.split(|b| b.is_ascii_whitespace())
        .find(|w| !w.is_empty())
        .map(<[u8]>::to_vec)
}

/// `PT_INTERP` of a 64-bit little-endian ELF file.
fn elf_interpreter(head: &[u8]) -> Option<Vec<u8>> {
    let number = |at: usize, size: usize| -> Option<usize> {
        let bytes = head.get(at..at + size)?;
        Some(
            bytes
                .iter()
                .rev()
                .fold(0usize, |n, b| n << 8 | usize::from(*b)),
        )
    };
    head.strip_prefix(b"\x7fELF\x02\x01")?;
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    for i in 0..count {
        let entry = table + i * size;
        if number(entry, 4)? == 3 {
            let (at, length) = (number(entry + 8, 8)?, number(entry + 32, 8)?);
            return head
                .get(at..at + length)?
                .split(|b| *b == 0)
                .next()
                .map(<[u8]>::to_vec);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_absolute() {
        assert_eq!(absolute(b"/a/b", b"./c//d"), b"/a/b/c/d");
        assert_eq!(absolute(b"/nowhere/b", b"../c"), b"/nowhere/c");
        assert_eq!(absolute(b"/a", b"/"), b"/");
        assert_eq!(absolute(b"/", b"x"), b"/x");
    }

    #[test]
    fn a_shells_loader_is_found() {
        let found = loaded(b"/bin/sh");
        assert!(
            found.dynamic && found.interpreters[0].starts_with(b"/lib"),
            "{found:?}"
        );
    }
}
