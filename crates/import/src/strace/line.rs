//! One line of strace: its thread, its time, and what it says.
//!
//! | options | before the call |
//! | --- | --- |
//! | none, to a file or stderr | nothing |
//! | `-f`, to a file | `1234 ` |
//! | `-f`, to stderr | `[pid  1234] `, while there are several threads |
//! | `-Y` | the number is followed by the program's name in angle brackets |
//! | `-t`, `-tt` | `12:00:00 `, `12:00:00.123456 ` |
//! | `-ttt` | `1700000000.123456 ` |
//! | `-r` | `     0.000123 `, or `(+     0.000123) ` after another time |
//! | `-i`, `-n` | `[00007f0123456789] `, `[ 257] ` |

/// A time as a line has it, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stamp {
    /// Since 1970.
    Epoch(i64),
    /// Since midnight, in the tracer's time zone.
    Day(i64),
    /// Since the line before.
    Since(i64),
}

/// The thread and the time before a line's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prefix<'a> {
    pub(super) tid: Option<u32>,
    pub(super) stamp: Option<Stamp>,
    pub(super) body: &'a [u8],
    /// The byte of the line at which the body begins, from 1.
    pub(super) column: usize,
}

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body<'a> {
    /// A system call: its name, and the text after the parenthesis. `open`: another thread's line
    /// cut it short.
    Call {
        name: &'a str,
        rest: &'a [u8],
        open: bool,
    },
    /// The rest of a call that was cut short. `open`: it was cut short again.
    Resumed {
        name: &'a str,
        rest: &'a [u8],
        open: bool,
    },
    /// A thread exited.
    Exited(i32),
    /// A signal killed a thread; the name of the signal.
    Killed(&'a str),
    /// An exec in this thread took over the line's thread.
    Superseded(u32),
    /// A call of a thread that gets the id of its process by the call.
    Renamed {
        name: &'a str,
        rest: &'a [u8],
        to: u32,
    },
    /// A thread is being traced from now on.
    Attached(u32),
    /// The rest of a line that a message of strace cut short.
    Unfinished,
    /// A signal, a stack frame, another message, or nothing.
    Nothing,
    /// No line of strace.
    Foreign,
}

/// The largest process id of Linux. A greater number is a time.
const LARGEST_PID: u64 = 1 << 22;
/// A smaller number of seconds (48 days) is no time since 1970, but that since the line before.
const FIRST_EPOCH: u64 = LARGEST_PID + 1;

/// The latest time, in ns since 1970. A line with a later one was damaged.
const LATEST: i64 = 4_000_000_000_000_000_000;

/// The longest name of a system call, with room.
const LONGEST_NAME: usize = 48;

/// Splits a line.
pub(super) fn prefix(line: &[u8]) -> Prefix<'_> {
    let mut rest = line;
    let mut tid = None;
    if let Some(inner) = rest.strip_prefix(b"[pid ")
        && let Some((number, after)) = leading_number(inner.trim_ascii_start())
        && let Some(after) = without_name(after).strip_prefix(b"] ")
    {
        (tid, rest) = (u32::try_from(number).ok(), after);
    } else if let Some((number, after)) = leading_number(rest)
        && number <= LARGEST_PID
        && let Some(after) = without_name(after).strip_prefix(b" ")
    {
        (tid, rest) = (u32::try_from(number).ok(), after.trim_ascii_start());
    }
    let mut stamp = None;
    if let Some((found, after)) = time(rest) {
        (stamp, rest) = (Some(found), after);
    }
    if let Some(after) = rest.strip_prefix(b"(+") {
        let end = after.iter().position(|byte| *byte == b')');
        rest = end.map_or(rest, |end| after[end + 1..].trim_ascii_start());
    }
    while let Some(after) = bracket(rest) {
        rest = after;
    }
    Prefix {
        tid,
        stamp,
        body: rest,
        column: line.len() - rest.len() + 1,
    }
}

fn leading_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit());
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    Some((std::str::from_utf8(digits).ok()?.parse().ok()?, rest))
}

/// Passes over the name of a program that `-Y` adds.
fn without_name(text: &[u8]) -> &[u8] {
    let Some(inner) = text.strip_prefix(b"<") else {
        return text;
    };
    match memchr::memchr(b'>', inner) {
        Some(end) => &inner[end + 1..],
        None => text,
    }
}

/// An instruction pointer or a number of a system call in brackets.
fn bracket(text: &[u8]) -> Option<&[u8]> {
    let inner = text.strip_prefix(b"[")?;
    let end = memchr::memchr(b']', inner)?;
    let is_number = |byte: &u8| byte.is_ascii_hexdigit() || b" ?x".contains(byte);
    let wanted = end > 0 && inner[..end].iter().all(is_number);
    inner[end + 1..].strip_prefix(b" ").filter(|_| wanted)
}

