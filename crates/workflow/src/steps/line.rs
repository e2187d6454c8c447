//! A command line as words with their meaning, so that each format can quote them its own way.

use backstory_eventlog::event::Bytes;

use crate::paths::relative;
use crate::shell::{quote, quote_name};

/// A word of a command line.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Word {
    /// The name of a program.
    Program(Bytes),
    /// An argument, or the file of a redirection.
    Text(Bytes),
    /// `NAME=value` before a program.
    Set(Bytes, Bytes),
    /// Shell language as the user wrote it.
    Shell(Bytes),
    /// `|`, `<`, `>`, `>>`, `2>`, `2>>`, `2>&1`.
    Operator(&'static str),
}

/// A command or pipeline of commands.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Line {
    /// The directory in which it runs; absolute.
    pub cwd: Bytes,
    /// The commands, with their redirections.
    pub words: Vec<Word>,
    /// The exit status that was recorded.
    pub exit: i32,
}

impl Line {
    /// The line for a shell whose current directory is `base`.
    pub fn shell(&self, base: &[u8]) -> String {
        let mut text = self.command();
        if *self.cwd != *base {
            // Without the directory, none of several commands may run elsewhere.
            let several = self.is_shell() && text.contains([';', '&', '|', '\n']);
            let then = if several { "|| exit 1;" } else { "&&" };
            text = format!("cd {} {then} {text}", quote(relative(&self.cwd, base)));
        }
        match self.exit {
            0 => text,
            status => format!("{{ {text}; }} || [ $? -eq {status} ]"),
        }
    }

    /// True if the line is shell language as the user wrote it.
    pub fn is_shell(&self) -> bool {
        matches!(self.words.as_slice(), [Word::Shell(_)])
    }

    /// The line for a shell in the line's own directory, without its exit status.
    pub fn command(&self) -> String {
        let mut text = String::new();
        for (at, word) in self.words.iter().enumerate() {
            let alone = self.words.len() == 1;
            let word_text = match word {
                Word::Program(name) => quote_name(name),
                Word::Text(text) => quote(text),
                Word::Set(name, value) => {
                    format!("{}={}", String::from_utf8_lossy(name), quote_value(value))
                }
                Word::Shell(text) if alone => String::from_utf8_lossy(text).into_owned(),
                Word::Shell(text) => format!("( {} )", String::from_utf8_lossy(text)),
                Word::Operator(operator) => (*operator).to_owned(),
            };
            if at > 0 {
                text.push(' ');
            }
            text.push_str(&word_text);
        }
        text
    }
}

fn quote_value(value: &[u8]) -> String {
    if value.is_empty() {
        String::new()
    } else {
        quote(value)
    }
}

/// True if a value means the same in every language that sets variables. Such a value has no
/// quotes, dollars or comment signs, and no blanks at its ends.
pub fn is_plain_value(value: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b" %+,-./:=@_".contains(byte);
    value.iter().all(plain) && !value.starts_with(b" ") && !value.ends_with(b" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_command_of_a_list_runs_elsewhere_if_the_directory_is_missing() {
        let line = |words: Vec<Word>| Line {
            cwd: b"/w/x".as_slice().into(),
            words,
            exit: 0,
        };
        let shell = |text: &str| line(vec![Word::Shell(text.as_bytes().into())]).shell(b"/w");
        assert_eq!(shell("a; b"), "cd x || exit 1; a; b");
        assert_eq!(shell("a || b"), "cd x || exit 1; a || b");
        assert_eq!(shell("a b"), "cd x && a b");
        let plain = vec![
            Word::Program(b"a".as_slice().into()),
            Word::Text(b"b;c".as_slice().into()),
        ];
        assert_eq!(line(plain).shell(b"/w"), "cd x && a 'b;c'");
    }
}
