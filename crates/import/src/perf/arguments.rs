//! The arguments of a call, from the text of perf to that of strace.
//!
//! perf prints `name: value` of each argument, and leaves out those that are zero. It prints names
//! without escapes. So a name that contains the beginning of a later argument cannot be told from
//! two arguments: then it counts as not printed.

use super::signatures::{Kind, MODES, Signature};
use crate::calls::{flags, quoted};

/// The text of an argument that perf does not print. It is no name, and no descriptor.
const UNPRINTED: &str = "?";

/// The values of a call, in the order of its signature. `None` for one that is zero.
pub(super) fn values(signature: Signature, text: &[u8]) -> Vec<Option<&[u8]>> {
    let mut rest = text;
    let mut all = Vec::with_capacity(signature.len());
    for (at, (name, kind)) in signature.iter().enumerate() {
        let value = after_name(rest, name);
        let Some(value) = value else {
            all.push(None);
            continue;
        };
        let end = end_of_value(value, *kind, &signature[at + 1..]);
        all.push(Some(&value[..end]));
        rest = value[end..].strip_prefix(b", ").unwrap_or_default();
    }
    all
}

fn after_name<'a>(text: &'a [u8], name: &str) -> Option<&'a [u8]> {
    // perf prints no space before flags of which it does not know the first.
    let rest = text.strip_prefix(name.as_bytes())?.strip_prefix(b":")?;
    Some(rest.strip_prefix(b" ").unwrap_or(rest))
}

/// The length of a value, which a later argument follows, or nothing. 0 if it cannot be told.
fn end_of_value(text: &[u8], kind: Kind, later: Signature) -> usize {
    let close: &[u8] = match (text.first(), kind) {
        (Some(b'"'), Kind::Name) => b"\"",
        (Some(b'{'), Kind::Address) => b" }",
        _ => b"",
    };
    let mut ends = Vec::new();
    for (name, _) in later {
        let next = [close, b", ", name.as_bytes(), b":"].concat();
        let mut found = memchr::memmem::find_iter(text, &next).map(|at| at + close.len());
        ends.extend(found.next());
        if kind == Kind::Name && found.next().is_some() {
            return 0;
        }
    }
    match kind {
        Kind::Name if !ends.is_sorted() => 0,
        _ => ends.into_iter().min().unwrap_or(text.len()),
    }
}

/// The text of strace. `name_of_program`: from an event, if perf could not read the name in the
/// call. `pair`: the descriptors of a pipe.
pub(super) fn strace_text(
    signature: Signature,
    values: &[Option<&[u8]>],
    name_of_program: Option<&[u8]>,
    pair: Option<(i32, i32)>,
) -> Vec<u8> {
    let is_of_descriptor = values
        .iter()
        .flatten()
        .any(|value| memchr::memmem::find(value, b"EMPTY_PATH").is_some());
    let mut out = Vec::new();
    let mut program: Vec<u8> = Vec::new();
    for (at, ((_, kind), value)) in signature.iter().zip(values).enumerate() {
        if at > 0 {
            out.extend(b", ");
        }
        let text = value.map_or_else(String::new, lossy);
        match kind {
            Kind::Name => {
                let printed =
                    value.map_or_else(|| "NULL".into(), |value| name(value, is_of_descriptor));
                let is_known = printed.starts_with(b"\"");
                program = match name_of_program.filter(|_| !is_known) {
                    Some(name) => quoted(name),
                    None => printed,
                };
                out.extend(&program);
            }
            // The rest of the arguments is not known.
            Kind::Arguments if program.starts_with(b"\"") => {
                out.push(b'[');
                out.extend(&program);
                out.extend(b", \"...\"]");
            }
            Kind::Pair => match pair {
                Some((first, second)) => out.extend(format!("[{first}, {second}]").into_bytes()),
                None => out.extend(UNPRINTED.bytes()),
            },
            Kind::Descriptor => out.extend(descriptor(&text).into_bytes()),
            Kind::Flags(prefix) => out.extend(prefixed(&text, prefix).into_bytes()),
            Kind::Mode => out.extend(format!("0{:o}", mode(&text)).into_bytes()),
            Kind::Address => out.extend(address(&text)),
            Kind::Structure => out.extend(structure(&text).into_bytes()),
            Kind::Number | Kind::Arguments => out.extend(number(&text).into_bytes()),
        }
    }
    // strace has names for the arguments of this call.
    if signature
        .first()
        .is_some_and(|(first, _)| *first == "clone_flags")
    {
        out.splice(0..0, *b"flags=");
    }
    out
}

