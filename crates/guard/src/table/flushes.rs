//! The calls that wait until the log is durable, in runs that want this (`--durability`).
//!
//! In: the mode, the entry into the kernel, and a row of the table. Out: whether the call waits.
//! The filter notifies these calls wherever they come from, also from the gate.
//!
//! Two kinds of call wait:
//!
//! - with `ordered`, calls that make the content of a file durable, or begin to do so;
//! - with `sync`, calls that change the content of a file, too.
//!
//! Absent: `write` through a descriptor with `O_SYNC` or `O_DIRECT` in `ordered`. A filter cannot
//! recognize it, so the recorder asks for a commit before it (`durable.c`). Entries of an io_uring
//! are in `uring/entry.rs`.

use super::numbers::Abi;
use super::row::When::{self, Always, Any, OneOf};
use super::shape::Arg;
use backstory_vocabulary::DurabilityMode;

/// When a held call waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldRule {
    /// Always.
    Always,
    /// If its target names a file already. Some file systems write the new file back then.
    Replaces,
}

/// A call that waits.
#[derive(Debug, Clone, Copy)]
pub struct FlushRow {
    /// Its name in the table.
    pub name: &'static str,
    /// The calls of this name that wait.
    pub when: When,
    /// The mode from which on it waits.
    pub from: DurabilityMode,
    /// Why it waits, for `docs/syscalls.md`.
    pub why: &'static str,
}

const SYNCS: &str = "makes contents durable";
const BEGINS: &str = "begins to write contents back";
const ORDERS: &str = "may write back what it copies, moves or maps";
const UNMOUNTS: &str = "writes back a whole file system";
const REPLACES: &str = "some file systems write the new file back when it replaces another";
const WRITES: &str = "changes the content of a file";
const NAMES: &str = "gives a content a name";
const REQUESTS: &str = "may make contents durable: its requests are in memory";
const ENTRIES: &str = "an entry may make contents durable";

const O_TRUNC: u32 = libc::O_TRUNC as u32;
/// `RWF_DSYNC | RWF_SYNC`
const WRITE_FLAGS: u32 = 2 | 4;
/// `FICLONE`, `FICLONERANGE`, `FIDEDUPERANGE`, `FS_IOC_FIEMAP`
const FILE_IOCTLS: &[u32] = &[0x4004_9409, 0x4020_940d, 0xc018_9436, 0xc020_660b];
/// `FALLOC_FL_PUNCH_HOLE`, `COLLAPSE_RANGE`, `ZERO_RANGE`, `INSERT_RANGE`, `UNSHARE_RANGE`
const RANGES: u32 = 2 | 8 | 16 | 32 | 64;
const DONT_NEED: &[u32] = &[libc::POSIX_FADV_DONTNEED as u32];
const PAGE_OUT: &[u32] = &[libc::MADV_PAGEOUT as u32];

const fn any(arg: Arg, mask: u32) -> When {
    Any { arg, mask }
}

const fn ordered(name: &'static str, when: When, why: &'static str) -> FlushRow {
    let from = DurabilityMode::Ordered;
    FlushRow {
        name,
        when,
        from,
        why,
    }
}

const fn sync(name: &'static str, when: When, why: &'static str) -> FlushRow {
    FlushRow {
        from: DurabilityMode::Sync,
        ..ordered(name, when, why)
    }
}

