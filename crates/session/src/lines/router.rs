//! Decides which log the records of each chunk belong to, and writes the logs of lines.
//!
//! In: the chunks that the drainer takes from the arena, and the shell's marks. Out: the logs of
//! lines, and the pieces of chunks that belong to the session's log.
//!
//! Invariants:
//!
//! - Every record goes into exactly one log. If the log of its line cannot be written or is
//!   finalized, that is the session's. Look-ups while a line is edited go into none.
//!   So do those of the shell's side threads: fish looks up the words of former lines at any time.
//! - When a line begins or ends, all earlier records of the shell have been routed. So the births
//!   of the shell's children are known before another line can begin.
//! - The shell waits for a finalized log for [`PATIENCE`] at most.

mod marks;

use super::environments::Environments;
use super::line_log::{LineLog, LinePlan, Sequences};
use super::mark::{MarkQueue, WaitingMark};
use super::process_lines::{EDITING, LineNumber, ProcessLines, SESSION};
use super::splitting::{for_each_record, split};
use crate::control::Control;
use backstory_abi::{self as abi, Chunk, op};
use backstory_eventlog::Reason;
use backstory_eventlog::record::RawRecord;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the shell waits at the end of a line for the log.
const PATIENCE: Duration = Duration::from_millis(2);

/// How much of a chunk was taken while its owner may still append to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TakenPart {
    /// The chunk's `taken`, `epoch` and `seq`: another owner has others.
    owner: (u64, u64, u32),
    /// Bytes from the chunk's start.
    bytes: usize,
}

/// The router of a session.
pub(crate) struct LineRouter {
    plan: LinePlan,
    /// Has the shell's process id, once there is one.
    control: &'static Control,
    marks: Arc<MarkQueue>,
    processes: ProcessLines,
    environments: Environments,
    /// Environments that the session's log has in full.
    session_environments: HashSet<u64>,
    sequences: Sequences,
    /// Lines whose logs are not finalized.
    lines: BTreeMap<LineNumber, LineLog>,
    /// The number of the latest line.
    latest: LineNumber,
    taken: HashMap<usize, TakenPart>,
    /// The mark whose maker waits for a finalized log, and since when.
    waiting: Option<(Instant, LineNumber, WaitingMark)>,
    /// The first error at the beginning of a line's log.
    failed: Option<String>,
}

impl LineRouter {
    /// A router without lines.
    pub(crate) fn new(
        plan: LinePlan,
        control: &'static Control,
        marks: Arc<MarkQueue>,
    ) -> LineRouter {
        LineRouter {
            plan,
            control,
            marks,
            processes: ProcessLines::default(),
            environments: Environments::default(),
            session_environments: HashSet::new(),
            sequences: Sequences::default(),
            lines: BTreeMap::new(),
            latest: SESSION,
            taken: HashMap::new(),
            waiting: None,
            failed: None,
        }
    }

    /// Why the log of a line could not be made, if that happened.
    pub(crate) fn failure(&self) -> Option<Reason> {
        let error = self.failed.clone()?;
        Some(Reason::LogFailed { error })
    }

    /// True if a thread of the shell owns the chunk.
    pub(crate) fn is_shells(&self, header: &Chunk) -> bool {
        let pid = if header.host_pid == 0 {
            header.pid
        } else {
            header.host_pid
        };
        header.tid != 0 && pid == self.processes.shell()
    }

    /// True if a thread of the shell owns the chunk that waits in a mark.
    pub(crate) fn is_main_threads(&self, header: &Chunk) -> bool {
        self.is_shells(header) && header.tid == header.pid
    }

    /// True if the shell waits, so that the next pass must not be far.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.waiting.is_some()
    }
}

/// Chunks.
impl LineRouter {
    /// Prepares for the present chunks, which are routed one after the other.
    pub(crate) fn meet(&mut self, owned: &[(usize, Chunk)]) {
        self.processes.meet(owned);
    }

    /// The offset from which on a chunk was not taken yet.
    pub(crate) fn taken_up_to(&self, index: usize, header: &Chunk) -> usize {
        let owner = (header.taken, header.epoch, header.seq);
        let part = self.taken.get(&index).filter(|part| part.owner == owner);
        part.map_or(Chunk::SIZE, |part| part.bytes)
    }

    /// Remembers that a chunk was taken up to an offset. `None`: the chunk is free.
    pub(crate) fn took(&mut self, index: usize, header: &Chunk, up_to: Option<usize>) {
        match up_to {
            Some(bytes) => {
                let owner = (header.taken, header.epoch, header.seq);
                self.taken.insert(index, TakenPart { owner, bytes });
            }
            None => drop(self.taken.remove(&index)),
        }
    }

    /// Appends the records of a chunk, or of a part of one, to the logs of their lines. Returns the
    /// pieces for the session's log.
    pub(crate) fn route(&mut self, chunk: &[u8]) -> Vec<Vec<u8>> {
        let Some(header) = Chunk::read(chunk) else {
            return vec![chunk.to_vec()];
        };
        let mixed = header.tid == 0 || self.is_shells(&header);
        let pieces = if mixed {
            split(chunk, |raw| self.line_of_record(&header, raw))
        } else {
            let line = self
                .processes
                .line_of_chunk(&header, begins_after_fork(chunk));
            for_each_record(chunk, |_, raw| self.learn(&header, raw));
            vec![(line, chunk.to_vec())]
        };
        let mut rest = Vec::new();
        for (line, piece) in pieces {
            self.deliver(line, piece, mixed, &mut rest);
        }
        rest
    }

