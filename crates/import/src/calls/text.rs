//! The text of one system call: its arguments and its result.
//!
//! In: the bytes after the name's opening parenthesis. Out: arguments, and the result.
//!
//! Invariant: any bytes are read to their end, and each byte once. A text that is cut gives the
//! arguments that are whole.

use super::constants::{error_number, number};

/// An argument of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Arg {
    /// A string. `cut`: strace did not print all of it.
    Text {
        /// The bytes, without strace's escapes.
        bytes: Vec<u8>,
        /// It ends in `...`.
        cut: bool,
    },
    /// `[a, b, c]`. `cut`: the list ends in `...`.
    List {
        /// The elements.
        all: Vec<Arg>,
        /// It ends in `...`.
        cut: bool,
    },
    /// A number, flags or a structure, as strace prints it. `note`: the text that `-y` adds in
    /// angle brackets.
    Raw {
        /// The text.
        text: String,
        /// The file of a descriptor.
        note: Option<Vec<u8>>,
    },
    /// A socket's address as the kernel has it.
    Address(Vec<u8>),
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Returned {
    /// The value: at least 0, or `-errno`. `None` if the call did not return.
    pub(crate) value: Option<i64>,
    /// The file of a returned descriptor.
    pub(crate) note: Option<Vec<u8>>,
    /// A returned process id in strace's own namespace, if that differs.
    pub(crate) outer: Option<u32>,
}

impl Returned {
    /// True if the call returned without an error.
    pub(crate) fn ok(&self) -> bool {
        self.value.is_some_and(|value| value >= 0)
    }
}

/// A reader of a call's text.
pub(crate) struct TextReader<'a> {
    text: &'a [u8],
    at: usize,
}

/// The deepest nesting of lists. strace prints no deeper ones.
const DEEPEST: usize = 32;

impl<'a> TextReader<'a> {
    /// A reader at the beginning of these bytes.
    pub(crate) fn new(text: &'a [u8]) -> TextReader<'a> {
        TextReader { text, at: 0 }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The arguments up to the closing parenthesis, and whether it was found. It is missing in a
    /// call that was interrupted or cut.
    pub(crate) fn arguments(&mut self) -> (Vec<Arg>, bool) {
        let (args, closed, _) = self.list(b')', 0);
        (args, closed)
    }

    /// Elements up to a closing bracket; whether it was found; whether the list ends in `...`.
    fn list(&mut self, close: u8, depth: usize) -> (Vec<Arg>, bool, bool) {
        let (mut all, mut cut) = (Vec::new(), false);
        while let Some(byte) = self.peek() {
            if byte == close {
                self.at += 1;
                return (all, true, cut);
            }
            match byte {
                b',' | b' ' => self.at += 1,
                b'.' if self.rest().starts_with(b"...") => {
                    cut = true;
                    self.at += 3;
                }
                b'=' if self.rest().starts_with(b"=> ") => self.at += 3,
                _ => {
                    let before = self.at;
                    all.push(self.argument(depth));
                    // A stray bracket is passed over, so that the reading ends.
                    self.at = self.at.max(before + 1);
                }
            }
        }
        (all, false, cut)
    }

    fn argument(&mut self, depth: usize) -> Arg {
        match self.peek() {
            Some(b'"') => {
                let (bytes, cut) = self.quoted();
                Arg::Text { bytes, cut }
            }
            Some(b'[') if depth < DEEPEST => {
                self.at += 1;
                let (all, _, cut) = self.list(b']', depth + 1);
                Arg::List { all, cut }
            }
            _ => self.raw(),
        }
    }

    /// A string in quotes, and whether `...` follows it.
    fn quoted(&mut self) -> (Vec<u8>, bool) {
        self.at += 1;
        let bytes = self.escaped(b'"');
        let cut = self.rest().starts_with(b"...");
        if cut {
            self.at += 3;
        }
        (bytes, cut)
    }

    /// Bytes with strace's escapes, up to and including an end.
    fn escaped(&mut self, end: u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                byte if byte == end => break,
                b'\\' => bytes.push(self.escape()),
                byte => bytes.push(byte),
            }
        }
        bytes
    }

    /// The byte of an escape, after its backslash.
    fn escape(&mut self) -> u8 {
        let Some(first) = self.peek() else {
            return b'\\';
        };
        self.at += 1;
        match first {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'v' => 0x0b,
            b'f' => 0x0c,
            b'x' => self.digits(16, 2, 0),
            b'0'..=b'7' => self.digits(8, 2, first - b'0'),
            other => other,
        }
    }