fn lossy(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

/// A name in quotes. BPF cannot read a page that is not in memory, and gives an empty name.
fn name(value: &[u8], is_of_descriptor: bool) -> Vec<u8> {
    let inner = value
        .strip_prefix(b"\"")
        .and_then(|value| value.strip_suffix(b"\""));
    match inner {
        Some(b"") if !is_of_descriptor => UNPRINTED.into(),
        Some(inner) => quoted(inner),
        // A probe of the kernel gives names without quotes.
        None if value.starts_with(b"/") => quoted(value),
        None => UNPRINTED.into(),
    }
}

/// perf looks the file of a descriptor up after the call, when it may lead to another one.
fn descriptor(text: &str) -> String {
    let text = text.split('<').next().unwrap_or_default();
    match text {
        "" => "0".to_owned(),
        "CWD" => "AT_FDCWD".to_owned(),
        other => other.to_owned(),
    }
}

fn number(text: &str) -> String {
    let first = text.split([' ', '<']).next().unwrap_or_default();
    let is_number = first
        .strip_prefix('-')
        .unwrap_or(first)
        .starts_with(|c: char| c.is_ascii_digit());
    match is_number {
        true => first.to_owned(),
        false if text.is_empty() => "0".to_owned(),
        false => UNPRINTED.to_owned(),
    }
}

/// Flags with the prefix that perf leaves out unless `trace.show_prefix` is set.
fn prefixed(text: &str, prefix: &str) -> String {
    let word = |word: &str| match word {
        "LOCAL" if prefix == "AF_" => "AF_UNIX".to_owned(),
        "R" | "W" | "X" if prefix.is_empty() => format!("{word}_OK"),
        word if word.starts_with(prefix) || word.starts_with(|c: char| c.is_ascii_digit()) => {
            word.to_owned()
        }
        word => format!("{prefix}{word}"),
    };
    let words = text.split('|').map(str::trim).filter(|one| !one.is_empty());
    let all: Vec<String> = words.map(word).collect();
    match all.is_empty() {
        true => "0".to_owned(),
        false => all.join("|"),
    }
}

fn mode(text: &str) -> u32 {
    let words = text
        .split('|')
        .map(|word| word.trim().trim_start_matches("S_"));
    words.fold(0, |all, word| {
        let known = MODES.iter().find(|(known, _)| *known == word);
        all | known.map_or_else(|| flags(word) as u32, |(_, bits)| *bits)
    })
}

/// A socket's address: `{ .family: INET, port: 9, addr: 127.0.0.1 }`. BPF reads the first bytes of
/// an address only, so that the numbers of IPv6 are wrong. The name of an abstract socket is not
/// printed.
fn address(text: &str) -> Vec<u8> {
    let field = |name: &str, end: &str| {
        let (_, rest) = text.split_once(name)?;
        let (value, _) = rest.rsplit_once(" }")?;
        Some(
            value
                .split_once(end)
                .map_or(value, |(value, _)| value)
                .to_owned(),
        )
    };
    let unprinted = || UNPRINTED.into();
    let family = field(".family: ", ", ").unwrap_or_default();
    match family.trim_start_matches("AF_").trim_start_matches("PF_") {
        "LOCAL" | "UNIX" => match field("path: ", "\0").filter(|path| !path.is_empty()) {
            Some(path) => {
                let mut out = b"{sa_family=AF_UNIX, sun_path=".to_vec();
                out.extend(quoted(path.as_bytes()));
                out.push(b'}');
                out
            }
            None => unprinted(),
        },
        "INET" => match (field("port: ", ", "), field("addr: ", ", ")) {
            (Some(port), Some(addr)) => format!(
                "{{sa_family=AF_INET, sin_port=htons({port}), sin_addr=inet_addr(\"{addr}\")}}"
            )
            .into_bytes(),
            _ => unprinted(),
        },
        _ => unprinted(),
    }
}

/// `(struct open_how){.flags = (__u64)524288,}`. It has fields only if perf prints structures.
fn structure(text: &str) -> String {
    let field = |name: &str| {
        let (_, rest) = text.split_once(name)?;
        let (_, rest) = rest.split_once(')')?;
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        (end > 0).then(|| rest[..end].to_owned())
    };
    match field(".flags = (") {
        Some(flags) => {
            let mode = field(".mode = (").unwrap_or_else(|| "0".to_owned());
            format!("{{flags={flags}, mode={mode}}}")
        }
        None => UNPRINTED.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::signatures::signature;
    use super::*;

    fn strace(name: &str, text: &str) -> String {
        let signature = signature(name);
        let text = strace_text(
            signature,
            &values(signature, text.as_bytes()),
            None,
            Some((3, 4)),
        );
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn arguments_become_those_of_strace() {
        for (name, perf, wanted) in [
            (
                "openat",
                "dfd: CWD, filename: \"a b\", flags: CREAT|TRUNC|WRONLY, mode: IRUGO|IWUGO",
                "AT_FDCWD, \"a b\", O_CREAT|O_TRUNC|O_WRONLY, 0666",
            ),
            (
                "openat",
                "dfd: CWD, filename: \"t.sh\"",
                "AT_FDCWD, \"t.sh\", 0, 00",
            ),
            (
                "openat",
                "dfd: 3</tmp>, filename: 0x7f00, flags: O_RDONLY|O_CLOEXEC",
                "3, ?, O_RDONLY|O_CLOEXEC, 00",
            ),
            ("read", "buf: 0x55d0, count: 832", "0, 0x55d0, 832"),
            ("dup2", "newfd: 1</dev/null>", "0, 1"),
            (
                "fcntl",
                "fd: 3, cmd: DUPFD, arg: 10</dev/null>",
                "3, F_DUPFD, 10",
            ),
            (
                "renameat2",
                "olddfd: CWD, oldname: \"x1\", newdfd: CWD, newname: \"x2\", flags: NOREPLACE",
                "AT_FDCWD, \"x1\", AT_FDCWD, \"x2\", RENAME_NOREPLACE",
            ),
            (
                "pipe2",
                "fildes: 0x7ffd, flags: CLOEXEC",
                "[3, 4], O_CLOEXEC",
            ),
            (
                "execve",
                "filename: \"/bin/cat\", argv: 0x7f, envp: 0x7f",
                "\"/bin/cat\", [\"/bin/cat\", \"...\"], 0x7f",
            ),
            (
                "connect",
                "fd: 6, uservaddr: { .family: INET, port: 9, addr: 127.0.0.1 }, addrlen: 16",
                "6, {sa_family=AF_INET, sin_port=htons(9), sin_addr=inet_addr(\"127.0.0.1\")}, 16",
            ),
            (
                "connect",
                "fd: 4, uservaddr: { .family: LOCAL, path: so }, addrlen: 5",
                "4, {sa_family=AF_UNIX, sun_path=\"so\"}, 5",
            ),
            (
                "connect",
                "fd: 7, uservaddr: { .family: INET6, port: 9, addr: ::9.0.0.0 }, addrlen: 28",
                "7, ?, 28",
            ),
            (
                "clone",
                "clone_flags:|CHILD_SETTID",
                "flags=CLONE_CHILD_SETTID",
            ),
            (
                "newfstatat",
                "dfd: 3, filename: \"\", statbuf: 0x7f, flag: EMPTY_PATH",
                "3, \"\", 0x7f, AT_EMPTY_PATH",
            ),
            ("kill", "pid: 3505 (sh), sig: KILL", "3505, SIGKILL"),
            ("utimensat", "dfd: 3, utimes: 0x7f", "3, NULL, 0x7f, 0"),
        ] {
            assert_eq!(strace(name, perf), wanted, "{perf}");
        }
    }

    #[test]
    fn a_name_with_quotes_is_read_and_one_that_could_be_two_arguments_is_not() {
        let odd = "dfd: CWD, filename: \"q\"uo,te) = 3\\\", flags: RDWR";
        assert_eq!(
            strace("openat", odd),
            "AT_FDCWD, \"q\\042uo,te) = 3\\134\", O_RDWR, 00"
        );
        let double = "dfd: CWD, filename: \"a\", flags: \", flags: RDWR";
        assert!(strace("openat", double).starts_with("AT_FDCWD, ?, "));
        // perf cuts a line of 2,048 bytes.
        assert!(strace("openat", "dfd: CWD, filename: \"xxxx").starts_with("AT_FDCWD, ?, "));
    }
}
