//! The records of one system call, joined.
//!
//! Invariant: an event takes at most [`MOST_BYTES`]. Records beyond that are not kept, and the
//! event says that it is cut.

use super::record::{AuditRecord, text};
use std::collections::BTreeMap;

/// The most bytes of an event. The kernel passes arguments of at most 6 MiB to a program.
const MOST_BYTES: usize = 16 << 20;

/// A name that a call used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedItem {
    /// Its position among the names of the call.
    pub(super) item: u32,
    /// The name as the program gave it. The directory of another item may be made absolute.
    pub(super) name: Option<Vec<u8>>,
    /// `nametype`
    pub(super) kind: ItemKind,
}

/// The use of a name by a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    /// The directory of another item.
    Parent,
    /// The name was made.
    Create,
    /// The name was removed.
    Delete,
    /// The file was used, or nothing is known.
    Used,
}

/// A system call as the `SYSCALL` record has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LoggedCall {
    pub(super) arch: u32,
    pub(super) number: u32,
    /// The call's name, if auditd added it.
    pub(super) name: Option<Vec<u8>>,
    /// The result; `None` of a call that does not return.
    pub(super) exit: Option<i64>,
    /// The first four arguments.
    pub(super) args: [u64; 4],
    /// The number of its `PATH` records.
    pub(super) items: usize,
    pub(super) ppid: u32,
    /// The process, not the thread.
    pub(super) pid: u32,
    pub(super) comm: Vec<u8>,
    /// The program's file.
    pub(super) exe: Vec<u8>,
}

/// The end of a process by a signal (`ANOM_ABEND`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AbnormalEnd {
    pub(super) pid: u32,
    pub(super) signal: i32,
}

/// All that the log says of one call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AuditEvent {
    pub(super) time: i64,
    pub(super) call: Option<LoggedCall>,
    /// The arguments of a program, by their position.
    pub(super) arguments: BTreeMap<u32, Vec<u8>>,
    pub(super) cwd: Option<Vec<u8>>,
    pub(super) items: Vec<NamedItem>,
    /// The descriptors that `pipe` or `socketpair` made.
    pub(super) pair: Option<(i32, i32)>,
    /// The descriptor and the flags of `mmap`.
    pub(super) mapped: Option<(i32, u64)>,
    /// A socket's address.
    pub(super) address: Option<Vec<u8>>,
    /// Flags and mode of `openat2`.
    pub(super) how: Option<(u64, u64)>,
    /// The words of the process's title, of which the kernel logs 128 bytes.
    pub(super) title: Option<Vec<u8>>,
    pub(super) abnormal_end: Option<AbnormalEnd>,
    /// The call changed the rules of the audit system.
    pub(super) is_configuration: bool,
    /// No further record follows.
    pub(super) is_whole: bool,
    /// The event had more bytes than are kept.
    pub(super) is_cut: bool,
    pub(super) bytes: usize,
}

/// True if the records of this kind are part of a call.
pub(super) fn is_of_call(kind: &str) -> bool {
    matches!(
        kind,
        "SYSCALL"
            | "EXECVE"
            | "CWD"
            | "PATH"
            | "FD_PAIR"
            | "MMAP"
            | "SOCKADDR"
            | "OPENAT2"
            | "PROCTITLE"
            | "EOE"
            | "ANOM_ABEND"
            | "CONFIG_CHANGE"
    )
}

impl AuditEvent {
    /// Takes a record of the event.
    pub(super) fn add(&mut self, record: &AuditRecord<'_>) {
        self.time = record.time;
        match record.kind {
            "SYSCALL" => self.call = Some(call(record)),
            "EXECVE" => self.arguments(record),
            "CWD" => self.cwd = record.text("cwd"),
            "PATH" => self.path(record),
            "FD_PAIR" => self.pair = record.decimal("fd0").zip(record.decimal("fd1")),
            "MMAP" => self.mapped = record.decimal("fd").zip(record.hexadecimal("flags")),
            "SOCKADDR" => self.address = record.text("saddr"),
            "OPENAT2" => self.how = octal(record, "oflag").zip(octal(record, "mode")),
            "PROCTITLE" => {
                self.title = record.text("proctitle");
                self.is_whole = true;
            }
            "EOE" => self.is_whole = true,
            "ANOM_ABEND" => {
                let end = record.decimal("pid").zip(record.decimal("sig"));
                self.abnormal_end = end.map(|(pid, signal)| AbnormalEnd { pid, signal });
                // The record stands alone.
                self.is_whole = self.call.is_none();
            }
            _ => self.is_configuration = true,
        }
    }

    /// True if there is room for so many bytes.
    fn has_room(&mut self, bytes: usize) -> bool {
        // An empty string takes memory, too.
        self.bytes = self.bytes.saturating_add(bytes + 64);
        self.is_cut |= self.bytes > MOST_BYTES;
        !self.is_cut
    }

    fn path(&mut self, record: &AuditRecord<'_>) {
        let name = record.text("name");
        if !self.has_room(name.as_ref().map_or(0, Vec::len)) {
            return;
        }
        let kind = match record.raw("nametype") {
            Some(b"PARENT") => ItemKind::Parent,
            Some(b"CREATE") => ItemKind::Create,
            Some(b"DELETE") => ItemKind::Delete,
            _ => ItemKind::Used,
        };
        let item = record.decimal("item").unwrap_or_default();
        self.items.push(NamedItem { item, name, kind });
    }

    /// `a0="x" a1=6120`. A long argument is split: `a2_len=20000 a2[0]=61 a2[1]=62`.
    fn arguments(&mut self, record: &AuditRecord<'_>) {
        for (key, raw) in record.fields() {
            let Some(number) = key.strip_prefix(b"a") else {
                continue;
            };
            let end = memchr::memchr(b'[', number).unwrap_or(number.len());
            let digits = std::str::from_utf8(&number[..end]).ok();
            let Some(at) = digits.and_then(|digits| digits.parse().ok()) else {
                continue;
            };
            let Some(part) = text(raw) else {
                continue;
            };
            if self.has_room(part.len()) {
                self.arguments
                    .entry(at)
                    .or_default()
                    .extend_from_slice(&part);
            }
        }
    }
}

fn octal(record: &AuditRecord<'_>, name: &str) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(record.raw(name)?).ok()?, 8).ok()
}

fn call(record: &AuditRecord<'_>) -> LoggedCall {
    let argument = |name| record.hexadecimal(name).unwrap_or_default();
    LoggedCall {
        arch: record.hexadecimal("arch").unwrap_or_default() as u32,
        number: record.decimal("syscall").unwrap_or(u32::MAX),
        name: record.name("SYSCALL").map(<[u8]>::to_vec),
        exit: record.decimal("exit"),
        args: ["a0", "a1", "a2", "a3"].map(argument),
        items: record.decimal("items").unwrap_or_default(),
        ppid: record.decimal("ppid").unwrap_or_default(),
        pid: record.decimal("pid").unwrap_or_default(),
        comm: record.text("comm").unwrap_or_default(),
        exe: record.text("exe").unwrap_or_default(),
    }
}
