//! The states of a disk after a crash.
//!
//! In: what the disk was asked until the crash. Out: one of the contents that it may have then.
//!
//! - A write survives if a barrier that covers it has ended.
//! - Any subset of all other writes survives, if the disk may have stored them (see [`WriteBack`]).
//!   Each one survives whole, not at all, or torn at 512 bytes.
//! - Names and sizes are in a journal: a prefix of their changes survives.

use crate::crash::journal_disk::{DATA, DiskOp, LOG, ListedOp, put};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;

/// The unit that a disk stores whole or not at all.
pub const SECTOR: usize = 512;

/// When the kernel writes back data that no call makes durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteBack {
    /// Only by age: 30 s, during which the log was committed at least twice. The log itself may be
    /// written back at any time.
    ByAge,
    /// At any time.
    Anytime,
}

/// Numbers that look random.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

/// Where barriers began.
#[derive(Debug, Clone, Copy, Default)]
struct Barriers {
    /// The last one that has ended.
    ended: usize,
    /// The last one.
    last: usize,
}

impl Barriers {
    fn add(&mut self, begun: usize, ended: bool) {
        self.last = self.last.max(begun);
        if ended {
            self.ended = self.ended.max(begun);
        }
    }
}

/// The operations of a disk until a crash.
pub struct CrashPoint<'a> {
    ops: &'a [ListedOp],
    of_file: HashMap<u64, Barriers>,
    /// The barriers that cover names, by disk.
    of_names: HashMap<u64, Barriers>,
    /// Ops before this one are old enough to have been written back.
    aged: usize,
}

/// A file that survived.
#[derive(Debug, Clone, Default)]
pub struct SurvivingFile {
    pub inode: u64,
    pub bytes: Vec<u8>,
    /// When it was changed, in ns since 1970.
    pub changed: i64,
    /// When it was made. 0 if the file system does not say.
    pub birth: i64,
}

/// The files that survived, by disk and path.
pub type DiskImage = BTreeMap<(u64, OsString), SurvivingFile>;

impl<'a> CrashPoint<'a> {
    /// A crash after these operations.
    pub fn after(ops: &'a [ListedOp]) -> CrashPoint<'a> {
        let ended = ops.iter().filter_map(|listed| match listed.op {
            DiskOp::BarrierEnds { begun } => Some(begun),
            _ => None,
        });
        let ended: HashSet<usize> = ended.collect();
        let mut of_file: HashMap<u64, Barriers> = HashMap::new();
        let mut of_names: HashMap<u64, Barriers> = HashMap::new();
        // A flush of a directory is no commit of the log.
        let written: HashSet<u64> = ops
            .iter()
            .filter_map(|listed| match listed.op {
                DiskOp::Write { inode, .. } => Some(inode),
                _ => None,
            })
            .collect();
        let mut commits = Vec::new();
        for (at, listed) in ops.iter().enumerate() {
            let DiskOp::BarrierBegins { inode, names } = listed.op else {
                continue;
            };
            let over = ended.contains(&at);
            of_file.entry(inode).or_default().add(at, over);
            if names {
                of_names.entry(listed.disk).or_default().add(at, over);
            }
            if over && listed.disk == LOG && written.contains(&inode) {
                commits.push(at);
            }
        }
        // The first of two commits may have begun to collect records before an operation.
        let aged = commits.iter().rev().nth(1).copied().unwrap_or(0);
        CrashPoint {
            ops,
            of_file,
            of_names,
            aged,
        }
    }

    /// One of the contents that the disk may have.
    pub fn state(&self, write_back: WriteBack, dice: &mut Dice) -> DiskImage {
        let journal = [LOG, DATA].map(|disk| (disk, self.journal_end(disk, write_back, dice)));
        let mut names: BTreeMap<(u64, OsString), u64> = BTreeMap::new();
        let mut files: HashMap<u64, SurvivingFile> = HashMap::new();
        for (at, listed) in self.ops.iter().enumerate() {
            let in_journal = journal
                .iter()
                .any(|(disk, end)| *disk == listed.disk && at < *end);
            match &listed.op {
                DiskOp::Write {
                    inode,
                    offset,
                    bytes,
                } => {
                    let file = files.entry(*inode).or_default();
                    for (start, part) in self.surviving_parts(at, listed, write_back, dice) {
                        put(&mut file.bytes, *offset as usize + start, &bytes[part]);
                        file.changed = listed.time;
                    }
                }
                _ if !in_journal => {}
                DiskOp::Make {
                    parent,
                    name,
                    inode,
                    directory,
                } => {
                    if !directory {
                        names.insert((*parent, name.clone()), *inode);
                        files.entry(*inode).or_default().inode = *inode;
                    }
                }
                DiskOp::Remove { parent, name } => {
                    names.remove(&(*parent, name.clone()));
                }
                DiskOp::Rename { from, to } => {
                    if let Some(inode) = names.remove(from) {
                        names.insert(to.clone(), inode);
                    }
                }
                DiskOp::Resize { inode, size } => {
                    let file = files.entry(*inode).or_default();
                    file.bytes.resize(*size as usize, 0);
                    file.changed = listed.time;
                }
                DiskOp::BarrierBegins { .. } | DiskOp::BarrierEnds { .. } => {}
            }
        }
        names
            .into_iter()
            .map(|(name, inode)| (name, files.get(&inode).cloned().unwrap_or_default()))
            .collect()
    }

    /// The end of the surviving part of a disk's journal.
    fn journal_end(&self, disk: u64, write_back: WriteBack, dice: &mut Dice) -> usize {
        let barriers = self.of_names.get(&disk).copied().unwrap_or_default();
        let (sure, begun) = (barriers.ended, barriers.last);
        let most = match write_back {
            WriteBack::Anytime => self.ops.len(),
            WriteBack::ByAge if disk == LOG => self.ops.len(),
            WriteBack::ByAge => begun.max(self.aged),
        };
        sure + dice.below(most.max(sure) - sure + 1)
    }

    /// The parts of a write that survive: each its start in the file from the write's offset on,
    /// and its range of bytes.
    fn surviving_parts(
        &self,
        at: usize,
        listed: &ListedOp,
        write_back: WriteBack,
        dice: &mut Dice,
    ) -> Vec<(usize, std::ops::Range<usize>)> {
        let DiskOp::Write {
            inode,
            offset,
            bytes,
        } = &listed.op
        else {
            return Vec::new();
        };
        let barriers = self.of_file.get(inode).copied().unwrap_or_default();
        if barriers.ended > at {
            return vec![(0, 0..bytes.len())];
        }
        let written_back = match write_back {
            WriteBack::Anytime => true,
            WriteBack::ByAge => listed.disk == LOG || at < self.aged,
        };
        if !written_back && barriers.last <= at {
            return Vec::new();
        }
        match dice.below(3) {
            0 => Vec::new(),
            1 => vec![(0, 0..bytes.len())],
            _ => {
                let mut parts = Vec::new();
                let mut start = 0;
                while start < bytes.len() {
                    let sector_end = SECTOR - (*offset as usize + start) % SECTOR;
                    let end = bytes.len().min(start + sector_end);
                    if dice.below(2) == 0 {
                        parts.push((start, start..end));
                    }
                    start = end;
                }
                parts
            }
        }
    }
}
