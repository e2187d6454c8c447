//! A system call of an event: the numbers of its first four arguments, with the strings and lists
//! that other records have in their places.

use super::event::{AuditEvent, ItemKind, LoggedCall, NamedItem};
use crate::CallingThread;
use crate::calls::{Arg, Returned, SystemCall};
use backstory_eventlog::event::Time;
use backstory_guard::table::Abi;
use std::borrow::Cow;

/// The first number of the kernel's own errors, such as `ERESTARTSYS`: the call was interrupted.
const RESTART: i64 = 512;
/// The numbers of `ioctl` that copy a file or change a descriptor.
const DEVICE_CALLS: [(u64, &str); 3] = [
    (0x5450, "FIONCLEX"),
    (0x5451, "FIOCLEX"),
    (0x4004_9409, "FICLONE"),
];

/// The name of a call, if it is known here.
pub(super) fn name(call: &LoggedCall) -> Option<Cow<'_, str>> {
    if let Some(name) = &call.name {
        return std::str::from_utf8(name).ok().map(Cow::Borrowed);
    }
    let row = Abi::of(call.arch, call.number)?.row(call.number)?;
    Some(Cow::Borrowed(row.name))
}

/// The call of an event.
pub(super) fn system_call<'a>(
    event: &AuditEvent,
    call: &LoggedCall,
    name: &'a str,
    thread: CallingThread,
    time: Time,
) -> SystemCall<'a> {
    let mut args: Vec<Arg> = call.args.iter().map(|value| plain(*value)).collect();
    let mut set = |at: usize, arg: Arg| {
        while args.len() <= at {
            args.push(plain(0));
        }
        args[at] = arg;
    };
    for (at, path) in paths(event, name) {
        set(at, path);
    }
    match name {
        "execve" => set(1, words(event)),
        "execveat" => set(2, words(event)),
        "pipe" | "pipe2" => set(0, pair(event)),
        "socketpair" => set(3, pair(event)),
        "mmap" | "mmap2" => {
            // Memory without a file has no MMAP record.
            let (fd, flags) = event.mapped.unwrap_or((-1, libc::MAP_ANONYMOUS as u64));
            set(3, plain(flags));
            set(4, Arg::number(fd.into()));
        }
        "openat2" => {
            let (flags, mode) = event.how.unwrap_or_default();
            set(
                2,
                Arg::raw_text(format!("{{flags={flags:#x}, mode={mode:#x}}}")),
            );
        }
        "ioctl" => {
            let known = DEVICE_CALLS
                .iter()
                .find(|(number, _)| *number == call.args[1]);
            if let Some((_, name)) = known {
                set(1, Arg::raw_text((*name).to_owned()));
            }
        }
        _ => {}
    }
    if let Some(address) = &event.address {
        let at = if matches!(name, "sendto" | "recvfrom") {
            4
        } else {
            1
        };
        set(at, Arg::Address(address.clone()));
    }
    SystemCall {
        thread,
        time,
        name,
        args,
        returned: Returned {
            value: call.exit.map(|exit| match exit <= -RESTART {
                true => -i64::from(libc::EINTR),
                false => exit,
            }),
            ..Returned::default()
        },
    }
}

/// An argument. A descriptor has 32 bits, of which the highest is its sign.
fn plain(value: u64) -> Arg {
    match u32::try_from(value) {
        Ok(value) => Arg::number(value.cast_signed().into()),
        Err(_) => Arg::raw_text(format!("{value:#x}")),
    }
}

fn words(event: &AuditEvent) -> Arg {
    let text = |bytes: &Vec<u8>| Arg::Text {
        bytes: bytes.clone(),
        cut: false,
    };
    Arg::List {
        all: event.arguments.values().map(text).collect(),
        cut: event.is_cut,
    }
}

fn pair(event: &AuditEvent) -> Arg {
    let ends = event.pair.into_iter().flat_map(|(one, other)| [one, other]);
    Arg::List {
        all: ends.map(|fd| Arg::number(fd.into())).collect(),
        cut: false,
    }
}

/// The positions of a call's paths, with the paths.
fn paths(event: &AuditEvent, name: &str) -> Vec<(usize, Arg)> {
    let at = |position: usize, item: Option<&NamedItem>| {
        let path = item.and_then(|item| item.name.clone());
        // A path that the log does not have is not read from the number of its pointer.
        let arg = path.map_or(Arg::raw_text("NULL".to_owned()), |bytes| Arg::Text {
            bytes,
            cut: false,
        });
        (position, arg)
    };
    let used = |kind: ItemKind| event.items.iter().filter(move |item| item.kind == kind);
    let first = || used(ItemKind::Used).min_by_key(|item| item.item);
    let removed = || used(ItemKind::Delete).min_by_key(|item| item.item);
    let made = || used(ItemKind::Create).max_by_key(|item| item.item);
    match name {
        "rename" => vec![at(0, removed()), at(1, made())],
        "renameat" | "renameat2" => vec![at(1, removed()), at(3, made())],
        "link" => vec![at(0, first()), at(1, made())],
        "linkat" => vec![at(1, first()), at(3, made())],
        "symlink" => vec![at(0, first()), at(1, made())],
        "symlinkat" => vec![at(0, first()), at(2, made())],
        "mount" => vec![at(1, first())],
        "pivot_root" => vec![at(0, first()), at(1, used(ItemKind::Used).next_back())],
        _ => match position(name) {
            // A program has the names of its loader and its interpreters, too.
            Some(position) if name.starts_with("execve") => vec![at(position, first())],
            Some(position) => {
                let found = made().or(removed()).or(used(ItemKind::Used).next_back());
                vec![at(position, found)]
            }
            None => Vec::new(),
        },
    }
}

/// The position of the only path of a call.
fn position(name: &str) -> Option<usize> {
    Some(match name {
        "open" | "creat" | "execve" | "truncate" | "truncate64" | "unlink" | "rmdir" | "mkdir"
        | "mknod" | "chmod" | "chown" | "chown32" | "lchown" | "chdir" | "chroot" | "umount"
        | "umount2" | "stat" | "stat64" | "lstat" | "lstat64" | "statfs" | "access"
        | "readlink" | "utime" | "utimes" | "setxattr" | "lsetxattr" | "removexattr"
        | "lremovexattr" => 0,
        "openat" | "openat2" | "execveat" | "unlinkat" | "mkdirat" | "mknodat" | "fchmodat"
        | "fchmodat2" | "fchownat" | "newfstatat" | "fstatat64" | "statx" | "faccessat"
        | "faccessat2" | "readlinkat" | "utimensat" | "futimesat" => 1,
        _ => return None,
    })
}
