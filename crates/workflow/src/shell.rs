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

    #[test]
    fn bash_reads_every_word_back_as_it_was() {
        let words: Vec<Vec<u8>> = vec![
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
        ];
        for word in words {
            let line = format!("printf %s {}", quote(&word));
            let Ok(output) = Command::new("bash")
                .arg("-c")
                .arg(OsStr::from_bytes(line.as_bytes()))
                .output()
            else {
                println!("SKIPPED: bash is not here");
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
