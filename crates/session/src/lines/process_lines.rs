//! Which line of a shell a process belongs to.
//!
//! In: marks of the shell, and what records and chunks say about births and ends of processes. Out:
//! the line of a process at a time.
//!
//! Invariants:
//!
//! - The shell itself belongs to the line that was active at the time of a record.
//! - Any other process belongs to the line of its parent at its birth, for its whole life. If the
//!   parent is unknown, its nearest known ancestor decides. The parent may be dead, and its chunk
//!   not read yet.
//! - The kernel gives a process number again. The newest birth before a time counts.
//!
//! Absent: reading chunks, and the processes' lives.

use backstory_abi::Chunk;
use backstory_sys::process_tree as tree;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The number of a line in its session, from 1.
pub(crate) type LineNumber = u64;

/// Stands for the shell's operations outside of its lines.
pub(crate) const SESSION: LineNumber = 0;

/// Stands for the shell's look-ups outside of its lines, which are not recorded. A shell looks up
/// the words that are being typed, also those of a line that turns out to be private.
pub(crate) const EDITING: LineNumber = LineNumber::MAX;

/// Most changes of the active line that are remembered. Older records of the shell are in the log
/// already, unless one of its threads has not filled a chunk for so many lines.
const CHANGES: usize = 1024;

/// Most generations of ancestors that are searched.
const GENERATIONS: usize = 16;

/// The birth of a process.
#[derive(Debug)]
struct Birth {
    /// Time-stamp counter.
    time: u64,
    line: LineNumber,
    /// Time-stamp counter of its end. The number may be given again afterwards.
    ended: Option<u64>,
}

impl Birth {
    /// True if an event at this time is one of a later process. Records of the end are often read
    /// before those of the process itself.
    fn is_over_at(&self, time: u64) -> bool {
        self.ended.is_some_and(|ended| time > ended)
    }
}

/// The lines of all processes of a session.
#[derive(Debug, Default)]
pub(crate) struct ProcessLines {
    /// The shell's process id. 0 until it is known.
    shell: u32,
    /// The line that became active at each time, in order of time.
    changes: Vec<(u64, LineNumber)>,
    births: HashMap<u32, Vec<Birth>>,
    /// The line of each recorder start.
    epochs: HashMap<u64, LineNumber>,
    /// Processes of each line that may live.
    members: BTreeMap<LineNumber, HashSet<u32>>,
    /// The parents that the headers of the present chunks name: by the process, and the time at
    /// which it took the chunk.
    parents: BTreeMap<(u32, u64), u32>,
}

impl ProcessLines {
    /// Sets the shell's process id.
    pub(crate) fn set_shell(&mut self, shell: u32) {
        self.shell = shell;
    }

    /// The shell's process id; 0 if it is unknown.
    pub(crate) fn shell(&self) -> u32 {
        self.shell
    }

    /// From this time on the line is active.
    pub(crate) fn activate(&mut self, time: u64, line: LineNumber) {
        if self.changes.len() == CHANGES {
            self.changes.drain(..CHANGES / 2);
        }
        self.changes.push((time, line));
    }

    fn active_at(&self, time: u64) -> LineNumber {
        let after = self.changes.partition_point(|change| change.0 <= time);
        after
            .checked_sub(1)
            .map_or(SESSION, |at| self.changes[at].1)
    }

    /// The line of a process at a time. `None` if no birth of it is known.
    pub(crate) fn line_of(&self, pid: u32, time: u64) -> Option<LineNumber> {
        if pid == self.shell && pid != 0 {
            return Some(self.active_at(time));
        }
        let births = self.births.get(&pid)?;
        let newest = births.iter().rfind(|birth| birth.time <= time);
        newest.or(births.first()).map(|birth| birth.line)
    }

    /// The parent has made a process: its fork, by the parent's own record.
    pub(crate) fn forked(&mut self, pid: u32, parent: u32, time: u64) {
        let line = self.line_of(parent, time).unwrap_or(SESSION);
        self.add(pid, time, line, true);
    }

    /// A process was met for the first time. Its parent's own record is more exact about the time.
    pub(crate) fn met(&mut self, pid: u32, parent: u32, time: u64) {
        let line = self.line_at_or_above(parent, time).unwrap_or(SESSION);
        self.add(pid, time, line, false);
    }

