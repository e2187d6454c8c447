//! With `--guard=auto`: finds programs that were executed without the filter, and whose recorder
//! never announced itself. The program file was replaced just before the execution, or the recorder
//! could not attach. Perhaps nothing that such a program did is recorded.
//!
//! Invariants:
//!
//! - Each execution with `EXEC_ANNOUNCED` is reported unless a recorder follows in its process. Too
//!   many processes are reported, too.
//! - A process that gets the process id of an ended one does not count as that one. It is known by
//!   its recorder, which started after a fork, or by the execution that its parent's chunk names.
//! - There are never many more entries than processes, however many have come and gone.
//!
//! Absent: the case that a later process has executed a second program before the chunk of its
//! parent names the first one.

use backstory_abi::{self as abi, op};
use backstory_eventlog::Reason;
use backstory_eventlog::chunk::{ChunkView, SkippedRecords};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::collections::{HashMap, HashSet};

/// Most processes that are remembered.
const PROCESSES: usize = 4 << 20;
/// Entries before any process is looked for.
const LEAST: usize = 4096;

/// The executions that wait for their recorder.
#[derive(Debug)]
pub(super) struct SilentPrograms {
    processes: HashMap<u32, Announcement>,
    /// At this many entries the ended processes are forgotten. Since the last time, at least as
    /// many have come as older ones had stayed. So each entry costs three looks at most.
    limit: usize,
    too_many: bool,
    /// A process was awaited, and another one has its process id by now.
    is_lost: bool,
}

impl Default for SilentPrograms {
    fn default() -> SilentPrograms {
        SilentPrograms {
            processes: HashMap::new(),
            limit: LEAST,
            too_many: false,
            is_lost: false,
        }
    }
}

/// The latest program with a process id, and whether its recorder is awaited.
#[derive(Debug, Default)]
struct Announcement {
    /// The latest start of a recorder, and its time.
    epoch: u64,
    started: u64,
    /// The time of the execution whose recorder is awaited, or which that start followed. 0 if it
    /// is unknown.
    executed: u64,
    /// A program was executed after that start.
    waits: bool,
    /// The parent, whose chunk may still name the execution before that start. 0 if none does.
    parent: u32,
    /// Since processes were last forgotten, a chunk has said something about this one. More chunks
    /// of it may follow, also after its end.
    is_new: bool,
}

impl Announcement {
    /// Notes the owner of a chunk. True if it is not the process that was awaited.
    fn starts(&mut self, head: &abi::Chunk, by_fork: bool) -> bool {
        if head.epoch < self.epoch && !self.waits && self.executed < head.taken {
            self.executed = 0; // this earlier start followed it
        }
        if head.epoch <= self.epoch {
            return false;
        }
        let (waited, is_followed) = (self.waits, self.waits && !by_fork);
        if !is_followed {
            self.executed = 0;
        }
        self.parent = if waited || by_fork { 0 } else { head.ppid };
        (self.epoch, self.started, self.waits) = (head.epoch, head.taken, false);
        waited && by_fork
    }

    /// Notes an execution from a chunk of this epoch. A child on its parent's memory executes only
    /// once. True if a process that was awaited is another one.
    fn executes(&mut self, epoch: u64, time: u64, is_child: bool) -> bool {
        let is_other = is_child && self.executed != 0 && self.executed < time;
        // The parent can be older than every process that has had the id of its child.
        if self.epoch > epoch && (!is_child || time < self.started) {
            self.parent = 0;
            return is_other;
        }
        let waited = std::mem::replace(&mut self.waits, true);
        self.executed = time;
        waited && is_other
    }
}

impl SilentPrograms {
    /// Examines a chunk.
    pub(super) fn look(&mut self, chunk: &[u8]) {
        let Some((head, view)) = ChunkView::new(chunk) else {
            return;
        };
        // The guard's own chunks have no epoch.
        if head.tid == 0 {
            return;
        }
        let pid = if head.host_pid == 0 {
            head.pid
        } else {
            head.host_pid
        };
        let by_fork = begins_after_fork(&view);
        let process = self.process(pid);
        let is_lost = process.is_some_and(|process| process.starts(&head, by_fork));
        self.is_lost |= is_lost;
        let mut at = abi::Chunk::SIZE;
        while let Some((found, record)) = view.next(at, &mut SkippedRecords::default()) {
            at = found + usize::from(record.size);
            if record.op == op::EXEC && record.aux & abi::EXEC_ANNOUNCED != 0 {
                self.execution(pid, head.epoch, &record);
            }
        }
    }

    /// Notes an execution from a chunk of this process.
    fn execution(&mut self, pid: u32, epoch: u64, record: &abi::Record) {
        if record.state == abi::DONE && record.result < 0 {
            return self.fails(record.time);
        }
        // The child of a vfork stores its process id before it executes.
        let is_child = record.flags & abi::F_CHILD != 0 && record.result > 0;
        let executes = if is_child { record.result as u32 } else { pid };
        let process = self.process(executes);
        let is_lost = process.is_some_and(|one| one.executes(epoch, record.time, is_child));
        self.is_lost |= is_lost;
    }

