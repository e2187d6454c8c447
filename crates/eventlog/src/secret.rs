//! What stands in a record for a value that must not be in it.
//!
//! Invariant: this is the only place that knows. A mark is never longer than what it stands for, so that it fits where that stood.

/// Stands for whatever is long enough.
pub const MARK: &[u8] = b"<redacted>";

/// The mark for a value of an environment variable, which is so many bytes long.
pub fn value(length: usize) -> Vec<u8> {
    match length < MARK.len() {
        true => vec![b'*'; length],
        false => MARK.to_vec(),
    }
}

/// True for what [`value`] made, and for nothing that anybody would set a variable to.
pub fn is_value(value: &[u8]) -> bool {
    value == MARK
        || !value.is_empty() && value.len() < MARK.len() && value.iter().all(|&byte| byte == b'*')
}

/// The mark for so many bytes of an argument: asterisks alone would be a shell's pattern.
pub fn part(length: usize) -> Vec<u8> {
    match length {
        0 | 1 => vec![b'*'; length],
        _ if length < MARK.len() => [b"<", vec![b'*'; length - 2].as_slice(), b">"].concat(),
        _ => MARK.to_vec(),
    }
}

/// True if something of an argument is not in the record: a part of four bytes or more.
pub fn is_in(argument: &[u8]) -> bool {
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
    fn a_mark_is_known_for_one_and_never_longer_than_the_secret() {
        for length in 0..30 {
            assert!(value(length).len() <= length && part(length).len() <= length);
            assert_eq!(is_value(&value(length)), length > 0, "{length}");
            let argument = [b"--token=", part(length).as_slice(), b" x"].concat();
            assert_eq!(is_in(&argument), length >= 4, "{length}");
        }
    }

    #[test]
    fn what_programs_are_given_is_not_taken_for_a_mark() {
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
            assert!(!is_in(plain.as_bytes()), "{plain}");
        }
        for plain in ["", "x*", "**********", "<redacted"] {
            assert!(!is_value(plain.as_bytes()), "{plain}");
        }
    }
}
