//! The dynamic loader of a program: the kernel maps it without a system call, so no record names it. The program's own header does.

use std::io::{self, Read};

/// The loader that an ELF file asks for (`PT_INTERP`); none if it is static, or no ELF file of this machine's byte order.
pub fn wanted(file: &mut dyn Read) -> io::Result<Option<Vec<u8>>> {
    // Headers and the loader's name lie at the beginning.
    let mut head = Vec::new();
    file.take(1 << 16).read_to_end(&mut head)?;
    Ok(named(&head))
}

/// The loader that the first bytes of an ELF file name, as [`wanted`] tells. Fields lie as `elf(5)` says, for ELF-64 and ELF-32.
pub fn named(head: &[u8]) -> Option<Vec<u8>> {
    const INTERP: u64 = 3;
    let wide = match head.get(..6)? {
        [0x7f, b'E', b'L', b'F', 2, 1] => true,
        [0x7f, b'E', b'L', b'F', 1, 1] => false,
        _ => return None,
    };
    let number = |at: usize, bytes: usize| -> Option<u64> {
        let field = head.get(at..at.checked_add(bytes)?)?;
        Some(
            field
                .iter()
                .rev()
                .fold(0, |sum, &byte| sum << 8 | u64::from(byte)),
        )
    };
    let (table, size, count) = match wide {
        true => (number(32, 8)?, number(54, 2)?, number(56, 2)?),
        false => (number(28, 4)?, number(42, 2)?, number(44, 2)?),
    };
    for at in 0..count {
        let entry = usize::try_from(table.checked_add(at.checked_mul(size)?)?).ok()?;
        if number(entry, 4)? != INTERP {
            continue;
        }
        let (from, length) = match wide {
            true => (number(entry + 8, 8)?, number(entry + 32, 8)?),
            false => (number(entry + 4, 4)?, number(entry + 16, 4)?),
        };
        let from = usize::try_from(from).ok()?;
        let name = head.get(from..from.checked_add(usize::try_from(length).ok()?)?)?;
        return Some(name.split(|&byte| byte == 0).next()?.to_vec());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_names_its_loader_and_a_script_none() {
        let mut own = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
        let loader = wanted(&mut own).unwrap().unwrap();
        assert!(loader.starts_with(b"/lib"), "{loader:?}");
        assert_eq!(wanted(&mut &b"#!/bin/sh\n"[..]).unwrap(), None);
        assert_eq!(wanted(&mut &b"\x7fELF\x02\x01"[..]).unwrap(), None);
    }
}
