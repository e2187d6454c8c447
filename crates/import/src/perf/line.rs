//! One line of `perf trace`: its time, its thread, and what it says.
//!
//! | line | meaning |
//! | --- | --- |
//! | `0.284 ( 0.014 ms): cat/7 close(fd: 3) = 0` | a call that returned |
//! | `0.308 (         ): cat/7 execve(filename: "/bin/cat") ...` | a call that began |
//! | `0.308 ( 0.449 ms): cat/7  ... [continued]: execve()) = 0` | the return of that call |
//! | `?     (         ): cat/7  ... [continued]: read()) = 1` | the same of a call from before the log |
//! | `0.658 (         ): cat/7 task:task_newtask(pid: 8 (cat), …)` | an event |
//!
//! The time is that of the call's beginning, in ms since the first line. A name is printed without
//! escapes, and may have any bytes.

/// A line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PerfLine<'a> {
    /// The moment of what it says, in microseconds: of the return, if the call returned.
    pub(super) moment: Option<i64>,
    /// The thread. perf leaves it out if there is one only.
    pub(super) tid: Option<u32>,
    pub(super) said: Said<'a>,
}

/// The statement of a line. `result` is the text after the equals sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said<'a> {
    Called {
        name: &'a str,
        args: &'a [u8],
        result: &'a [u8],
    },
    Began {
        name: &'a str,
        args: &'a [u8],
    },
    Returned {
        name: &'a str,
        result: &'a [u8],
    },
    Event {
        name: &'a str,
        args: &'a [u8],
    },
}

/// The longest name of a program in the kernel, and room for a number.
const LONGEST_COMM: usize = 32;
/// The longest name of a call or an event, with room.
const LONGEST_NAME: usize = 64;
const CONTINUED: &[u8] = b" ... [continued]: ";

/// The moment at the beginning of a line, and the text after it. `None` if perf did not begin the
/// line: it goes on with a name that has a newline.
pub(super) fn start(line: &[u8]) -> Option<(Option<i64>, &[u8])> {
    let text = line.trim_ascii_start();
    let (time, rest) = match text.strip_prefix(b"?") {
        Some(rest) => (None, rest),
        None => {
            let (time, rest) = milliseconds(text)?;
            (Some(time), rest)
        }
    };
    let rest = rest.strip_prefix(b" (")?.trim_ascii_start();
    let (duration, rest) = match rest.strip_prefix(b"):") {
        Some(rest) => (0, rest),
        None => {
            let (duration, rest) = milliseconds(rest)?;
            (duration, rest.strip_prefix(b" ms):")?)
        }
    };
    let moment = time.map(|time| time.saturating_add(duration));
    Some((moment, rest.strip_prefix(b" ")?))
}

/// A number with three decimals, in thousandths.
fn milliseconds(text: &[u8]) -> Option<(i64, &[u8])> {
    let (sign, digits) = match text.strip_prefix(b"-") {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let point = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    let whole: i64 = std::str::from_utf8(&digits[..point]).ok()?.parse().ok()?;
    let rest = digits[point..].strip_prefix(b".")?;
    let (part, rest) = rest.split_at_checked(3)?;
    let part: i64 = std::str::from_utf8(part).ok()?.parse().ok()?;
    Some((sign * whole.saturating_mul(1000).saturating_add(part), rest))
}

/// Splits a line. `None` if it is not whole, or not perf's.
pub(super) fn parse(line: &[u8]) -> Option<PerfLine<'_>> {
    let (moment, text) = start(line)?;
    let (tid, text) = thread(text);
    let text = text.trim_ascii_end();
    let said = match text.strip_prefix(CONTINUED) {
        Some(rest) => {
            let (name, rest) = named(rest)?;
            let (_, result) = result(rest)?;
            Said::Returned { name, result }
        }
        None => called(text)?,
    };
    Some(PerfLine { moment, tid, said })
}

/// The thread before a call: `comm/tid `. A name of a program may have any byte.
fn thread(text: &[u8]) -> (Option<u32>, &[u8]) {
    let area = text.get(..LONGEST_COMM).unwrap_or(text);
    let found = memchr::memchr_iter(b'/', area).find_map(|at| {
        let rest = &text[at + 1..];
        let end = rest.iter().position(|byte| !byte.is_ascii_digit())?;
        let tid = std::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
        let rest = rest[end..].strip_prefix(b" ")?;
        let fits = rest.starts_with(CONTINUED) || named(rest).is_some();
        fits.then_some((tid, rest))
    });
    match found {
        Some((tid, rest)) => (Some(tid), rest),
        None => (None, text),
    }
}

