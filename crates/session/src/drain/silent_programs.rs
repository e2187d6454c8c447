//! With `--guard=auto`: finds programs that were executed without the filter, and whose recorder
//! never announced itself. The program file was replaced just before the execution, or the recorder
//! could not attach. Perhaps nothing that such a program did is recorded.
//!
//! Invariant: each execution with `EXEC_ANNOUNCED` is reported unless a recorder follows in its
//! process. Too many processes are reported, too. There are never many more entries than processes,
//! however many have come and gone.

use backstory_abi::{self as abi, op};
use backstory_eventlog::Reason;
use backstory_eventlog::chunk::{ChunkView, SkippedRecords};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::collections::HashMap;

/// Most processes that are remembered.
const PROCESSES: usize = 4 << 20;
/// Entries before any process is looked for.
const LEAST: usize = 4096;

/// The executions that wait for their recorder.
#[derive(Debug)]
pub(super) struct SilentPrograms {
    processes: HashMap<u32, Announcement>,
    /// At this many entries the ended processes are forgotten. At least half of the entries are
    /// then new, so each costs one look.
    limit: usize,
    too_many: bool,
}

impl Default for SilentPrograms {
    fn default() -> SilentPrograms {
        SilentPrograms {
            processes: HashMap::new(),
            limit: LEAST,
            too_many: false,
        }
    }
}

/// The latest program of a process, and whether its recorder is awaited.
#[derive(Debug, Default)]
struct Announcement {
    /// The latest start of its recorder.
    epoch: u64,
    /// A program was executed after that start.
    waits: bool,
    /// Since processes were last forgotten, a chunk has said something about this one. More chunks
    /// of it may follow, also after its end.
    is_new: bool,
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
        if let Some(process) = self.process(pid)
            && head.epoch > process.epoch
        {
            process.epoch = head.epoch;
            process.waits = false;
        }
        let mut at = abi::Chunk::SIZE;
        while let Some((found, record)) = view.next(at, &mut SkippedRecords::default()) {
            at = found + usize::from(record.size);
            let failed = record.state == abi::DONE && record.result < 0;
            let announced = record.op == op::EXEC && record.aux & abi::EXEC_ANNOUNCED != 0;
            if !announced || failed {
                continue;
            }
            // The child of a vfork stores its process id before it executes.
            let child = record.flags & abi::F_CHILD != 0 && record.result > 0;
            let executes = if child { record.result as u32 } else { pid };
            if let Some(process) = self.process(executes)
                && process.epoch <= head.epoch
            {
                process.waits = true;
            }
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

    /// Forgets the processes that have ended and wait for no recorder.
    fn forget(&mut self) {
        self.processes.retain(|pid, process| {
            let may_speak = std::mem::take(&mut process.is_new) || process.waits;
            may_speak || exists(*pid)
        });
        self.limit = LEAST.max(2 * self.processes.len());
    }

    /// The reason why the run is not complete. `None` if every recorder announced itself.
    pub(super) fn reason(&self) -> Option<String> {
        let silent = self.too_many || self.processes.values().any(|process| process.waits);
        silent.then(|| Reason::undecoded(0, abi::OPAQUE_UNGUARDED.as_bytes()).to_string())
    }
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

    /// A chunk of a process: executions by themselves (0) or by children, with a result.
    fn chunk(pid: u32, epoch: u64, executions: &[(u32, u32, i32)]) -> Vec<u8> {
        let head = abi::Chunk {
            magic: abi::CHUNK_MAGIC,
            pid,
            tid: pid,
            epoch,
            ..abi::Chunk::default()
        };
        let mut chunk = ChunkBuilder::new(head);
        let mut record = RecordBuilder::new();
        for &(child, aux, result) in executions {
            record.start(op::EXEC, 1).aux(aux).string(b"/bin/true");
            if child != 0 {
                record.flags(abi::F_CHILD).says(child as i32);
            } else if result < 0 {
                record.result(result);
            }
            assert!(chunk.push(record.finish()));
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
    fn a_child_on_its_parents_memory_has_a_recorder_of_its_own() {
        let parent = chunk(7, 1, &[(8, PLAIN, 0)]);
        assert!(reported(std::slice::from_ref(&parent)));
        assert!(reported(&[parent.clone(), chunk(7, 2, &[])]));
        assert!(!reported(&[parent, chunk(8, 2, &[])]));
    }
}
