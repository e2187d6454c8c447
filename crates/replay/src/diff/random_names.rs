//! Names that differ each time: of temporary files, and with process numbers in them.
//!
//! In: arguments, values of variables and paths of one side. Out: the same texts with a mark in
//! place of each random part, so that the same work in two runs has the same texts.
//!
//! | example | what makes it random |
//! | --- | --- |
//! | `-plugin-opt=-fresolution=/tmp/ccZq1x.res` | the run removed the file again |
//! | `/tmp/tmp.AbCdEfGhIj/list` | a directory of temporary files, and the form of `mktemp` |
//! | `out.31415.log` | a process number of the run |
//!
//! Names that both sides have are never changed: [`mask`] is for those that one side alone has.

use std::collections::HashSet;

/// Replaces the name of a file that no longer exists.
pub const TEMPORARY: &[u8] = b"<temporary file>";

/// Replaces a part of a name that differs each time.
const RANDOM: &[u8] = b"<random>";

/// Replaces a process number.
const PROCESS: &[u8] = b"<process number>";

/// Directories in which programs make files with random names.
const DIRECTORIES: [&[u8]; 4] = [b"/tmp/", b"/var/tmp/", b"/dev/shm/", b"/run/user/"];

/// The least length of a random part: `mktemp` needs three `X`, and all programs use six.
const LEAST: usize = 6;

/// `text` with each temporary path, each random name in a directory of temporary files, and each of
/// the process numbers replaced. `is_temporary` is asked about absolute paths.
pub fn shared(text: &[u8], is_temporary: &dyn Fn(&[u8]) -> bool, processes: &[u32]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let begins = at == 0 || !is_path_byte(text[at - 1]);
        let glued = at >= 2 && text[at - 2] == b'-' && text[at - 1].is_ascii_alphabetic();
        if text[at] == b'/' && (begins || glued) {
            let end = at
                + text[at..]
                    .iter()
                    .take_while(|&&byte| is_path_byte(byte))
                    .count();
            out.extend(path(&text[at..end], is_temporary));
            at = end;
        } else if text[at].is_ascii_digit() {
            let end = at
                + text[at..]
                    .iter()
                    .take_while(|byte| byte.is_ascii_digit())
                    .count();
            let number = std::str::from_utf8(&text[at..end]).ok();
            let number = number.and_then(|digits| digits.parse().ok());
            match number.filter(|number| *number > 99 && processes.contains(number)) {
                Some(_) => out.extend(PROCESS),
                None => out.extend(&text[at..end]),
            }
            at = end;
        } else {
            out.push(text[at]);
            at += 1;
        }
    }
    out
}

fn is_path_byte(byte: u8) -> bool {
    !matches!(byte, b':' | b',' | b';' | b'=' | b'"' | b'\'' | b'(' | b')') && byte > b' '
}

fn path(path: &[u8], is_temporary: &dyn Fn(&[u8]) -> bool) -> Vec<u8> {
    if is_temporary(path) {
        return TEMPORARY.to_vec();
    }
    match DIRECTORIES.iter().find(|top| path.starts_with(top)) {
        Some(top) => [top, &*masked(&path[top.len()..], &|token| is_random(token))].concat(),
        None => path.to_vec(),
    }
}

/// True for a word as programs make them from random numbers: letters of both cases, or letters and
/// digits.
fn is_random(word: &[u8]) -> bool {
    let has = |wanted: fn(&u8) -> bool| word.iter().any(wanted);
    let kinds = [
        has(u8::is_ascii_digit),
        has(u8::is_ascii_lowercase),
        // A capital at the begin is a name's.
        word.iter().skip(1).any(u8::is_ascii_uppercase),
    ];
    word.len() >= LEAST && kinds.into_iter().filter(|kind| *kind).count() > 1
}

/// A text with a mark in place of each word that is random.
fn masked(text: &[u8], is_random: &dyn Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric();
    for part in text.chunk_by(|a, b| is_word(a) == is_word(b)) {
        match is_random(part) {
            true => out.extend(RANDOM),
            false => out.extend(part),
        }
    }
    out
}

