//! Words of shell language. Invariant: a shell reads a quoted word back byte by byte.
//!
//! POSIX quotes suffice for most words. Control characters and bytes that are not UTF-8 need
//! `$'…'`, which bash, zsh, ksh and POSIX.1-2024 have.

/// Stands for the stem: a private character (Unicode's private use area) that no quoting changes.
pub const STEM: char = '\u{e000}';

/// One argument as a word for a shell. [`STEM`] counts as a character that needs no quotes.
pub fn quote(word: &[u8]) -> String {
    let safe = |byte: &u8| byte.is_ascii_alphanumeric() || b"%+,-./:=@_".contains(byte);
    match std::str::from_utf8(word) {
        // zsh replaces `=name` by the path of the command `name`.
        Ok(text)
            if !word.is_empty()
                && word[0] != b'='
                && text.replace(STEM, "").bytes().all(|byte| safe(&byte)) =>
        {
            text.to_owned()
        }
        Ok(text) if !text.chars().any(unprintable) => format!("'{}'", text.replace('\'', "'\\''")),
        _ => escaped(word),
    }
}

/// Arguments as a line for a shell.
pub fn line(words: impl IntoIterator<Item = impl AsRef<[u8]>>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| quote(word.as_ref())).collect();
    words.join(" ")
}

/// The arguments of a line that [`line`] made. `None`: it did not make this line.
pub fn words(line: &str) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let mut word = Vec::new();
        rest = match rest.strip_prefix("$'") {
            Some(inside) => unescaped(inside, &mut word)?,
            None => unquoted(rest, &mut word).filter(|after| after.len() < rest.len())?,
        };
        words.push(word);
        if !rest.is_empty() {
            rest = rest.strip_prefix(' ').filter(|rest| !rest.is_empty())?;
        }
    }
    Some(words)
}

/// Reads a word without escapes. Returns the rest of the line.
fn unquoted<'l>(line: &'l str, word: &mut Vec<u8>) -> Option<&'l str> {
    let mut rest = line;
    while let Some(c) = rest.chars().next().filter(|c| *c != ' ') {
        rest = &rest[c.len_utf8()..];
        match c {
            '\'' => {
                let (inside, after) = rest.split_once('\'')?;
                word.extend(inside.as_bytes());
                rest = after;
            }
            // The only character that stands between quotes.
            '\\' => {
                rest = rest.strip_prefix('\'')?;
                word.push(b'\'');
            }
            c => word.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Some(rest)
}

/// Reads a word with escapes, behind `$'`. Returns the rest of the line.
fn unescaped<'l>(line: &'l str, word: &mut Vec<u8>) -> Option<&'l str> {
    let mut rest = line;
    loop {
        let c = rest.chars().next()?;
        rest = &rest[c.len_utf8()..];
        match c {
            '\'' => return Some(rest),
            '\\' => {
                let escape = rest.chars().next()?;
                let length = if escape.is_ascii_digit() { 3 } else { 1 };
                let (digits, after) = rest.split_at_checked(length)?;
                word.push(match escape {
                    'n' => b'\n',
                    't' => b'\t',
                    '\'' | '\\' => escape as u8,
                    _ => u8::from_str_radix(digits, 8).ok()?,
                });
                rest = after;
            }
            c => word.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// The name of a command as a word for a shell, which would take a word with `=` for an assignment.
pub fn quote_name(word: &[u8]) -> String {
    let line = quote(word);
    if line.contains('=') && !line.contains('\'') {
        format!("'{line}'")
    } else {
        line
    }
}

/// Control characters, and characters that change the display of the rest of the line.
fn unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// `$'…'` with octal escapes. Each has three digits, so that the next character cannot belong to
/// it.
fn escaped(word: &[u8]) -> String {
    let mut line = String::from("$'");
    for chunk in word.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\'' | '\\' => line.extend(['\\', c]),
                '\n' => line.push_str("\\n"),
                '\t' => line.push_str("\\t"),
                c if unprintable(c) => {
                    let mut buffer = [0; 4];
                    c.encode_utf8(&mut buffer)
                        .bytes()
                        .for_each(|byte| line.push_str(&format!("\\{byte:03o}")));
                }
                c => line.push(c),
            }
        }
        chunk
            .invalid()
            .iter()
            .for_each(|byte| line.push_str(&format!("\\{byte:03o}")));
    }
    line.push('\'');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::process::Command;

    /// Words of all kinds.
    fn all_kinds() -> Vec<Vec<u8>> {
        vec![
            b"plain".to_vec(),
            b"".to_vec(),
            b"it's".to_vec(),
            b"a=b".to_vec(),
            b"~".to_vec(),
            b"*?[x]{a,b}$HOME`id`!;&|<>#\"\\".to_vec(),
            b"new\nline\ttab\x1b[0m\x07".to_vec(),
            b"\xff\xfe7 \xc3\xa4'\\".to_vec(),
            "\u{202e}right-to-left".as_bytes().to_vec(),
            (1..=255).collect(),
        ]
    }

    #[test]
    fn a_line_is_read_back_as_its_words() {
        let all = all_kinds();
        assert_eq!(words(&line(&all)), Some(all.clone()));
        for word in all {
            assert_eq!(words(&quote(&word)), Some(vec![word]));
        }
        assert_eq!(words(""), Some(Vec::new()));
        for other in [
            "a  b", "a ", "'a", "$'a", "$'\\x41'", "a\\b", "$'\\9'", "$'\\é'",
        ] {
            assert_eq!(words(other), None, "{other}");
        }
    }

    #[test]
    fn bash_reads_every_word_back_as_it_was() {
        for word in all_kinds() {
            let line = format!("printf %s {}", quote(&word));
            let Ok(output) = Command::new("bash")
                .arg("-c")
                .arg(OsStr::from_bytes(line.as_bytes()))
                .output()
            else {
                backstory_testkit::need::skipped("quoted words", "needs bash");
                return;
            };
            assert_eq!(output.stdout, word, "{line}");
        }
    }

    #[test]
    fn a_quoted_word_has_no_control_character_for_the_terminal() {
        assert!(!quote(b"\x1b]0;title\x07").contains('\x1b'));
    }
}
