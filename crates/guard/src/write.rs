//! From a call and its conclusion to records.

use super::ask::{Ask, List};
use super::caller::Caller;
use super::conclude::Conclusion;
use super::record_writer::{Fields, RecordWriter, born};
use super::shared::Notification;
use backstory_abi::{ENV_ARENA, ENV_PRELOAD, F_CUT, PRELOAD_NAME, Who, op};
use backstory_arena::RecordSink;
use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::CStr;
use std::os::unix::ffi::OsStringExt;
use std::sync::{Mutex, PoisonError};

/// Environments that were logged in full already, by hash.
#[derive(Debug, Default)]
pub struct Environments(Mutex<HashSet<u64>>);

/// Environments remembered; more are logged in full again.
const ENVIRONMENTS: usize = 65_536;

impl Environments {
    fn first(&self, hash: u64) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= ENVIRONMENTS {
            seen.clear();
        }
        seen.insert(hash)
    }
}

/// Who made a call.
pub fn who(caller: &Caller, call: &Notification) -> Who {
    Who {
        pid: caller.pid,
        tid: caller.tid,
        nr: call.nr,
        arch: call.arch,
    }
}

/// Says that a process was met for the first time. Only its parent is told, for program and directory follow from that; of an orphan,
/// whose parent may have died before it could be asked, the directory, too.
pub fn write_born<S: RecordSink>(
    out: &mut RecordWriter<S>,
    caller: &Caller,
    call: &Notification,
    time: u64,
    orphan: bool,
) {
    let directory = orphan.then(|| directory_of(caller.pid)).flatten();
    let directory = directory.unwrap_or_default();
    out.put(
        time,
        who(caller, call),
        &born(caller.pid, caller.parent),
        &[b"", &directory],
    );
}

/// Where a process is, as we name it; none if that has no name any more.
fn directory_of(pid: u32) -> Option<Vec<u8>> {
    const GONE: &[u8] = b" (deleted)";
    let path = std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    let path = path.into_os_string().into_vec();
    (path.starts_with(b"/") && !path.ends_with(GONE)).then_some(path)
}

/// Writes what a call asked for and what is concluded of it.
pub fn write<S: RecordSink>(
    out: &mut RecordWriter<S>,
    (time, who): (u64, Who),
    ask: &Ask,
    conclusion: &Conclusion,
    environments: &Environments,
) {
    let fields = &conclusion.fields;
    match ask {
        Ask::Exec {
            name, args, env, ..
        } => {
            write_exec(
                out,
                (time, who),
                fields,
                &name.path,
                args,
                env.as_ref(),
                environments,
            );
        }
        Ask::Rename { from, to, .. } | Ask::Link { from, to, .. } => {
            out.put(time, who, fields, &[&from.path, &to.path]);
        }
        Ask::Symlink { target, name } => out.put(time, who, fields, &[target, &name.path]),
        Ask::Chdir { name } => {
            let named = if fields.result_failed() {
                &b""[..]
            } else {
                &name.path[..]
            };
            let directory = conclusion.directory.as_deref().unwrap_or(named);
            out.put(time, who, fields, &[&name.path, directory]);
        }
        Ask::Pivot { new, old } => out.put(time, who, fields, &[&new.path, &old.path]),
        Ask::Mount { source, target, .. } => out.put(time, who, fields, &[source, &target.path]),
        Ask::Address { address, .. } => out.put_bytes(time, who, fields, address),
        Ask::Opaque(what) => out.put(time, who, fields, &[what.as_bytes()]),
        Ask::Namespace { .. } => out.put(time, who, fields, &[]),
        _ => {
            let path = ask.names()[0].map_or(&b""[..], |name| &name.path[..]);
            out.put(time, who, fields, &[path]);
        }
    }
}

fn write_exec<S: RecordSink>(
    out: &mut RecordWriter<S>,
    (time, who): (u64, Who),
    fields: &Fields,
    path: &[u8],
    args: &List,
    env: Option<&List>,
    environments: &Environments,
) {
    out.put_list(
        time,
        who,
        &Fields {
            fd: 0,
            ..Fields::of(op::ARGS)
        },
        &args.bytes,
    );
    let mut cut = !args.whole;
    if let Some(env) = env {
        let bytes = without_ours(&env.bytes);
        let hash = hash(&bytes);
        let fields = Fields {
            fd: hash as i32,
            arg: (hash >> 32) as i32,
            ..Fields::of(op::ENV)
        };
        let list = if environments.first(hash) {
            &bytes[..]
        } else {
            &[]
        };
        out.put_list(time, who, &fields, list);
        cut |= !env.whole;
    }
    let flags = if cut {
        fields.flags | F_CUT
    } else {
        fields.flags
    };
    out.put(time, who, &Fields { flags, ..*fields }, &[path]);
}