/// Every call that waits in one of the modes. The first row of a name that holds for the mode
/// counts.
#[rustfmt::skip]
pub const FLUSHES: &[FlushRow] = &[
    ordered("fsync", Always, SYNCS),
    ordered("fdatasync", Always, SYNCS),
    ordered("sync", Always, SYNCS),
    ordered("syncfs", Always, SYNCS),
    ordered("msync", any(2, libc::MS_SYNC as u32), SYNCS),
    ordered("sync_file_range", Always, BEGINS),
    sync("pwritev2", Always, WRITES),
    ordered("pwritev2", any(5, WRITE_FLAGS), SYNCS),
    ordered("io_submit", any(1, u32::MAX), REQUESTS),
    ordered("io_uring_enter", any(1, u32::MAX), ENTRIES),
    ordered("fadvise64", OneOf { arg: 3, values: DONT_NEED }, BEGINS),
    ordered("fadvise64_64", Always, BEGINS),
    ordered("madvise", OneOf { arg: 2, values: PAGE_OUT }, BEGINS),
    ordered("process_madvise", OneOf { arg: 3, values: PAGE_OUT }, BEGINS),
    ordered("ioctl", OneOf { arg: 1, values: FILE_IOCTLS }, ORDERS),
    ordered("copy_file_range", Always, ORDERS),
    sync("fallocate", Always, WRITES),
    ordered("fallocate", any(1, RANGES), ORDERS),
    ordered("mount", Always, UNMOUNTS),
    ordered("umount", Always, UNMOUNTS),
    ordered("umount2", Always, UNMOUNTS),
    ordered("rename", Always, REPLACES),
    ordered("renameat", Always, REPLACES),
    ordered("renameat2", Always, REPLACES),
    sync("link", Always, NAMES),
    sync("linkat", Always, NAMES),
    sync("write", Always, WRITES),
    sync("pwrite64", Always, WRITES),
    sync("writev", Always, WRITES),
    sync("pwritev", Always, WRITES),
    sync("sendfile", Always, WRITES),
    sync("sendfile64", Always, WRITES),
    sync("splice", Always, WRITES),
    sync("truncate", Always, WRITES),
    sync("truncate64", Always, WRITES),
    sync("ftruncate", Always, WRITES),
    sync("ftruncate64", Always, WRITES),
    sync("open", any(1, O_TRUNC), WRITES),
    sync("openat", any(2, O_TRUNC), WRITES),
    sync("openat2", Always, WRITES),
    sync("creat", Always, WRITES),
];

/// The calls of this name that wait. `None` if none does.
pub fn held_calls(mode: DurabilityMode, abi: Abi, name: &str) -> Option<When> {
    if mode == DurabilityMode::After {
        return None;
    }
    let row = FLUSHES
        .iter()
        .find(|row| row.name == name && row.from <= mode)?;
    // The position of an argument after a file offset differs between the entries.
    let moved = matches!(row.name, "fadvise64" | "pwritev2") && abi != Abi::X64;
    Some(if moved { Always } else { row.when })
}

/// When a call waits that is among the held ones.
pub fn hold_rule(mode: DurabilityMode, name: &str) -> HoldRule {
    match mode {
        DurabilityMode::Ordered if name.starts_with("rename") => HoldRule::Replaces,
        _ => HoldRule::Always,
    }
}

impl When {
    /// True for a call with these arguments.
    pub fn holds(&self, args: &[u64; 6]) -> bool {
        let low = |arg: Arg| args.get(usize::from(arg)).map_or(0, |arg| *arg as u32);
        match *self {
            Always => true,
            Any { arg, mask } => low(arg) & mask != 0,
            When::Without { arg, mask } => low(arg) & mask == 0,
            OneOf { arg, values } => values.contains(&low(arg)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ROWS;
    use super::*;

    #[test]
    fn every_held_call_is_in_the_table() {
        for flush in FLUSHES {
            assert!(
                ROWS.iter().any(|row| row.name == flush.name),
                "{}",
                flush.name
            );
        }
    }

    #[test]
    fn after_holds_nothing() {
        for row in ROWS {
            for abi in [Abi::X64, Abi::X32, Abi::I386] {
                assert_eq!(held_calls(DurabilityMode::After, abi, row.name), None);
            }
        }
    }

    #[test]
    fn sync_holds_whatever_ordered_holds() {
        for flush in FLUSHES {
            let mode = DurabilityMode::Sync;
            assert!(held_calls(mode, Abi::X64, flush.name).is_some());
        }
    }
}