    /// At most `most` further digits of a number.
    fn digits(&mut self, base: u32, most: usize, first: u8) -> u8 {
        let mut value = u32::from(first);
        for _ in 0..most {
            let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(base)) else {
                break;
            };
            self.at += 1;
            value = value * base + digit;
        }
        value as u8
    }

    /// Text up to a comma or a bracket that closes something outside of it.
    fn raw(&mut self) -> Arg {
        let (start, mut depth) = (self.at, 0_usize);
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.quoted();
                    continue;
                }
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' if depth == 0 => break,
                b')' | b']' | b'}' => depth -= 1,
                b',' if depth == 0 => break,
                b'/' if self.rest().starts_with(b"/*") => {
                    self.comment();
                    continue;
                }
                b'<' if depth == 0 && is_descriptor(&self.text[start..self.at]) => {
                    let text = lossy(&self.text[start..self.at]);
                    let note = Some(self.note());
                    return Arg::Raw { text, note };
                }
                _ => {}
            }
            self.at += 1;
        }
        Arg::Raw {
            text: lossy(&self.text[start..self.at]).trim().to_owned(),
            note: None,
        }
    }

    fn comment(&mut self) {
        let end = memchr::memmem::find(self.rest(), b"*/");
        self.at = end.map_or(self.text.len(), |end| self.at + end + 2);
    }

    /// The text in angle brackets after a descriptor. `<` and `>` in a path are escaped. `-yy` adds
    /// a device in brackets of its own.
    fn note(&mut self) -> Vec<u8> {
        self.at += 1;
        let mut bytes = Vec::new();
        let mut depth = 0_usize;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'<' => depth += 1,
                b'>' if depth == 0 => break,
                b'>' if self.text.get(self.at.wrapping_sub(2)) == Some(&b'-') => {}
                b'>' => depth -= 1,
                b'\\' if depth == 0 => bytes.push(self.escape()),
                byte if depth == 0 => bytes.push(byte),
                _ => {}
            }
        }
        let deleted = b"(deleted)";
        if self.rest().starts_with(deleted) {
            self.at += deleted.len();
            bytes.extend_from_slice(b" (deleted)");
        }
        bytes
    }

    /// The result after the arguments. `None` if the text ends before it.
    pub(crate) fn result(&mut self) -> Option<Returned> {
        let rest = self.rest().trim_ascii_start();
        let rest = rest.strip_prefix(b"=")?.trim_ascii_start();
        self.at = self.text.len() - rest.len();
        if rest.is_empty() {
            return None;
        }
        if rest.starts_with(b"?") {
            return Some(Returned {
                value: restarted(rest),
                ..Returned::default()
            });
        }
        let end = rest.iter().position(|byte| !is_of_number(*byte));
        let digits = &rest[..end.unwrap_or(rest.len())];
        let value = number(std::str::from_utf8(digits).ok()?)?;
        self.at += digits.len();
        let mut returned = Returned {
            value: Some(value),
            ..Returned::default()
        };
        if self.peek() == Some(b'<') {
            returned.note = Some(self.note());
        }
        let after = lossy(self.rest());
        if value < 0 {
            returned.value = Some(-i64::from(error_number(after.trim_start())));
        } else if let Some((_, note)) = after.split_once("/* ") {
            let first = note.split(' ').next().and_then(|first| first.parse().ok());
            returned.outer = first.filter(|_| note.contains("strace's PID NS"));
        }
        Some(returned)
    }
}

/// Bytes in quotes, with escapes, as strace prints a string.
pub(crate) fn quoted(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 2);
    out.push(b'"');
    for byte in bytes {
        match byte {
            b'"' | b'\\' | ..b' ' | 0x7f.. => out.extend(format!("\\{byte:03o}").into_bytes()),
            byte => out.push(*byte),
        }
    }
    out.push(b'"');
    out
}

/// The result of a call that the kernel restarts (`? ERESTARTSYS`): it was interrupted.
fn restarted(text: &[u8]) -> Option<i64> {
    text.starts_with(b"? ERESTART")
        .then_some(-i64::from(libc::EINTR))
}

fn is_of_number(byte: u8) -> bool {
    byte.is_ascii_hexdigit() || byte == b'-' || byte == b'x'
}

/// `AT_FDCWD`, or a number that can be a descriptor.
fn is_descriptor(text: &[u8]) -> bool {
    let text = match memchr::memmem::find(text, b" /*") {
        Some(comment) => &text[..comment],
        None => text,
    };
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    text == b"AT_FDCWD" || !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Arg {
    /// A text as strace prints it.
    pub(crate) fn raw_text(text: String) -> Arg {
        Arg::Raw { text, note: None }
    }

    /// A number.
    pub(crate) fn number(value: i64) -> Arg {
        Arg::raw_text(value.to_string())
    }

    /// The bytes of a string that strace printed to its end.
    pub(crate) fn path(&self) -> Option<&[u8]> {
        match self {
            Arg::Text { bytes, cut: false } => Some(bytes),
            _ => None,
        }
    }

    /// The text of a number, flags or a structure. Empty for others.
    pub(crate) fn raw(&self) -> &str {
        match self {
            Arg::Raw { text, .. } => text,
            _ => "",
        }
    }

    /// The file of a descriptor, as `-y` prints it.
    pub(crate) fn note(&self) -> Option<&[u8]> {
        match self {
            Arg::Raw { note, .. } => note.as_deref(),
            _ => None,
        }
    }

    /// The number of a descriptor.
    pub(crate) fn descriptor(&self) -> Option<i32> {
        let text = self.raw().split(" /*").next().unwrap_or_default().trim();
        match text {
            "AT_FDCWD" => Some(libc::AT_FDCWD),
            _ => i32::try_from(number(text)?).ok(),
        }
    }
}
