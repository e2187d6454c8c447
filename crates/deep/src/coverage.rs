//! Which programs of a run were recorded deeply, and from which something is missing.
//!
//! Reading it costs one or two chunks of each thread, unless records were lost.

use crate::log::{DeepLog, DeepProcess};
use backstory_abi::deep;

/// A program in a process that has a deep stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeepProgram {
    /// The process.
    pub process: DeepProcess,
    /// The program as it was executed. `None` in a child by `fork`, which runs its parent's.
    pub program: Option<Vec<u8>>,
    /// Time-stamp counter when its stream began.
    pub began: u64,
    /// True if nothing is missing: the process is deep from its beginning to its end.
    pub is_whole: bool,
    /// True if its last records may be missing, because the log is cut or damaged.
    pub lacks_end: bool,
}

impl DeepLog {
    /// The programs that were recorded deeply, in the order of their beginning.
    pub fn programs(&self) -> Vec<DeepProgram> {
        let lost = self.lacks_because().is_some();
        let lacks_ends = self.damage().lacks_ends();
        let programs = self.processes().iter().map(|process| {
            let begin = self
                .thread_calls(process.epoch, process.own_pid)
                .next()
                .filter(|call| call.number == deep::BEGIN);
            let program = begin.as_ref().and_then(|call| call.section(deep::PATH, 4));
            let tids = process.tids.iter();
            let whole = |tid: &u32| {
                self.has_all_chunks(process.epoch, *tid)
                    && !self.ends_shallow(process.epoch, *tid)
                    && !(lost && self.has_gap(process.epoch, *tid))
            };
            // Records that were lost at the end leave no gap behind them. A thread besides the
            // first one has no last record.
            let is_alone = process.tids.len() == 1;
            let has_exited = || self.has_exited(process.epoch, process.own_pid);
            let ended = !lost || has_exited() && (is_alone || !lacks_ends);
            DeepProgram {
                process: process.clone(),
                program: program.map(<[u8]>::to_vec),
                began: begin.as_ref().map_or(0, |call| call.time),
                is_whole: begin.is_some() && ended && tids.clone().all(whole),
                lacks_end: lacks_ends && !ended,
            }
        });
        programs.collect()
    }

    /// Why records can be missing without a trace in the stream of their thread. `None`: none are.
    pub fn lacks_because(&self) -> Option<String> {
        let damage = self.damage();
        let end = self.end().filter(|_| !damage.lacks_ends());
        let Some(end) = end else {
            return damage.words();
        };
        let lost = (end.records_lost > 0).then(|| format!("{} records are lost", end.records_lost));
        end.shallow_because.clone().or(lost)
    }

    fn ends_shallow(&self, epoch: u64, tid: u32) -> bool {
        let last = self.last_chunk_calls(epoch, tid).last();
        last.is_some_and(|call| call.number == deep::SHALLOW)
    }

    fn has_exited(&self, epoch: u64, tid: u32) -> bool {
        const EXIT_GROUP: u16 = 231;
        let mut last = self.last_chunk_calls(epoch, tid);
        last.any(|call| call.number == EXIT_GROUP)
    }

    fn has_gap(&self, epoch: u64, tid: u32) -> bool {
        self.thread_calls(epoch, tid)
            .any(|call| call.number == deep::GAP)
    }
}