    /// Awaits nothing after an execution that was seen before it failed. A failed record does not
    /// name the child any more.
    fn fails(&mut self, time: u64) {
        let mut processes = self.processes.values_mut();
        if let Some(process) = processes.find(|process| process.executed == time) {
            (process.executed, process.waits) = (0, false);
        }
    }

    fn process(&mut self, pid: u32) -> Option<&mut Announcement> {
        if self.processes.len() >= self.limit {
            self.forget();
        }
        if self.processes.len() >= PROCESSES && !self.processes.contains_key(&pid) {
            self.too_many = true;
            return None;
        }
        let process = self.processes.entry(pid).or_default();
        process.is_new = true;
        Some(process)
    }

    /// Forgets the processes that have ended and wait for no recorder. Some stay whose execution a
    /// chunk of their parent may still name.
    fn forget(&mut self) {
        let (mut unnamed, mut older) = (0..LEAST, 0);
        let recorded: HashSet<u32> = self.processes.keys().copied().collect();
        self.processes.retain(|pid, process| {
            if std::mem::take(&mut process.is_new) {
                return true;
            }
            let parent = process.parent;
            let may_be_named = || recorded.contains(&parent) && exists(parent);
            let stays =
                process.waits || exists(*pid) || (may_be_named() && unnamed.next().is_some());
            older += usize::from(stays);
            stays
        });
        self.limit = self.processes.len() + LEAST.max(older);
    }

    /// The reason why the run is not complete. `None` if every recorder announced itself.
    pub(super) fn reason(&self) -> Option<String> {
        let silent =
            self.is_lost || self.too_many || self.processes.values().any(|process| process.waits);
        silent.then(|| Reason::undecoded(0, abi::OPAQUE_UNGUARDED.as_bytes()).to_string())
    }
}

/// True if the chunk is the first one of a process that was forked and has executed nothing.
fn begins_after_fork(view: &ChunkView<'_>) -> bool {
    let first = view.next(abi::Chunk::SIZE, &mut SkippedRecords::default());
    first.is_some_and(|(_, record)| record.op == op::START && record.aux == 1)
}

