//! The text that a shell got with `-c`: whether it fits into one line among others, and whether
//! every shell understands it alike.
//!
//! Nothing is executed or expanded. A text that is not understood for certain is left as it is.

use std::ops::ControlFlow;

use crate::tools::knowledge;

/// The text in one line: continued lines are joined, as the shell joins them. `None` if the text
/// has several lines or a comment, or is not UTF-8.
pub fn one_line(text: &[u8]) -> Option<Vec<u8>> {
    std::str::from_utf8(text).ok()?;
    if !text.contains(&b'\n') && !text.contains(&b'#') {
        return Some(text.to_vec());
    }
    let mut reader = LineReader {
        text,
        at: 0,
        out: Vec::new(),
        quote: Quote::None,
    };
    while reader.at < text.len() {
        if reader.step().is_break() {
            return None;
        }
    }
    (reader.quote == Quote::None).then_some(reader.out)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quote {
    None,
    Single,
    Double,
}

struct LineReader<'t> {
    text: &'t [u8],
    at: usize,
    out: Vec<u8>,
    quote: Quote,
}

impl LineReader<'_> {
    /// Reads the next character, or two that belong together. Breaks if the text does not fit into
    /// one line.
    fn step(&mut self) -> ControlFlow<()> {
        let (byte, next) = (self.text[self.at], self.text.get(self.at + 1).copied());
        match (self.quote, byte, next) {
            (_, b'\n', _) => return ControlFlow::Break(()),
            (Quote::None | Quote::Double, b'\\', Some(b'\n')) => {
                self.at += 2;
                self.join();
                return ControlFlow::Continue(());
            }
            (Quote::None | Quote::Double, b'\\', Some(next)) => {
                self.out.extend([byte, next]);
                self.at += 2;
                return ControlFlow::Continue(());
            }
            // Quoting starts anew in a command substitution.
            (Quote::Double, b'`', _) | (Quote::Double, b'$', Some(b'(')) => {
                return ControlFlow::Break(());
            }
            (Quote::None, b'#', _) if self.begins_word() => return ControlFlow::Break(()),
            (Quote::None, b'\'', _) => self.quote = Quote::Single,
            (Quote::None, b'"', _) => self.quote = Quote::Double,
            (Quote::Single, b'\'', _) | (Quote::Double, b'"', _) => self.quote = Quote::None,
            _ => {}
        }
        self.out.push(byte);
        self.at += 1;
        ControlFlow::Continue(())
    }

    fn begins_word(&self) -> bool {
        self.out
            .last()
            .is_none_or(|last| b" \t;&|()`".contains(last))
    }

    /// Reads the indentation behind a joined line: one blank outside of quotes.
    fn join(&mut self) {
        let blank = |byte: &&u8| b" \t".contains(byte);
        let blanks = self.text[self.at..].iter().take_while(blank).count();
        if self.quote == Quote::None && blanks > 0 {
            self.at += blanks;
            if !self.out.ends_with(b" ") {
                self.out.push(b' ');
            }
        }
    }
}

/// Syntax that only bash understands, or that bash understands differently from other shells. Some
/// braces expand in bash, so all braces are here.
const BASH_SYNTAX: [&str; 15] = [
    "[[", "((", "<(", ">(", "$'", "$\"", "<<", "&>", "|&", "=(", "==", "//", "{", "~", "BASH",
];

/// True if every shell certainly understands the text as bash does.
pub fn is_for_any_shell(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let is_end = |c: char| c.is_whitespace() || ";|&()<>`'\"$".contains(c);
    let commands = &knowledge().shell.bash_commands;
    let mut words = text.split(is_end);
    !BASH_SYNTAX.iter().any(|part| text.contains(part))
        && !words.any(|word| commands.iter().any(|command| command == word))
        && echoes_plainly(&text)
}

/// True if every `echo` prints the same in every shell: it has no options and no backslash, and no
/// variable that could hold one.
fn echoes_plainly(text: &str) -> bool {
    let mut echoes = text.split("echo").skip(1);
    echoes.all(|rest| {
        let words = rest.split([';', '|', '&', ')', '`']).next().unwrap_or(rest);
        let plain = |c: char| c.is_ascii_alphanumeric() || " '\"_./,:+-%@=".contains(c);
        let option = words.trim_start_matches([' ', '\'', '"']).starts_with('-');
        !option && words.chars().all(plain) && is_closed(words)
    })
}

/// True if no quote is open at the end of the text.
fn is_closed(text: &str) -> bool {
    let quotes = text.chars().filter(|c| matches!(c, '\'' | '"'));
    let open = quotes.fold(None, |open, quote| match open {
        None => Some(quote),
        Some(other) if other == quote => None,
        _ => open,
    });
    open.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Option<String> {
        one_line(text.as_bytes()).map(|line| String::from_utf8(line).unwrap())
    }

    #[test]
    fn continued_lines_are_joined_as_a_shell_joins_them() {
        for (text, joined) in [
            ("cc -c a.c &&\\\n\tmv a b", "cc -c a.c && mv a b"),
            ("echo a\\\nb", "echo ab"),
            ("echo \"a\\\n  b\"", "echo \"a  b\""),
            ("echo 'it''s' \\\n #x", ""),
            (
                "echo ${#x} a#b '# c' \"# d\"",
                "echo ${#x} a#b '# c' \"# d\"",
            ),
            ("echo \\' \\\n  y", "echo \\' y"),
        ] {
            assert_eq!(line(text).unwrap_or_default(), joined, "{text:?}");
            if !joined.is_empty() {
                let said = |text: &str| {
                    std::process::Command::new("sh")
                        .args(["-c", text])
                        .output()
                        .unwrap()
                        .stdout
                };
                assert_eq!(said(text), said(joined), "{text:?}");
            }
        }
    }

    #[test]
    fn a_text_with_several_lines_or_a_comment_is_left_alone() {
        for text in [
            "a\nb",
            "a # b",
            "#b",
            "a;#b",
            "echo 'a\nb'",
            "echo 'a\\\nb'",
            "echo \"$(a #b\n)\"",
            "echo '#",
        ] {
            assert_eq!(line(text), None, "{text:?}");
        }
        assert_eq!(one_line(b"\xff"), None);
    }

    #[test]
    fn syntax_of_bash_is_not_for_every_shell() {
        assert!(is_for_any_shell(
            b"gcc -I. -c a.c -o a.o && mv -f .deps/a.Tpo .deps/a.Po"
        ));
        // A rule of Automake; its file names contain commands of bash.
        assert!(is_for_any_shell(
            b"depbase=`echo lib/localcharset.o | sed 's|[^/]*$|.deps/&|;s|\\.o$||'`;gcc -MF $depbase.Tpo -c -o lib/localcharset.o lib/read.c"
        ));
        for text in [
            "[[ -f a ]] && b",
            "cp {a,b} c",
            "diff <(a) b",
            "echo -e 'a\\tb'",
            "x=(1 2)",
            "a &> b",
            "echo 'a\\tb'",
            "echo 'a;b\\t'",
            "echo \"'\" 'x\"\" ;\\t'",
            "echo $x",
            "cd a; read x",
            "f=`printf %q x`",
        ] {
            assert!(!is_for_any_shell(text.as_bytes()), "{text}");
        }
    }
}