    /// Remembers the parents of the processes that own the present chunks.
    pub(crate) fn meet(&mut self, owned: &[(usize, Chunk)]) {
        // A number of another pid namespace means nothing here.
        let own = owned.iter().map(|(_, header)| header);
        let own = own.filter(|header| header.tid != 0 && header.host_pid == 0);
        let parents = own.map(|header| ((header.pid, header.taken), header.ppid));
        self.parents = parents.collect();
    }

    /// The parent of a process by its chunk, or by `/proc` while the process lives.
    fn parent(&self, pid: u32, time: u64) -> Option<u32> {
        let taken = self.parents.range((pid, 0)..=(pid, time)).next_back();
        let parent = taken.map(|(_, parent)| *parent);
        parent
            .or_else(|| tree::parent(pid))
            .filter(|parent| *parent > 1)
    }

    /// The line of a process, or else that of its nearest ancestor with a known one. A parent that
    /// executed nothing is unknown as long as its own parent's records are not read.
    fn line_at_or_above(&self, pid: u32, time: u64) -> Option<LineNumber> {
        let above = |pid: &u32| self.parent(*pid, time);
        let mut chain = std::iter::successors(Some(pid), above).take(GENERATIONS);
        chain.find_map(|pid| self.line_of(pid, time))
    }

    /// Adds a birth, unless it is known. `exact` says that the time is that of the fork.
    fn add(&mut self, pid: u32, time: u64, line: LineNumber, exact: bool) {
        if pid == 0 || pid == self.shell {
            return;
        }
        let births = self.births.entry(pid).or_default();
        match births.last_mut().filter(|birth| !birth.is_over_at(time)) {
            Some(known) if !exact => {
                known.time = known.time.min(time);
                return;
            }
            // It was met before its parent's record was read.
            Some(known) if known.time >= time => {
                let before = std::mem::replace(&mut known.line, line);
                known.time = time;
                if let Some(members) = self.members.get_mut(&before) {
                    members.remove(&pid);
                }
            }
            _ => births.push(Birth {
                time,
                line,
                ended: None,
            }),
        }
        if line != SESSION {
            self.members.entry(line).or_default().insert(pid);
        }
    }

    /// A process has ended.
    pub(crate) fn ended(&mut self, pid: u32, time: u64) {
        let newest = self.births.get_mut(&pid).and_then(|all| all.last_mut());
        if let Some(birth) = newest.filter(|birth| birth.time <= time) {
            birth.ended.get_or_insert(time);
        }
    }

    /// The line of a thread's chunk, for a process other than the shell. `forked` says that the
    /// chunk begins with the start of a recorder after a fork.
    pub(crate) fn line_of_chunk(&mut self, header: &Chunk, forked: bool) -> LineNumber {
        if let Some(&line) = self.epochs.get(&header.epoch) {
            return line;
        }
        let (pid, parent) = match header.host_pid {
            0 => (header.pid, Some(header.ppid)),
            // The header has its parent's number inside the namespace. The guard has met the
            // process, and knows its parent.
            host => (host, None),
        };
        let known = self.births.get(&pid).and_then(|all| all.last());
        let is_new = known.is_none_or(|birth| forked && birth.is_over_at(header.taken));
        if let (true, Some(parent)) = (is_new, parent) {
            self.met(pid, parent, header.taken);
        }
        let line = self.line_of(pid, header.taken).unwrap_or(SESSION);
        self.epochs.insert(header.epoch, line);
        line
    }

    /// The processes of a line for which `lives` is true, and how many there were. Others are
    /// forgotten as its members.
    pub(crate) fn living(&mut self, line: LineNumber, lives: impl Fn(u32) -> bool) -> usize {
        let Some(members) = self.members.get_mut(&line) else {
            return 0;
        };
        members.retain(|pid| lives(*pid));
        members.len()
    }

