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

use super::environments::Environments;
use super::line_log::{LineBeginning, LineLog, LinePlan, LineText, Sequences};
use super::mark::{HOOK_OPENS, LineMark, MarkQueue, WaitingMark};
use super::policy::LineVerdict;
use super::process_lines::{EDITING, LineNumber, ProcessLines, SESSION};
use super::snapshot::ProcessSnapshot;
use super::splitting::{for_each_record, split};
use crate::clock;
use crate::control::Control;
use backstory_abi::{self as abi, Chunk, op};
use backstory_eventlog::Reason;
use backstory_eventlog::record::RawRecord;
use backstory_sys as sys;
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

/// Marks.
impl LineRouter {
    /// The next mark of the shell.
    pub(crate) fn next_mark(&mut self) -> Option<WaitingMark> {
        // After the shell's end, its last records still have to be attributed.
        if let Some(shell) = self.control.command_pid() {
            self.processes.set_shell(shell as u32);
        }
        self.marks.pop()
    }

    /// Changes the active line as a mark says. `shells` is the part of the shell's own chunk that
    /// was not taken yet. Its records are routed afterwards.
    pub(crate) fn turn(&mut self, mark: &WaitingMark, shells: &[u8]) {
        match mark.mark {
            LineMark::Begin(_) => self.processes.activate(mark.time, self.latest + 1),
            LineMark::End(_) => self.processes.activate(mark.time, SESSION),
            LineMark::HookEnd(_) => {
                let mut time = mark.time;
                for_each_record(shells, |_, raw| {
                    if raw.head.op == op::OPEN && raw.strings()[0] == HOOK_OPENS {
                        time = raw.head.time;
                    }
                });
                self.processes.activate(time, SESSION);
            }
            LineMark::Text(_) | LineMark::Private => {}
        }
    }

    /// Does what a mark says, after all records before it were routed. `lost` is the number of
    /// operations of the session that were lost so far.
    pub(crate) fn follow(&mut self, mut waiting: WaitingMark, lost: u64) {
        match std::mem::replace(&mut waiting.mark, LineMark::Private) {
            LineMark::Begin(text) => self.begin(waiting, text, lost),
            LineMark::End(status) => {
                self.end(status, waiting.time);
                self.waiting = Some((Instant::now(), self.latest, waiting));
            }
            LineMark::HookEnd(status) => self.end(status, waiting.time),
            LineMark::Text(text) => self.complete(self.judged(text), waiting),
            LineMark::Private => self.complete(LineText::Private, waiting),
        }
    }

    fn begin(&mut self, waiting: WaitingMark, text: Option<Vec<u8>>, lost: u64) {
        self.give_up_waiting_for_text();
        self.latest += 1;
        let shell = self.processes.shell();
        let snapshot = ProcessSnapshot::of(shell);
        let time = waiting.time;
        // The line itself may be one that pauses or resumes.
        let excluded = self.plan.policy.excludes(&snapshot.directory);
        drop(waiting); // the shell goes on
        let text = match excluded {
            true => LineText::Private,
            false => text.map_or(LineText::Pending, |text| self.judged(text)),
        };
        let beginning = LineBeginning {
            number: self.latest,
            time,
            shell,
            text,
            snapshot,
            lost,
        };
        match LineLog::begin(&self.plan, beginning) {
            Ok(log) => drop(self.lines.insert(self.latest, log)),
            Err(error) => {
                self.failed.get_or_insert_with(|| error.to_string());
            }
        }
    }

    /// The text of a line, by the user's policy.
    fn judged(&self, text: Vec<u8>) -> LineText {
        match self.plan.policy.judge(&text) {
            LineVerdict::Private => LineText::Private,
            LineVerdict::OnlyLine => LineText::Noise(text),
            LineVerdict::Whole => LineText::Known(text),
        }
    }

    /// The line before did not say how it ended, or what its text was, and never will.
    fn give_up_waiting_for_text(&mut self) {
        if let Some(log) = self.lines.get_mut(&self.latest) {
            log.ended
                .get_or_insert((0, clock::now(), sys::clock::counter()));
            if *log.text() == LineText::Pending {
                *log.text() = LineText::Known(Vec::new());
            }
        }
    }

    fn end(&mut self, status: i32, time: u64) {
        // A shell shows a prompt again without having run a line.
        if let Some(log) = self.lines.get_mut(&self.latest) {
            log.ended.get_or_insert((status, clock::now(), time));
        }
    }

    fn complete(&mut self, text: LineText, waiting: WaitingMark) {
        if let Some(log) = self.lines.get_mut(&self.latest)
            && *log.text() == LineText::Pending
        {
            *log.text() = text;
            self.waiting = Some((Instant::now(), self.latest, waiting));
        }
    }

    /// The lines that have ended and of which no process lives. A pass must follow, so that the
    /// records of all their processes are in their logs.
    pub(crate) fn ready(&mut self) -> Vec<LineNumber> {
        let ended = self.lines.iter_mut().filter_map(|(line, log)| {
            let over = log.ended.is_some() && *log.text() != LineText::Pending;
            over.then_some(*line)
        });
        let ended: Vec<LineNumber> = ended.collect();
        let lives = |pid: u32| sys::thread_exists(pid as i32, pid as i32);
        ended
            .into_iter()
            .filter(|line| self.processes.living(*line, lives) == 0)
            .collect()
    }

    /// Finalizes the logs of lines, unless the pass has found more processes. Lets the shell go on
    /// that waits for one of them, or has waited long enough.
    pub(crate) fn finalize(&mut self, ready: Vec<LineNumber>, lost: u64) {
        for line in ready {
            if self.processes.living(line, |_| true) > 0 {
                continue;
            }
            if let Some(log) = self.lines.remove(&line) {
                log.finish(&self.plan, lost, &[]);
            }
            self.processes.forget(line);
        }
        let goes_on = self.waiting.as_ref().is_some_and(|(since, line, _)| {
            !self.lines.contains_key(line) || since.elapsed() >= PATIENCE
        });
        if goes_on {
            self.waiting = None;
        }
    }

    /// Finalizes all lines, because the session ends. The shell has ended with this status. The
    /// `reasons` concern all lines that are not over.
    pub(crate) fn finalize_all(&mut self, status: Option<i32>, lost: u64, reasons: &[Reason]) {
        for (_, mut log) in std::mem::take(&mut self.lines) {
            let now = (status.unwrap_or(0), clock::now(), sys::clock::counter());
            let over = log.ended.is_some();
            log.ended.get_or_insert(now);
            if *log.text() == LineText::Pending {
                *log.text() = LineText::Known(Vec::new());
            }
            log.finish(&self.plan, lost, if over { &[] } else { reasons });
        }
        self.waiting = None;
        while self.marks.pop().is_some() {}
    }
}
