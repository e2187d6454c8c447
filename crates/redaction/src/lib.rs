//! Marks that stand in a record in place of secret values. In: the length of a secret. Out: the
//! mark that replaces it.
//!
//! Invariants: only this crate knows the form of a mark. A mark is never longer than the secret, so
//! it fits into the same bytes.
//!
//! Absent on purpose: the rules that decide which values are secret.

/// Replaces a secret that is at least as long as this mark.
pub const MARK: &[u8] = b"<redacted>";

/// The mark for the value of an environment variable that is `length` bytes long.
pub fn value_mark(length: usize) -> Vec<u8> {
    match length < MARK.len() {
        true => vec![b'*'; length],
        false => MARK.to_vec(),
    }
}

/// True for a mark that [`value_mark`] made. No value in ordinary use has this form.
pub fn is_value_mark(value: &[u8]) -> bool {
    value == MARK
        || !value.is_empty() && value.len() < MARK.len() && value.iter().all(|&byte| byte == b'*')
}

/// The mark for `length` bytes of an argument. Asterisks alone would be a shell's pattern.
pub fn part_mark(length: usize) -> Vec<u8> {
    match length {
        0 | 1 => vec![b'*'; length],
        _ if length < MARK.len() => [b"<", vec![b'*'; length - 2].as_slice(), b">"].concat(),
        _ => MARK.to_vec(),
    }
}

/// True if a mark stands in an argument in place of four bytes or more.
pub fn has_mark(argument: &[u8]) -> bool {
    let marked = |at: usize| {
        let inside = argument[at + 1..].split(|&byte| byte == b'>').next();
        let closed =
            inside.is_some_and(|inside| argument.get(at + 1 + inside.len()) == Some(&b'>'));
        closed
            && inside.is_some_and(|inside| {
                inside == &MARK[1..MARK.len() - 1]
                    || (2..8).contains(&inside.len()) && inside.iter().all(|&b| b == b'*')
            })
    };
    argument
        .iter()
        .enumerate()
        .any(|(at, &byte)| byte == b'<' && marked(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_recognised_and_never_longer_than_the_secret() {
        for length in 0..30 {
            assert!(value_mark(length).len() <= length && part_mark(length).len() <= length);
            assert_eq!(is_value_mark(&value_mark(length)), length > 0, "{length}");
            let argument = [b"--token=", part_mark(length).as_slice(), b" x"].concat();
            assert_eq!(has_mark(&argument), length >= 4, "{length}");
        }
    }

    #[test]
    fn ordinary_arguments_are_not_taken_for_marks() {
        for plain in [
            "--include=*",
            "<>",
            "<*>",
            "while (<>)",
            "a<b>",
            "<stdio.h>",
            "<**",
            "2<<**",
        ] {
            assert!(!has_mark(plain.as_bytes()), "{plain}");
        }
        for plain in ["", "x*", "**********", "<redacted"] {
            assert!(!is_value_mark(plain.as_bytes()), "{plain}");
        }
    }
}