    /// Forgets a line whose log is finalized, with all births in it.
    pub(crate) fn forget(&mut self, line: LineNumber) {
        self.members.remove(&line);
        self.epochs.retain(|_, of| *of != line);
        self.births.retain(|_, births| {
            births.retain(|birth| birth.line != line);
            !births.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHELL: u32 = 100;

    /// A shell with line 1 from 10 to 20 and line 2 from 30 on.
    fn session() -> ProcessLines {
        let mut lines = ProcessLines::default();
        lines.set_shell(SHELL);
        lines.activate(10, 1);
        lines.activate(20, SESSION);
        lines.activate(30, 2);
        lines
    }

    fn chunk(pid: u32, ppid: u32, taken: u64, epoch: u64) -> Chunk {
        Chunk {
            pid,
            ppid,
            taken,
            epoch,
            ..Chunk::default()
        }
    }

    #[test]
    fn a_child_of_the_shell_belongs_to_the_line_of_its_fork_however_late_it_is_met() {
        let mut lines = session();
        lines.forked(7, SHELL, 15);
        assert_eq!(lines.line_of_chunk(&chunk(7, SHELL, 35, 3), true), 1);
        lines.met(8, 7, 36);
        assert_eq!(lines.line_of(8, 36), Some(1), "its child, too");
    }

    #[test]
    fn a_fork_corrects_the_line_of_a_child_that_was_met_before() {
        let mut lines = session();
        lines.met(7, SHELL, 31);
        assert_eq!(lines.line_of(7, 31), Some(2));
        lines.forked(7, SHELL, 15);
        assert_eq!(lines.line_of(7, 31), Some(1));
        assert_eq!(lines.living(2, |_| true), 0, "it is no member of line 2");
    }

    #[test]
    fn a_number_that_is_given_again_belongs_to_the_newest_birth() {
        let mut lines = session();
        lines.forked(7, SHELL, 15);
        lines.ended(7, 18);
        lines.forked(7, SHELL, 32);
        assert_eq!(lines.line_of(7, 16), Some(1));
        assert_eq!(lines.line_of(7, 33), Some(2));
    }

    #[test]
    fn a_chunk_tells_of_a_birth_that_no_record_told() {
        let mut lines = session();
        assert_eq!(lines.line_of_chunk(&chunk(7, SHELL, 31, 3), true), 2);
        lines.ended(7, 35);
        lines.activate(40, 3);
        assert_eq!(lines.line_of_chunk(&chunk(7, SHELL, 41, 4), true), 3);
        assert_eq!(
            lines.line_of_chunk(&chunk(7, 1, 42, 3), false),
            2,
            "the first process has another recorder start"
        );
    }

    #[test]
    fn a_chunk_that_is_read_after_the_end_of_its_process_belongs_to_its_line() {
        let mut lines = session();
        lines.forked(7, SHELL, 15);
        lines.ended(7, 50);
        lines.met(7, 1, 20);
        assert_eq!(lines.line_of_chunk(&chunk(7, SHELL, 31, 3), true), 1);
    }

    #[test]
    fn an_orphan_stays_in_its_line() {
        let mut lines = session();
        lines.forked(7, SHELL, 15);
        lines.forked(8, 7, 16);
        assert_eq!(lines.line_of_chunk(&chunk(8, 1, 33, 5), false), 1);
    }

    #[test]
    fn a_child_of_an_unknown_process_below_the_shell_belongs_to_the_shells_line() {
        // This process stands for the parent, and its own parent for the shell.
        let (unknown, shell) = (std::process::id(), std::os::unix::process::parent_id());
        let mut lines = session();
        lines.set_shell(shell);
        lines.met(u32::MAX, unknown, 33);
        assert_eq!(lines.line_of(u32::MAX, 33), Some(2));
    }

    #[test]
    fn a_child_of_a_dead_process_whose_chunk_is_not_read_yet_belongs_to_the_line_of_both() {
        let mut lines = session();
        // No processes have such numbers.
        let (parent, child) = (u32::MAX - 1, u32::MAX);
        lines.meet(
            &[
                (0, chunk(child, parent, 33, 6)),
                (1, chunk(parent, SHELL, 31, 5)),
            ]
            .map(|(index, header)| {
                (
                    index,
                    Chunk {
                        tid: header.pid,
                        ..header
                    },
                )
            }),
        );
        assert_eq!(lines.line_of_chunk(&chunk(child, parent, 33, 6), false), 2);
        assert_eq!(lines.living(2, |_| true), 1, "the line waits for it");
    }

    #[test]
    fn a_process_of_an_unknown_parent_belongs_to_the_session() {
        let mut lines = session();
        assert_eq!(lines.line_of_chunk(&chunk(9, 55, 33, 5), false), SESSION);
    }

    #[test]
    fn a_finalized_line_is_forgotten() {
        let mut lines = session();
        lines.forked(7, SHELL, 15);
        assert_eq!(lines.living(1, |pid| pid == 7), 1);
        lines.forget(1);
        assert_eq!(lines.line_of(7, 16), None);
        assert_eq!(lines.living(1, |_| true), 0);
    }
}
