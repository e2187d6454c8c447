//! Parses one line of strace's text: the call, its arguments and its result.
//!
//! Relies on `-xx` and `-y`: every string and every descriptor's path is a run of `\xHH`. So
//! quotes, brackets and commas in the text are always strace's own.

/// An argument of a call, as far as the oracle distinguishes them.
#[derive(Debug, Clone, PartialEq)]
pub enum Arg {
    /// A string, with `cut` if strace did not print all of it.
    Text { bytes: Vec<u8>, cut: bool },
    /// A descriptor with its path from the kernel. `cwd`: it is `AT_FDCWD`.
    Fd {
        path: Vec<u8>,
        deleted: bool,
        cwd: bool,
    },
    /// `[a, b, c]`
    List(Vec<Arg>),
    /// Anything else, verbatim: flags, numbers, structures.
    Raw(String),
}

impl Arg {
    /// The verbatim text of a flags or number argument. Empty for others.
    pub fn raw(&self) -> &str {
        match self {
            Arg::Raw(text) => text,
            _ => "",
        }
    }

    /// True if `flag` is one of the names joined by `|`.
    pub fn has(&self, flag: &str) -> bool {
        self.raw().split(['|', ' ']).any(|part| part == flag)
    }
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Returned {
    /// Its value. `None` if it never returned (`?`).
    pub value: Option<i64>,
    /// Name of the error.
    pub error: Option<String>,
    /// Path of a returned descriptor.
    pub path: Option<Vec<u8>>,
    /// The returned descriptor's file has no name.
    pub deleted: bool,
    /// A returned pid in strace's own namespace, where that differs.
    pub outer_pid: Option<u32>,
}

impl Returned {
    /// True if the call returned and did not fail.
    pub fn ok(&self) -> bool {
        self.value.is_some() && self.error.is_none()
    }
}

/// Splits `name(arguments) = result` into its parts; `None` if this is not a call.
pub fn call(text: &str) -> Option<(String, Vec<Arg>, Returned)> {
    let open = text.find('(')?;
    let name = text[..open].to_owned();
    let mut reader = Reader {
        text: text.as_bytes(),
        at: open + 1,
    };
    let args = reader.list(b')');
    let rest = text.get(reader.at..).unwrap_or_default().trim_start();
    let returned = rest
        .strip_prefix('=')
        .map(|r| returned(r.trim_start()))
        .unwrap_or_default();
    Some((name, args, returned))
}

fn returned(text: &str) -> Returned {
    let number: String = text
        .chars()
        .take_while(|c| c.is_ascii_hexdigit() || matches!(c, '-' | 'x'))
        .collect();
    let value = match number.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => number.parse().ok(),
    };
    let rest = &text[number.len()..];
    let mut result = Returned {
        value,
        ..Returned::default()
    };
    if rest.starts_with('<') {
        let mut reader = Reader {
            text: rest.as_bytes(),
            at: 0,
        };
        let (path, deleted) = reader.angle();
        (result.path, result.deleted) = (Some(path), deleted);
    } else if let Some(name) = rest
        .split_whitespace()
        .next()
        .filter(|n| n.starts_with('E'))
    {
        result.error = Some(name.to_owned());
    } else if let Some(comment) = rest.trim_start().strip_prefix("/* ") {
        result.outer_pid = comment.split(' ').next().and_then(|n| n.parse().ok());
    }
    if value.is_some_and(|v| v == -1) && result.error.is_none() {
        result.error = Some("E?".to_owned());
    }
    result
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Arguments up to and including `close`.
    fn list(&mut self, close: u8) -> Vec<Arg> {
        let mut args = Vec::new();
        while let Some(c) = self.peek() {
            match c {
                b',' | b' ' => self.at += 1,
                c if c == close => {
                    self.at += 1;
                    break;
                }
                _ => args.push(self.arg()),
            }
        }
        args
    }

    fn arg(&mut self) -> Arg {
        match self.peek() {
            Some(b'"') => {
                self.at += 1;
                let bytes = self.hex();
                self.at += 1;
                let cut = self.text[self.at.min(self.text.len())..].starts_with(b"...");
                if cut {
                    self.at += 3;
                }
                Arg::Text { bytes, cut }
            }
            Some(b'[') => {
                self.at += 1;
                Arg::List(self.list(b']'))
            }
            _ => self.raw(),
        }
    }