/// An environment as the program knows it: without what puts the recorder into it.
fn without_ours(environment: &[u8]) -> Cow<'_, [u8]> {
    let mut out: Option<Vec<u8>> = None;
    let mut rest = environment;
    while !rest.is_empty() {
        let before = &environment[..environment.len() - rest.len()];
        let length =
            CStr::from_bytes_until_nul(rest).map_or(rest.len(), |entry| entry.count_bytes() + 1);
        let (entry, after) = rest.split_at(length);
        rest = after;
        match as_given(entry) {
            Given::Whole => {
                if let Some(out) = &mut out {
                    out.extend_from_slice(entry);
                }
            }
            // Most entries are nobody's business, and of most environments all are.
            Given::Without(kept) => {
                let out = out.get_or_insert_with(|| before.to_vec());
                out.extend_from_slice(kept);
                if !kept.is_empty() {
                    out.push(0);
                }
            }
        }
    }
    out.map_or(Cow::Borrowed(environment), Cow::Owned)
}

/// What the program was given of an entry.
enum Given<'a> {
    Whole,
    /// No more than this, whose NUL is ours; nothing if it is empty.
    Without(&'a [u8]),
}

fn as_given(entry: &[u8]) -> Given<'_> {
    if value(entry, ENV_ARENA).is_some() {
        return Given::Without(b"");
    }
    let Some(libraries) = value(entry, ENV_PRELOAD) else {
        return Given::Whole;
    };
    let libraries = libraries.strip_suffix(b"\0").unwrap_or(libraries);
    let last = libraries
        .iter()
        .rposition(|b| matches!(b, b' ' | b':'))
        .map_or(0, |at| at + 1);
    if !libraries[last..].ends_with(PRELOAD_NAME.as_bytes()) {
        return Given::Whole;
    }
    let kept = if last > 1 {
        ENV_PRELOAD.len() + 1 + last - 1
    } else {
        0
    };
    Given::Without(&entry[..kept])
}

/// The value of the variable `name`, if this entry is it.
fn value<'a>(entry: &'a [u8], name: &str) -> Option<&'a [u8]> {
    entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")
}

/// A number for an environment: never 0, which means none.
fn hash(bytes: &[u8]) -> u64 {
    bytes
        .chunks(8)
        .fold(0x9e37_79b9_7f4a_7c15, |hash, chunk| mix(hash, word(chunk)))
        | 1
}

/// A number for a call, to know it again when a signal has restarted it.
pub fn fingerprint(call: &Notification, ask: &Ask) -> u64 {
    let start = mix(u64::from(call.nr) | u64::from(call.arch) << 32, call.ip);
    let number = call.args.iter().fold(start, |hash, arg| mix(hash, *arg));
    let paths = ask
        .names()
        .into_iter()
        .flatten()
        .flat_map(|name| name.path.chunks(8));
    let address = if let Ask::Address { address, .. } = ask {
        &address[..]
    } else {
        &[]
    };
    paths
        .chain(address.chunks(8))
        .fold(number, |hash, chunk| mix(hash, word(chunk)))
}

fn word(chunk: &[u8]) -> u64 {
    match <[u8; 8]>::try_from(chunk) {
        Ok(whole) => u64::from_le_bytes(whole),
        Err(_) => chunk.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)),
    }
}

fn mix(hash: u64, word: u64) -> u64 {
    let wide = u128::from(hash ^ word ^ 0x2545_f491_4f6c_dd1d) * 0xd6e8_feb8_6659_fd93;
    (wide as u64) ^ (wide >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorders_variables_are_not_logged() {
        let given =
            b"A=1\0LD_PRELOAD=/x/mine.so:/y/$LIB/linux-backstory.so\0BACKSTORY_ARENA=/dev/shm/a\0B=2\0";
        assert_eq!(
            &without_ours(given)[..],
            b"A=1\0LD_PRELOAD=/x/mine.so\0B=2\0"
        );
        assert_eq!(
            &without_ours(b"LD_PRELOAD=/y/linux-backstory.so\0")[..],
            b""
        );
        assert_eq!(
            &without_ours(b"LD_PRELOAD=/x/mine.so\0no value\0")[..],
            b"LD_PRELOAD=/x/mine.so\0no value\0"
        );
    }

    #[test]
    fn environments_that_differ_have_different_numbers() {
        let numbers: HashSet<u64> = (0..10_000)
            .map(|i| hash(format!("A={i}\0B=x\0").as_bytes()))
            .collect();
        assert!(numbers.len() > 9_990, "{}", numbers.len());
    }
}