/// The name before a parenthesis, and the text after it.
fn named(text: &[u8]) -> Option<(&str, &[u8])> {
    let end = memchr::memchr(b'(', text.get(..LONGEST_NAME).unwrap_or(text))?;
    let name = std::str::from_utf8(&text[..end]).ok()?;
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let is_name = !name.is_empty() && name.chars().all(is_of_name);
    is_name.then_some((name, &text[end + 1..]))
}

fn called(text: &[u8]) -> Option<Said<'_>> {
    let (name, rest) = named(text)?;
    if name.contains(':') {
        let args = rest.strip_suffix(b")")?;
        return Some(Said::Event { name, args });
    }
    if let Some(args) = rest.strip_suffix(b"...") {
        let args = args.trim_ascii_end().strip_suffix(b")")?;
        return Some(Said::Began { name, args });
    }
    let (args, result) = result(rest)?;
    Some(Said::Called { name, args, result })
}

/// Splits arguments from the result: `args)    = 3`. The last text in the form of a result counts.
fn result(text: &[u8]) -> Option<(&[u8], &[u8])> {
    memchr::memmem::rfind_iter(text, b" = ").find_map(|at| {
        let args = text[..at].trim_ascii_end().strip_suffix(b")")?;
        let result = &text[at + 3..];
        let digits = result.strip_prefix(b"-").unwrap_or(result);
        let end = digits.iter().position(|byte| b" <".contains(byte));
        let first = &digits[..end.unwrap_or(digits.len())];
        let is_number = first.first().is_some_and(u8::is_ascii_digit)
            && first.iter().all(u8::is_ascii_alphanumeric);
        // Some calls return flags, which have names.
        let is_of_flags = |byte: &u8| byte.is_ascii_uppercase() || b"_|0123456789x".contains(byte);
        let fits =
            result == b"?" || is_number || !first.is_empty() && first.iter().all(is_of_flags);
        fits.then_some((args, result))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> (Option<i64>, Option<u32>, String) {
        let line = parse(text.as_bytes()).unwrap();
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let what = match line.said {
            Said::Called { name, args, result } => {
                format!("{name}|{}|{}", shown(args), shown(result))
            }
            Said::Began { name, args } => format!("{name}|{}|...", shown(args)),
            Said::Returned { name, result } => format!("{name}|{}", shown(result)),
            Said::Event { name, args } => format!("{name}|{}", shown(args)),
        };
        (line.moment, line.tid, what)
    }

    #[test]
    fn each_kind_of_line_is_told_apart() {
        for (text, moment, tid, what) in [
            (
                "     0.284 ( 0.014 ms): cat/24769 openat(dfd: CWD, filename: \"a\")   = -1 ENOENT (No such file or directory)",
                Some(298),
                Some(24769),
                "openat|dfd: CWD, filename: \"a\"|-1 ENOENT (No such file or directory)",
            ),
            (
                " 13060.308 (         ): sh/3 wait4(upid: -1)       ...",
                Some(13_060_308),
                Some(3),
                "wait4|upid: -1|...",
            ),
            (
                "     1.000 (12.001 ms): sh/3  ... [continued]: wait4())      = 29164 (sh)",
                Some(13_001),
                Some(3),
                "wait4|29164 (sh)",
            ),
            (
                "         ? (         ): sh/3  ... [continued]: vfork())      = 0",
                None,
                Some(3),
                "vfork|0",
            ),
            (
                "     4.667 (         ): kworker/0:1/29 sched:sched_process_exit(comm: \"a\", group_dead: 1)",
                Some(4667),
                Some(29),
                "sched:sched_process_exit|comm: \"a\", group_dead: 1",
            ),
            (
                "     0.284 ( 0.014 ms): sort/3 fcntl(fd: 4, cmd: GETFL)   = RDONLY|LARGEFILE",
                Some(298),
                Some(3),
                "fcntl|fd: 4, cmd: GETFL|RDONLY|LARGEFILE",
            ),
            (
                "     4.634 (         ): exit_group()       = ?",
                Some(4634),
                None,
                "exit_group||?",
            ),
        ] {
            assert_eq!(said(text), (moment, tid, what.to_owned()), "{text}");
        }
        for text in [
            "hello",
            "LOST 3 events!",
            "0.284 ( 0.014 ms): cat/2 openat(dfd: CWD, fi",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_name_that_looks_like_a_result_is_no_result() {
        let (_, _, what) = said(
            "0.284 ( 0.014 ms): a/7 openat(dfd: CWD, filename: \"q\"uo,te) = 3\", flags: RDWR) = 4</tmp/q\"uo,te) = 3>",
        );
        assert_eq!(
            what,
            "openat|dfd: CWD, filename: \"q\"uo,te) = 3\", flags: RDWR|4</tmp/q\"uo,te) = 3>"
        );
    }
}
