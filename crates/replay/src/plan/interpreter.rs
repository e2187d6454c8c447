//! Programs that the kernel opens by itself to run a program: a dynamic loader, a script's interpreter. No call asks for them, so that
//! a record may lack them.

use backstory_export::loader;

/// So much of a file is looked at: its headers, and where they name an interpreter.
pub const HEAD: usize = 4096;

/// The interpreter that a program's first bytes name.
pub fn named(head: &[u8]) -> Option<Vec<u8>> {
    let path = match head {
        [b'#', b'!', line @ ..] => script(line),
        _ => loader::named(head),
    };
    path.filter(|path| path.starts_with(b"/"))
}

fn script(line: &[u8]) -> Option<Vec<u8>> {
    let line = line.split(|&byte| byte == b'\n').next()?.trim_ascii();
    let word = line.split(|byte| byte.is_ascii_whitespace()).next()?;
    Some(word.to_vec())
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