    /// The line of a record of the shell or of the guard.
    fn line_of_record(&mut self, header: &Chunk, raw: &RawRecord<'_>) -> LineNumber {
        self.learn(header, raw);
        let time = raw.head.time;
        let pid = match (raw.head.op, raw.caller) {
            (op::BORN | op::GONE | op::HOLD, _) => raw.head.fd as u32,
            (_, Some(caller)) => caller.pid,
            (_, None) if header.tid == 0 => return SESSION,
            (_, None) => self.processes.shell(),
        };
        match self.processes.line_of(pid, time).unwrap_or(SESSION) {
            line if header.tid == 0 || !is_lookup(raw.head.op) => line,
            line if line != SESSION && header.tid == header.pid => line,
            _ => EDITING,
        }
    }

    /// Learns from a record about births and ends of processes.
    fn learn(&mut self, header: &Chunk, raw: &RawRecord<'_>) {
        // A process inside a namespace knows only the numbers that hold there. The guard reports
        // its children.
        let translated = header.host_pid == 0 || header.host_pid == header.pid;
        let own = raw.caller.map_or(header.pid, |caller| caller.pid);
        let (head, done) = (&raw.head, raw.head.state == abi::DONE);
        let child = head.result as u32;
        match head.op {
            op::FORK | op::VFORKED if done && head.result > 0 && translated => {
                self.processes.forked(child, own, head.time);
            }
            op::EXEC if head.flags & abi::F_CHILD != 0 && head.result > 0 && translated => {
                self.processes.met(child, own, head.time);
            }
            op::BORN => self
                .processes
                .met(head.fd as u32, head.arg as u32, head.time),
            op::GONE => self.processes.ended(head.fd as u32, head.time),
            op::EXIT if head.flags & abi::F_CHILD == 0 && header.tid != 0 => {
                let pid = match header.host_pid {
                    0 => own,
                    host => host,
                };
                self.processes.ended(pid, head.time);
            }
            _ => {}
        }
    }

    fn deliver(
        &mut self,
        line: LineNumber,
        mut piece: Vec<u8>,
        mixed: bool,
        rest: &mut Vec<Vec<u8>>,
    ) {
        let Some(header) = Chunk::read(&piece) else {
            return;
        };
        if line == EDITING {
            return;
        }
        let log = self.lines.get_mut(&line);
        let has = match &log {
            Some(_) => None,
            None => Some(&mut self.session_environments),
        };
        let mut missing = Vec::new();
        match (log, has) {
            (Some(log), _) => {
                for_each_record(&piece, |_, raw| {
                    let owner = owner(&header, raw);
                    let named = self.environments.look(owner, raw, &mut log.environments);
                    missing.extend(named);
                    if raw.head.op == op::KEPT && raw.head.result >= 0 {
                        move_content(&self.plan, log.id(), raw.head.arg);
                    }
                });
                for hash in missing {
                    let own = log.own_header(header.taken);
                    for mut chunk in self.environments.chunks(hash, own) {
                        log.chunk(&mut chunk, true);
                    }
                }
                log.chunk(&mut piece, mixed);
            }
            (None, Some(has)) => {
                for_each_record(&piece, |_, raw| {
                    missing.extend(self.environments.look(owner(&header, raw), raw, has));
                });
                for hash in missing {
                    let own = Chunk {
                        pid: std::process::id(),
                        taken: header.taken,
                        ..Chunk::default()
                    };
                    for mut chunk in self.environments.chunks(hash, own) {
                        self.sequences.number(&mut chunk);
                        rest.push(chunk);
                    }
                }
                if mixed {
                    self.sequences.number(&mut piece);
                }
                rest.push(piece);
            }
            (None, None) => {}
        }
    }
}

fn is_lookup(operation: u16) -> bool {
    matches!(operation, op::STAT | op::ACCESS | op::READLINK)
}

/// The thread that made a record.
fn owner(header: &Chunk, raw: &RawRecord<'_>) -> (u32, u32) {
    raw.caller
        .map_or((header.pid, header.tid), |caller| (caller.pid, caller.tid))
}

/// A content that was preserved in the session's directory belongs to the line that changed the
/// file. If it cannot be moved, it counts as not available.
fn move_content(plan: &LinePlan, id: &str, number: i32) {
    let (from, to) = (plan.contents(&plan.session.id), plan.contents(id));
    let name = number.to_string();
    let _ = std::fs::create_dir(&to);
    let _ = std::fs::rename(from.join(&name), to.join(&name));
}

/// True if the chunk's first record is the start of a recorder after a fork.
fn begins_after_fork(chunk: &[u8]) -> bool {
    let first = chunk.get(Chunk::SIZE..).and_then(abi::Record::read);
    first.is_some_and(|record| record.op == op::START && record.aux == 1)
}