    /// Verbatim text up to a comma or bracket outside of brackets. A descriptor if it has that
    /// form.
    fn raw(&mut self) -> Arg {
        let start = self.at;
        let mut depth = 0usize;
        while let Some(c) = self.peek() {
            match c {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' if depth == 0 => break,
                b')' | b']' | b'}' => depth -= 1,
                b',' if depth == 0 => break,
                b'<' if depth == 0 && is_descriptor(&self.text[start..self.at]) => {
                    let cwd = self.text[start] == b'A';
                    let (path, deleted) = self.angle();
                    return Arg::Fd { path, deleted, cwd };
                }
                _ => {}
            }
            self.at += 1;
        }
        Arg::Raw(
            String::from_utf8_lossy(&self.text[start..self.at])
                .trim()
                .to_owned(),
        )
    }

    /// `<\x2f…>`, and `(deleted)` after it.
    fn angle(&mut self) -> (Vec<u8>, bool) {
        self.at += 1;
        let mut path = self.hex();
        self.at += 1;
        let mark = b"(deleted)";
        let mut deleted = self.text[self.at.min(self.text.len())..].starts_with(mark);
        if deleted {
            self.at += mark.len();
        }
        if let Some(bare) = path.strip_suffix(b" (deleted)") {
            (path, deleted) = (bare.to_vec(), true);
        }
        (path, deleted)
    }

    /// A run of `\xHH`.
    fn hex(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while let Some([b'\\', b'x', high, low]) = self.text.get(self.at..self.at + 4) {
            let digit = |d: &u8| char::from(*d).to_digit(16).unwrap_or(0) as u8;
            bytes.push(digit(high) << 4 | digit(low));
            self.at += 4;
        }
        bytes
    }
}

fn is_descriptor(text: &[u8]) -> bool {
    text == b"AT_FDCWD" || (!text.is_empty() && text.iter().all(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_split_into_arguments_and_result() {
        let line = r#"openat(AT_FDCWD<\x2f\x74>, "\x61\x2c", O_RDONLY|O_CLOEXEC) = 3<\x2f\x74\x2f\x61\x2c>"#;
        let (name, args, result) = call(line).expect("a call");
        assert_eq!(name, "openat");
        assert_eq!(
            args[0],
            Arg::Fd {
                path: b"/t".to_vec(),
                deleted: false,
                cwd: true
            }
        );
        assert_eq!(
            args[1],
            Arg::Text {
                bytes: b"a,".to_vec(),
                cut: false
            }
        );
        assert!(args[2].has("O_CLOEXEC") && !args[2].has("O_RDWR"));
        assert_eq!(result.path.as_deref(), Some(b"/t/a,".as_slice()));
    }

    #[test]
    fn errors_deleted_files_and_foreign_pids_are_read() {
        let (_, _, failed) =
            call(r#"access("\x61", R_OK) = -1 ENOENT (No such file)"#).expect("a call");
        assert_eq!(
            (failed.ok(), failed.error.as_deref()),
            (false, Some("ENOENT"))
        );
        let (_, args, _) =
            call(r#"read(3<\x2f\x61>(deleted), "\x00"..., 10) = 1"#).expect("a call");
        assert_eq!(
            args[0],
            Arg::Fd {
                path: b"/a".to_vec(),
                deleted: true,
                cwd: false
            }
        );
        assert_eq!(
            args[1],
            Arg::Text {
                bytes: vec![0],
                cut: true
            }
        );
        let (_, _, forked) =
            call("clone(child_stack=NULL, flags=SIGCHLD) = 2 /* 812 in strace's PID NS */")
                .expect("a call");
        assert_eq!(forked.outer_pid, Some(812));
    }

    #[test]
    fn lists_and_structures_do_not_split_at_their_own_commas() {
        let (_, args, _) =
            call(r#"execve("\x61", ["\x62", "\x63"], 0x7f /* 3 vars */) = 0"#).expect("a call");
        assert_eq!(args.len(), 3);
        assert!(matches!(&args[1], Arg::List(l) if l.len() == 2));
        let (_, args, _) =
            call("fstat(3<\\x2f>, {st_mode=S_IFREG|0644, st_size=3, ...}) = 0").expect("a call");
        assert_eq!(args.len(), 2);
    }
}