/// A time at the beginning of a text, and the text after it.
fn time(text: &[u8]) -> Option<(Stamp, &[u8])> {
    let padded = text.trim_ascii_start();
    let (first, after) = leading_number(padded)?;
    if let Some(rest) = after.strip_prefix(b":") {
        let (minutes, rest) = leading_number(rest)?;
        let (seconds, rest) = leading_number(rest.strip_prefix(b":")?)?;
        let (fraction, rest) = fraction(rest);
        if first > 23 || minutes > 59 || seconds > 60 {
            return None;
        }
        let whole = (first * 60 + minutes) * 60 + seconds;
        return Some((Stamp::Day(ns(whole, fraction)), rest.strip_prefix(b" ")?));
    }
    let (fraction, rest) = fraction(after);
    let rest = rest.strip_prefix(b" ")?;
    let stamp = match first >= FIRST_EPOCH {
        true => Stamp::Epoch(ns(first, fraction)),
        false if after.starts_with(b".") => Stamp::Since(ns(first, fraction)),
        false => return None,
    };
    Some((stamp, rest))
}

fn ns(seconds: u64, fraction: u64) -> i64 {
    let all = seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(fraction);
    i64::try_from(all).unwrap_or(LATEST).min(LATEST)
}

/// The ns of `.123`, and the text after it.
fn fraction(text: &[u8]) -> (u64, &[u8]) {
    let Some(rest) = text.strip_prefix(b".") else {
        return (0, text);
    };
    let end = rest.iter().position(|byte| !byte.is_ascii_digit());
    let (digits, after) = rest.split_at(end.unwrap_or(rest.len()));
    let scaled = digits.iter().chain(std::iter::repeat(&b'0')).take(9);
    let value = scaled.fold(0, |all, digit| all * 10 + u64::from(digit - b'0'));
    (value, after)
}

/// Reads what a line says.
pub(super) fn body(text: &[u8]) -> Body<'_> {
    let text = text.trim_ascii_end();
    if let Some(rest) = text.strip_prefix(b"<... ") {
        return resumed(rest).unwrap_or(Body::Foreign);
    }
    if let Some(rest) = text.strip_prefix(b"+++ ") {
        return ended(rest).unwrap_or(Body::Foreign);
    }
    let passed = [&b"--- "[..], b"> ", b"strace: "];
    if let Some(pid) = attached(text) {
        return Body::Attached(pid);
    }
    if text.trim_ascii_start() == b"<unfinished ...>" {
        return Body::Unfinished;
    }
    if text.is_empty()
        || passed
            .iter()
            .any(|of| text.trim_ascii_start().starts_with(of))
    {
        return Body::Nothing;
    }
    call(text).unwrap_or(Body::Foreign)
}

/// The thread of the message `strace: Process 1234 attached`, which may stand after the beginning
/// of a call.
pub(super) fn attached(text: &[u8]) -> Option<u32> {
    let rest = text.strip_prefix(b"strace: Process ")?;
    let (number, after) = leading_number(rest)?;
    (after.starts_with(b" attached")).then(|| u32::try_from(number).ok())?
}

fn call(text: &[u8]) -> Option<Body<'_>> {
    let open = memchr::memchr(b'(', text.get(..LONGEST_NAME).unwrap_or(text))?;
    let name = std::str::from_utf8(&text[..open]).ok()?;
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '?';
    if name.is_empty() || !name.chars().all(is_of_name) {
        return None;
    }
    let rest = &text[open + 1..];
    if rest.ends_with(b" ...>")
        && let Some(at) = memchr::memmem::rfind(rest, b"<pid changed to ")
    {
        let (to, _) = leading_number(&rest[at + b"<pid changed to ".len()..])?;
        let (rest, to) = (&rest[..at], u32::try_from(to).ok()?);
        return Some(Body::Renamed { name, rest, to });
    }
    let (rest, open) = without_mark(rest);
    Some(Body::Call { name, rest, open })
}

/// A text without strace's mark of a call that was cut short, and whether the mark was there.
fn without_mark(text: &[u8]) -> (&[u8], bool) {
    match text.strip_suffix(b"<unfinished ...>") {
        Some(head) => (head.trim_ascii_end(), true),
        None => (text, false),
    }
}

