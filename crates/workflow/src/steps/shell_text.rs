//! What a shell was given with `-c`: whether it can stand in one line among others, and whether every shell understands it alike.
//!
//! Nothing is executed or expanded here; what is not understood for certain is left as it is.

use std::ops::ControlFlow;

/// The text in one line: continued lines are joined, as the shell does it. None if it cannot stand in one line: it has lines of its own, a
/// comment, or is no text.
pub fn one_line(text: &[u8]) -> Option<Vec<u8>> {
    std::str::from_utf8(text).ok()?;
    if !text.contains(&b'\n') && !text.contains(&b'#') {
        return Some(text.to_vec());
    }
    let mut reader = Reader {
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

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    out: Vec<u8>,
    quote: Quote,
}

impl Reader<'_> {
    /// Reads the next character, or two where they belong together. Breaks where the text cannot stand in one line.
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
            // What is quoted in there is a world of its own.
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

    /// Behind a joined line: outside of quotes, its indentation is one blank.
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

/// What bash understands otherwise than other shells, or alone; braces that expand are among them, and so all braces are.
const OTHERWISE: [&str; 15] = [
    "[[", "((", "<(", ">(", "$'", "$\"", "<<", "&>", "|&", "=(", "==", "//", "{", "~", "BASH",
];

/// Commands that bash has otherwise than other shells, or alone. `echo` is one where it is told more than plain words.
const COMMANDS: [&str; 16] = [
    "source",
    "function",
    "local",
    "declare",
    "typeset",
    "printf",
    "read",
    "readarray",
    "mapfile",
    "set",
    "shopt",
    "pushd",
    "let",
    "select",
    "time",
    "ulimit",
];

/// True if this is certain to mean the same to every shell as to bash.
pub fn is_for_any_shell(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let is_end = |c: char| c.is_whitespace() || ";|&()<>`'\"$".contains(c);
    let mut words = text.split(is_end);
    !OTHERWISE.iter().any(|part| text.contains(part))
        && !words.any(|word| COMMANDS.contains(&word))
        && echoes_plainly(&text)
}

/// True if whatever `echo` is told is the same to every shell: no options, nothing that could have a backslash in it.
fn echoes_plainly(text: &str) -> bool {
    let mut told = text.split("echo").skip(1);
    told.all(|rest| {
        let told = rest.split([';', '|', '&', ')', '`']).next().unwrap_or(rest);
        let plain = |c: char| c.is_ascii_alphanumeric() || " '\"_./,:+-%@=".contains(c);
        let option = told.trim_start_matches([' ', '\'', '"']).starts_with('-');
        !option && told.chars().all(plain) && is_closed(told)
    })
}

/// True if no quote is open at its end.
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
    fn what_has_lines_or_comments_of_its_own_is_left_alone() {
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
    fn what_only_bash_understands_is_not_for_any_shell() {
        assert!(is_for_any_shell(
            b"gcc -I. -c a.c -o a.o && mv -f .deps/a.Tpo .deps/a.Po"
        ));
        // Automake's, whose names have words of bash's in them.
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