/// True if the process exists or has not been collected by its parent. A process that may not be
/// signalled exists, too.
fn exists(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstory_eventlog::chunk::ChunkBuilder;
    use backstory_eventlog::record::RecordBuilder;

    /// The beginning of a chunk that a process takes at a time.
    fn begun(pid: u32, ppid: u32, epoch: u64, taken: u64) -> ChunkBuilder {
        ChunkBuilder::new(abi::Chunk {
            magic: abi::CHUNK_MAGIC,
            pid,
            tid: pid,
            ppid,
            epoch,
            taken,
            ..abi::Chunk::default()
        })
    }

    /// A chunk of a process: executions by themselves (0) or by children, with a result.
    fn chunk(pid: u32, epoch: u64, executions: &[(u32, u32, i32)]) -> Vec<u8> {
        let mut chunk = begun(pid, 0, epoch, 10 * epoch);
        let mut record = RecordBuilder::new();
        for &(child, aux, result) in executions {
            record.start(op::EXEC, 10 * epoch + 1);
            record.aux(aux).string(b"/bin/true");
            if child != 0 {
                record.flags(abi::F_CHILD).says(child as i32);
            } else if result < 0 {
                record.result(result);
            }
            assert!(chunk.push(record.finish()));
        }
        chunk.bytes().to_vec()
    }

    /// A chunk of a process that was forked and has executed nothing.
    fn forked(pid: u32, epoch: u64) -> Vec<u8> {
        let mut chunk = begun(pid, 0, epoch, 10 * epoch);
        let mut record = RecordBuilder::new();
        record.start(op::START, 10 * epoch).aux(1).result(0);
        assert!(chunk.push(record.finish()));
        chunk.bytes().to_vec()
    }

    /// A chunk of process 6, the second that was recorded. Its children execute at these times. The
    /// number is that of the child, or the result of a failed execution.
    fn parent(executions: &[(u64, i32)]) -> Vec<u8> {
        let mut chunk = begun(6, 0, 2, 20);
        let mut record = RecordBuilder::new();
        for &(time, result) in executions {
            record.start(op::EXEC, time).aux(PLAIN).flags(abi::F_CHILD);
            match result < 0 {
                true => record.result(result),
                false => record.says(result),
            };
            assert!(chunk.push(record.string(b"/bin/true").finish()));
        }
        chunk.bytes().to_vec()
    }

    const PLAIN: u32 = abi::EXEC_ANNOUNCED;

    fn reported(chunks: &[Vec<u8>]) -> bool {
        let mut silent = SilentPrograms::default();
        chunks.iter().for_each(|chunk| silent.look(chunk));
        silent.reason().is_some()
    }

    #[test]
    fn a_program_without_the_filter_whose_recorder_stays_silent_is_reported() {
        assert!(reported(&[chunk(7, 1, &[(0, PLAIN, 0)])]));
        assert!(!reported(&[
            chunk(7, 1, &[(0, PLAIN, 0)]),
            chunk(7, 2, &[])
        ]));
        assert!(
            !reported(&[chunk(7, 2, &[]), chunk(7, 1, &[(0, PLAIN, 0)])]),
            "any order"
        );
        assert!(!reported(&[chunk(7, 1, &[(0, PLAIN, -libc::ENOENT)])]));
        assert!(!reported(&[chunk(7, 1, &[(0, 0, 0)])]), "the guard sees it");
    }

    #[test]
    fn processes_that_have_ended_are_forgotten_unless_their_recorder_is_awaited() {
        // No process has these numbers (`PID_MAX_LIMIT` in proc(5)).
        let ended = 5 << 20;
        let mut silent = SilentPrograms::default();
        silent.look(&chunk(ended, 1, &[(0, PLAIN, 0)]));
        silent.look(&chunk(std::process::id(), 1, &[]));
        for pid in 1..100_000 {
            silent.look(&chunk(ended + pid, 2, &[(0, PLAIN, 0)]));
            silent.look(&chunk(ended + pid, 3, &[]));
            assert!(silent.processes.len() <= 4 * LEAST);
        }
        assert!(silent.processes.contains_key(&std::process::id()));
        assert!(silent.reason().is_some());
        silent.look(&chunk(ended, 2, &[]));
        assert!(silent.reason().is_none());
    }

    #[test]
    fn the_ended_children_of_one_parent_are_forgotten() {
        let (ended, parent) = (5 << 20, std::process::id());
        let mut silent = SilentPrograms::default();
        for child in 0..200_000 {
            let time = u64::from(child) + 1;
            silent.look(begun(parent, 0, 1, 1).bytes());
            silent.look(begun(ended + child, parent, 1 + time, time).bytes());
            assert!(silent.processes.len() <= 4 * LEAST, "{child}");
        }
    }

    #[test]
    fn a_child_on_its_parents_memory_has_a_recorder_of_its_own() {
        let parent = chunk(7, 1, &[(8, PLAIN, 0)]);
        assert!(reported(std::slice::from_ref(&parent)));
        assert!(reported(&[parent.clone(), chunk(7, 2, &[])]));
        assert!(!reported(&[parent, chunk(8, 2, &[])]));
    }

    #[test]
    fn a_process_with_the_id_of_an_awaited_one_does_not_stand_for_it() {
        let silent = chunk(7, 1, &[(0, PLAIN, 0)]);
        let program = chunk(7, 4, &[]);
        let executes = chunk(7, 3, &[(0, PLAIN, 0)]);
        assert!(reported(&[
            silent.clone(),
            forked(7, 3),
            executes,
            program.clone()
        ]));
        // The parent's chunk names the later process before or after its recorder starts.
        let named = parent(&[(35, 7)]);
        assert!(reported(&[silent.clone(), named.clone(), program.clone()]));
        assert!(reported(&[silent, program, named]));
    }

    #[test]
    fn a_child_of_a_parent_that_began_before_its_process_id_was_last_used_is_awaited() {
        let former = chunk(7, 3, &[]);
        assert!(reported(&[former.clone(), parent(&[(35, 7)])]));
        let program = chunk(7, 4, &[]);
        assert!(!reported(&[
            former.clone(),
            parent(&[(35, 7)]),
            program.clone()
        ]));
        // The parent's chunk has two processes with this id, and comes last.
        assert!(!reported(&[former, program, parent(&[(25, 7), (35, 7)])]));
    }

    #[test]
    fn an_execution_that_was_seen_before_it_failed_is_not_awaited() {
        let unfinished = parent(&[(25, 7)]);
        assert!(reported(std::slice::from_ref(&unfinished)));
        assert!(!reported(&[unfinished, parent(&[(25, -libc::EACCES)])]));
        assert!(!reported(&[
            parent(&[(25, 7)]),
            parent(&[(25, -libc::EACCES), (26, 7)]),
            chunk(7, 3, &[]),
        ]));
    }

    #[test]
    fn an_ended_process_is_known_until_the_chunk_of_its_parent_names_it() {
        // No process has these numbers (`PID_MAX_LIMIT` in proc(5)).
        let (ended, own) = (5 << 20, std::process::id());
        let mut silent = SilentPrograms::default();
        silent.look(&chunk(own, 1, &[]));
        silent.look(begun(ended, own, 2, 20).bytes());
        for pid in 1..100_000 {
            silent.look(&chunk(ended + pid, 2, &[(0, PLAIN, 0)]));
            silent.look(&chunk(ended + pid, 3, &[]));
            assert!(silent.processes.len() <= 4 * LEAST);
        }
        silent.look(&chunk(own, 1, &[(ended, PLAIN, 0)]));
        assert!(silent.reason().is_none());
    }
}