fn resumed(text: &[u8]) -> Option<Body<'_>> {
    let end = memchr::memmem::find(text.get(..LONGEST_NAME + 9).unwrap_or(text), b" resumed>")?;
    let name = std::str::from_utf8(&text[..end]).ok()?;
    let (rest, open) = without_mark(&text[end + b" resumed>".len()..]);
    // `<... call resumed> <unfinished ...>) = ?`: the thread died in the call.
    let rest = rest.strip_prefix(b" <unfinished ...>").unwrap_or(rest);
    Some(Body::Resumed { name, rest, open })
}

fn ended(text: &[u8]) -> Option<Body<'_>> {
    let text = text.strip_suffix(b" +++")?;
    let text = std::str::from_utf8(text).ok()?;
    if let Some(status) = text.strip_prefix("exited with ") {
        return status.parse().ok().map(Body::Exited);
    }
    if let Some(by) = text.strip_prefix("superseded by execve in pid ") {
        return by.parse().ok().map(Body::Superseded);
    }
    let signal = text.strip_prefix("killed by ")?;
    Some(Body::Killed(signal.split(' ').next().unwrap_or(signal)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> (Option<u32>, Option<Stamp>, String) {
        let found = prefix(line.as_bytes());
        assert_eq!(found.column, line.len() - found.body.len() + 1);
        (
            found.tid,
            found.stamp,
            String::from_utf8_lossy(found.body).into_owned(),
        )
    }

    #[test]
    fn the_thread_and_the_time_are_read_with_every_option() {
        let rest = "close(3) = 0";
        let all = [
            ("", None, None),
            ("77 ", Some(77), None),
            ("77    ", Some(77), None),
            ("[pid    77] ", Some(77), None),
            ("[pid 77<sh>] ", Some(77), None),
            ("77<a b> ", Some(77), None),
            ("01:00:01 ", None, Some(Stamp::Day(3_601_000_000_000))),
            (
                "77 01:00:01.000002 ",
                Some(77),
                Some(Stamp::Day(3_601_000_002_000)),
            ),
            (
                "1700000000.5 ",
                None,
                Some(Stamp::Epoch(1_700_000_000_500_000_000)),
            ),
            (
                "77 1700000000.123456 ",
                Some(77),
                Some(Stamp::Epoch(1_700_000_000_123_456_000)),
            ),
            (
                "77 72000000.5 ",
                Some(77),
                Some(Stamp::Epoch(72_000_000_500_000_000)),
            ),
            ("     0.000123 ", None, Some(Stamp::Since(123_000))),
            ("77      0.000123 ", Some(77), Some(Stamp::Since(123_000))),
            (
                "01:00:00 (+     0.000123) ",
                None,
                Some(Stamp::Day(3_600_000_000_000)),
            ),
            ("77 [00007f0123456789] ", Some(77), None),
            ("77 [ 257] [00007f0123456789] ", Some(77), None),
        ];
        for (before, tid, stamp) in all {
            let found = split(&format!("{before}{rest}"));
            assert_eq!(found, (tid, stamp, rest.to_owned()), "{before:?}");
        }
    }

    #[test]
    fn each_kind_of_line_is_told_apart() {
        let (name, rest) = ("read", &b"3, "[..]);
        assert_eq!(
            body(b"read(3,  <unfinished ...>"),
            Body::Call {
                name,
                rest: rest.trim_ascii_end(),
                open: true
            }
        );
        assert_eq!(
            body(b"<... read resumed>\"x\", 1) = 1"),
            Body::Resumed {
                name,
                rest: b"\"x\", 1) = 1",
                open: false
            }
        );
        assert_eq!(
            body(b"<... read resumed> <unfinished ...>) = ?"),
            Body::Resumed {
                name,
                rest: b") = ?",
                open: false
            }
        );
        assert_eq!(body(b"+++ exited with 3 +++"), Body::Exited(3));
        assert_eq!(
            body(b"+++ killed by SIGSEGV (core dumped) +++"),
            Body::Killed("SIGSEGV")
        );
        assert_eq!(
            body(b"+++ superseded by execve in pid 9 +++"),
            Body::Superseded(9)
        );
        assert_eq!(body(b"--- SIGCHLD {si_signo=SIGCHLD} ---"), Body::Nothing);
        assert_eq!(body(b"strace: Process 12 attached"), Body::Attached(12));
        assert_eq!(
            body(b" > /usr/lib/libc.so.6(__open+0x1) [0x2]"),
            Body::Nothing
        );
        assert_eq!(body(b"hello, world"), Body::Foreign);
        assert_eq!(body(b"error: f(x) is wrong"), Body::Foreign);
        assert_eq!(body(b"\x7fELF\0("), Body::Foreign);
    }
}