/// The form of a name that one side alone has: random words and process numbers are replaced.
/// `None` if the name has neither. Two names of the same form are taken for the same file.
pub fn mask(name: &[u8], processes: &HashSet<u32>) -> Option<Vec<u8>> {
    let top = DIRECTORIES.iter().find(|top| name.starts_with(top));
    let number = |word: &[u8]| -> Option<u32> { std::str::from_utf8(word).ok()?.parse().ok() };
    let form = masked(name, &|word| {
        let process = number(word).is_some_and(|n| n > 99 && processes.contains(&n));
        // In a directory of temporary files, a random name may happen to have small letters only.
        let temporary = top.is_some() && word.len() >= LEAST;
        process || temporary || is_random(word)
    });
    (form != name).then_some(form)
}

/// The shape of a name: a letter stands for all letters and digits. Two names of which [`is_alike`]
/// holds have the same shape.
pub fn shape(name: &[u8]) -> Vec<u8> {
    let letter = |byte: &u8| {
        if byte.is_ascii_alphanumeric() {
            b'a'
        } else {
            *byte
        }
    };
    name.iter().map(letter).collect()
}

/// True for two names that differ only in words of the same length, of which at least one is
/// random. A random word may happen to have small letters only: one name in 400 of `mktemp` has
/// eight of them.
pub fn is_alike(a: &[u8], b: &[u8]) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric();
    let words = |name| <[u8]>::chunk_by(name, |a, b| is_word(a) == is_word(b));
    let either = |a, b| is_random(a) || is_random(b);
    shape(a) == shape(b) && words(a).zip(words(b)).all(|(a, b)| a == b || either(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_parts_of_arguments_are_replaced() {
        let gone = |path: &[u8]| path == b"/tmp/ccZq1x.res" || path == b"/w/conf.dir/a.out";
        let of = |text: &str| String::from_utf8(shared(text.as_bytes(), &gone, &[31415])).unwrap();
        for (text, wanted) in [
            (
                "-plugin-opt=-fresolution=/tmp/ccZq1x.res",
                "-plugin-opt=-fresolution=<temporary file>",
            ),
            ("-o/w/conf.dir/a.out", "-o<temporary file>"),
            ("/tmp/tmp.AbCdEfGhIj/list", "/tmp/tmp.<random>/list"),
            ("fifo:/tmp/GMfifo31415", "fifo:/tmp/<random>"),
            ("log.31415", "log.<process number>"),
            ("/tmp/mine/a.c", "/tmp/mine/a.c"),
            ("x/tmp/ccZq1x.res", "x/tmp/ccZq1x.res"),
            ("31415926", "31415926"),
        ] {
            assert_eq!(of(text), wanted, "{text}");
        }
    }

    #[test]
    fn names_of_one_side_alone_have_a_form_only_if_a_part_is_random() {
        let processes = HashSet::from([31415]);
        let of = |name: &str| mask(name.as_bytes(), &processes);
        assert_eq!(of("out.31415.log"), of("out.31415.log"));
        assert!(of("out.31415.log").is_some() && of("cache/Xy12ab.bin").is_some());
        assert_eq!(of("/tmp/tmpabcdefgh"), of("/tmp/tmpxyzuvwa"));
        for name in [
            "report.txt",
            "january.csv",
            "Makefile",
            "src/util.c",
            "2026.csv",
        ] {
            assert_eq!(of(name), None, "{name}");
        }
    }

    #[test]
    fn a_random_word_is_alike_a_word_of_its_length() {
        let of = |a: &str, b: &str| is_alike(a.as_bytes(), b.as_bytes());
        assert!(of("part.jf33N9A0", "part.homkdczb") && of("part.hxcfthqt", "part.eqS29Dwk"));
        assert!(!of("part.homkdczb", "part.hxcfthqt"));
        assert!(!of("part.jf33N9A0", "part.homkdc") && !of("part.jf33N9A0", "list.homkdczb"));
    }
}
