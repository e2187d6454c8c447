//! The bytes that strace saw enter and leave a process, to compare the deep log with.
//!
//! strace watches the whole recording. Every byte of its log is written in hexadecimal digits.

use std::collections::BTreeMap;
use std::path::Path;

/// One data-moving call that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedCall {
    pub name: String,
    pub fd: i32,
    pub result: i64,
    pub bytes: Vec<u8>,
    /// A signal handler made it.
    pub in_handler: bool,
}

/// Calls by which bytes enter, and by which they leave.
pub const ENTERS: &[&str] = &[
    "read",
    "pread64",
    "readv",
    "preadv",
    "recvfrom",
    "recvmsg",
    "getrandom",
];
pub const LEAVES: &[&str] = &[
    "write", "pwrite64", "writev", "pwritev", "sendto", "sendmsg",
];

/// The option of strace that selects these calls.
pub fn selection() -> String {
    let names: Vec<&str> = ENTERS.iter().chain(LEAVES).copied().collect();
    format!("trace={},rt_sigreturn", names.join(","))
}

/// The calls of each thread, in the order in which they returned.
pub fn read(log: &Path) -> BTreeMap<u32, Vec<TracedCall>> {
    let mut calls: BTreeMap<u32, Vec<TracedCall>> = BTreeMap::new();
    let mut unfinished: BTreeMap<u32, String> = BTreeMap::new();
    let mut handlers: BTreeMap<u32, u32> = BTreeMap::new();
    for line in std::fs::read_to_string(log).unwrap().lines() {
        let Some((tid, rest)) = line.split_once(' ') else {
            continue;
        };
        let (Ok(tid), rest) = (tid.parse::<u32>(), rest.trim_start()) else {
            continue;
        };
        let depth = handlers.entry(tid).or_default();
        // Signals without a handler do not appear in the tests that use handlers.
        if rest.starts_with("--- SIGALRM") {
            *depth += 1;
            continue;
        }
        if rest.starts_with("rt_sigreturn(") {
            *depth = depth.saturating_sub(1);
            continue;
        }
        if let Some(begun) = rest.strip_suffix("<unfinished ...>") {
            unfinished.insert(tid, begun.to_owned());
            continue;
        }
        let whole = match rest.strip_prefix("<... ") {
            Some(resumed) => {
                let end = resumed.split_once(" resumed>").unwrap().1;
                let end = end.strip_prefix(", ").unwrap_or(end);
                format!("{}{end}", unfinished.remove(&tid).unwrap_or_default())
            }
            None => rest.to_owned(),
        };
        if let Some(call) = traced(&whole) {
            let in_handler = *depth > 0;
            let call = TracedCall { in_handler, ..call };
            calls.entry(tid).or_default().push(call);
        }
    }
    calls
}

fn traced(line: &str) -> Option<TracedCall> {
    let (name, arguments) = line.split_once('(')?;
    let (arguments, result) = arguments.rsplit_once(" = ")?;
    let result: i64 = result.split(' ').next()?.parse().ok()?;
    if result <= 0 || !ENTERS.iter().chain(LEAVES).any(|known| *known == name) {
        return None;
    }
    // malloc's own mark, which no program sees, and the names of temporary files.
    if name == "getrandom" && result == 8 && arguments.ends_with("8, GRND_NONBLOCK)") {
        return None;
    }
    let first = arguments.split(',').next()?;
    let fd = first.parse().unwrap_or(-1);
    let mut bytes = Vec::new();
    match arguments.contains("iov_base=") {
        true => {
            for part in arguments.split("iov_base=").skip(1) {
                bytes.extend(quoted(part));
            }
        }
        false => bytes = quoted(arguments),
    }
    bytes.truncate(result as usize);
    Some(TracedCall {
        name: name.to_owned(),
        fd,
        result,
        bytes,
        in_handler: false,
    })
}

/// The bytes of the first string in hexadecimal digits.
fn quoted(text: &str) -> Vec<u8> {
    let Some((_, rest)) = text.split_once('"') else {
        return Vec::new();
    };
    let hex = rest.split('"').next().unwrap();
    let digits: Vec<&str> = hex.split("\\x").skip(1).collect();
    digits
        .iter()
        .map(|d| u8::from_str_radix(d, 16).unwrap())
        .collect()
}
