//! Programs that the kernel opens by itself to run a program: a dynamic loader, a script's interpreter. No call asks for them, so that
//! a record may lack them.

/// So much of a file is looked at: its headers, and where they name an interpreter.
pub const HEAD: usize = 4096;

/// The interpreter that a program's first bytes name.
pub fn named(head: &[u8]) -> Option<Vec<u8>> {
    let path = match head {
        [b'#', b'!', line @ ..] => script(line),
        [0x7f, b'E', b'L', b'F', class, ..] => loader(head, *class == 2),
        _ => None,
    };
    path.filter(|path| path.starts_with(b"/"))
}

fn script(line: &[u8]) -> Option<Vec<u8>> {
    let line = line.split(|&byte| byte == b'\n').next()?.trim_ascii();
    let word = line.split(|byte| byte.is_ascii_whitespace()).next()?;
    Some(word.to_vec())
}

/// The path in the program header of type `PT_INTERP`.
fn loader(head: &[u8], wide: bool) -> Option<Vec<u8>> {
    let number = |at: usize, bytes: usize| -> Option<usize> {
        let slice = head.get(at..at.checked_add(bytes)?)?;
        slice.iter().rev().try_fold(0usize, |all, &byte| {
            all.checked_mul(256)?.checked_add(byte.into())
        })
    };
    let (table, size, count) = match wide {
        true => (number(0x20, 8)?, number(0x36, 2)?, number(0x38, 2)?),
        false => (number(0x1c, 4)?, number(0x2a, 2)?, number(0x2c, 2)?),
    };
    const INTERPRETER: usize = 3;
    for which in 0..count {
        let at = table.checked_add(which.checked_mul(size)?)?;
        if number(at, 4)? != INTERPRETER {
            continue;
        }
        let (offset, length) = match wide {
            true => (number(at + 8, 8)?, number(at + 0x20, 8)?),
            false => (number(at + 4, 4)?, number(at + 0x10, 4)?),
        };
        let path = head.get(offset..offset.checked_add(length)?)?;
        return Some(path.split(|&byte| byte == 0).next()?.to_vec());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scripts_interpreter_is_the_first_word_of_its_first_line() {
        assert_eq!(
            named(b"#! /usr/bin/env sh\nexit\n"),
            Some(b"/usr/bin/env".to_vec())
        );
        assert_eq!(named(b"#!\n"), None);
        assert_eq!(named(b"text"), None);
    }

    #[test]
    fn this_programs_loader_is_found_and_cut_headers_are_none() {
        let whole = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let head = &whole[..HEAD];
        let loader = named(head).expect("a dynamically linked test");
        assert!(std::path::Path::new(std::str::from_utf8(&loader).unwrap()).exists());
        for cut in 0..800 {
            let _ = named(&head[..cut]);
        }
    }
}
