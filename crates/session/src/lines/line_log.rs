//! The log of one line of a shell: a log like that of a command that `record` ran.
//!
//! The log shows the shell as `SHELL -c TEXT`, which begins with the shell's directory and
//! descriptors, and ends with the line's status.
//!
//! Invariants:
//!
//! - A failure to write never reaches the shell. The log then says so, if it can.
//! - The log is visible under its name only with its lock, so that no other process finishes it.

use super::policy::LinePolicy;
use super::process_lines::LineNumber;
use super::snapshot::ProcessSnapshot;
use super::splitting::set_header;
use crate::drain::undecoded::Undecoded;
use crate::part_lock::claimed_log;
use crate::{Error, clock, header};
use backstory_abi::{CallerIds, Chunk, op};
use backstory_eventlog::chunk::ChunkBuilder;
use backstory_eventlog::record::RecordBuilder;
use backstory_eventlog::run::{RunEnd, RunHeader, ShellLine};
use backstory_eventlog::{Error as LogError, Reason, Writer};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::PathBuf;

/// Where the logs of lines go, and what their headers have in common.
#[derive(Debug, Clone)]
pub(crate) struct LinePlan {
    /// The session's header.
    pub session: RunHeader,
    /// The directory of the logs.
    pub directory: PathBuf,
    /// Makes ids of runs.
    pub new_id: fn() -> String,
    /// Which lines are not recorded.
    pub policy: LinePolicy,
}

impl LinePlan {
    fn path(&self, id: &str, extension: &str) -> PathBuf {
        self.directory.join(format!("{id}.{extension}"))
    }

    /// An id that no run in the directory has.
    fn unused_id(&self) -> String {
        loop {
            let id = (self.new_id)();
            if !self.path(&id, "log").exists() && !self.path(&id, "log.part").exists() {
                return id;
            }
        }
    }

    /// The directory of the contents that a run has preserved.
    pub(crate) fn contents(&self, id: &str) -> PathBuf {
        self.path(id, "kept")
    }
}

/// The text of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LineText {
    /// It follows the line's end.
    Pending,
    /// It is known, or will never be (empty).
    Known(Vec<u8>),
    /// It is known, and only the line is recorded.
    Noise(Vec<u8>),
    /// The line is not to be recorded.
    Private,
}

impl LineText {
    /// The text, if it is known and may be recorded.
    fn known(&self) -> Option<&[u8]> {
        match self {
            LineText::Known(text) | LineText::Noise(text) => Some(text),
            LineText::Pending | LineText::Private => None,
        }
    }
}

/// The beginning of a line.
pub(crate) struct LineBeginning {
    pub number: LineNumber,
    /// Time-stamp counter.
    pub time: u64,
    pub shell: u32,
    pub text: LineText,
    pub snapshot: ProcessSnapshot,
    /// Operations of the session that were lost before.
    pub lost: u64,
}

/// The log of a line.
pub(crate) struct LineLog {
    id: String,
    part: PathBuf,
    log: PathBuf,
    writer: Writer,
    /// The lock that marks the log as being recorded.
    claim: File,
    beginning: LineBeginning,
    /// The file systems' clock at its beginning.
    quiet: i64,
    /// Next number of the chunks of each thread that were split.
    sequences: Sequences,
    /// Hashes of the environments that it has in full.
    pub environments: HashSet<u64>,
    undecoded: Undecoded,
    failed: Option<String>,
    /// Status and time of its end, and the time-stamp counter.
    pub ended: Option<(i32, i64, u64)>,
}

/// The next number of each thread's chunks in one log. Pieces of one chunk need different numbers.
#[derive(Debug, Default)]
pub(crate) struct Sequences(HashMap<(u64, u32), u32>);

impl Sequences {
    /// Gives a piece of a chunk the next number of its thread.
    pub(crate) fn number(&mut self, piece: &mut [u8]) {
        set_header(piece, |header| {
            let next = self.0.entry((header.epoch, header.tid)).or_default();
            header.seq = *next;
            *next = next.wrapping_add(1);
        });
    }
}

impl LineLog {
    /// Begins the log.
    ///
    /// # Errors
    ///
    /// The file cannot be created or written.
    pub(crate) fn begin(plan: &LinePlan, beginning: LineBeginning) -> Result<LineLog, Error> {
        let id = plan.unused_id();
        let head = line_header(plan, &id, &beginning);
        let part = plan.path(&id, "log.part");
        let (writer, claim) = claimed_log(&part, &head)?;
        Ok(LineLog {
            log: plan.path(&id, "log"),
            id,
            part,
            writer,
            claim,
            beginning,
            quiet: backstory_sys::clock::files(),
            sequences: Sequences::default(),
            environments: HashSet::new(),
            undecoded: Undecoded::default(),
            failed: None,
            ended: None,
        })
    }

    /// The id of its run.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The text of the line, as far as it is known.
    pub(crate) fn text(&mut self) -> &mut LineText {
        &mut self.beginning.text
    }

    fn note(&mut self, result: Result<(), LogError>) {
        if let Err(error) = result {
            self.failed.get_or_insert_with(|| error.to_string());
        }
    }

    /// Appends a chunk. With `renumber`, it is a piece of one.
    pub(crate) fn chunk(&mut self, bytes: &mut [u8], renumber: bool) {
        if renumber {
            self.sequences.number(bytes);
        }
        self.undecoded.look(bytes);
        let result = self.writer.chunk(bytes);
        self.note(result);
    }

    /// The header of a chunk of the supervisor's in this log.
    pub(crate) fn own_header(&self, time: u64) -> Chunk {
        Chunk {
            pid: std::process::id(),
            taken: time,
            ..Chunk::default()
        }
    }

    /// Ends the log and finalizes it. A private line leaves no file, and noise no operations.
    /// `lost` is the number of operations of the session that were lost until now.
    pub(crate) fn finish(mut self, plan: &LinePlan, lost: u64, reasons: &[Reason]) {
        if self.beginning.text == LineText::Private {
            // The directory exists only if a content was preserved.
            let _ = std::fs::remove_file(&self.part);
            let _ = std::fs::remove_dir_all(self.log.with_extension("kept"));
            return;
        }
        if matches!(self.beginning.text, LineText::Noise(_)) {
            self.drop_operations(plan);
        }
        for mut chunk in self.supervisors_records() {
            self.chunk(&mut chunk, true);
        }
        let clock = self.writer.clock(clock::point());
        self.note(clock);
        let lost = lost.saturating_sub(self.beginning.lost);
        let end = self.end(lost, reasons);
        if self.writer.end(&end).is_ok() {
            // After a failure the next command that may write the store finalizes the log.
            let _ = std::fs::rename(&self.part, &self.log);
        }
        drop(self.claim);
    }

    /// Begins the log again, without the operations of the line. The old log stays if that fails.
    fn drop_operations(&mut self, plan: &LinePlan) {
        let head = line_header(plan, &self.id, &self.beginning);
        let (writer, claim) = match claimed_log(&self.part, &head) {
            Ok(begun) => begun,
            Err(error) => {
                self.failed.get_or_insert_with(|| error.to_string());
                return;
            }
        };
        (self.writer, self.claim) = (writer, claim);
        (self.sequences, self.undecoded) = (Sequences::default(), Undecoded::default());
        // The directory exists only if a content was preserved.
        let _ = std::fs::remove_dir_all(self.log.with_extension("kept"));
    }

    fn end(&self, lost: u64, reasons: &[Reason]) -> RunEnd {
        let (status, at, _) = self.ended.unwrap_or((0, clock::now(), 0));
        let mut because: Vec<String> = reasons.iter().map(Reason::to_string).collect();
        because.extend(self.undecoded.reasons());
        if let Some(error) = self.failed.clone() {
            because.push(Reason::LogFailed { error }.to_string());
        }
        if lost > 0 {
            because.push(Reason::Lost { operations: lost }.to_string());
        }
        let text = self.beginning.text.known().map(<[u8]>::to_vec);
        if matches!(self.beginning.text, LineText::Noise(_)) {
            because.push(Reason::OnlyLine {}.to_string());
        }
        let targets = self.beginning.snapshot.descriptors.iter();
        let targets: Vec<Vec<u8>> = targets.map(|d| d.target.clone()).collect();
        RunEnd {
            exit: self.ended.map(|_| status),
            command_ended: at,
            ended: clock::now(),
            lost,
            incomplete_because: because,
            warnings: clock::was_set().iter().map(Reason::to_string).collect(),
            descriptor_files: header::files_now(&targets),
            quiet: clock::valid_reading(self.quiet),
            line_text: text,
            ..RunEnd::default()
        }
    }

    /// The records about the shell as the process of the line: its birth, its program, and its end.
    fn supervisors_records(&self) -> Vec<Vec<u8>> {
        let (shell, began) = (self.beginning.shell, self.beginning.time);
        let snapshot = &self.beginning.snapshot;
        let caller = CallerIds::of_process(shell);
        let words = self.words();
        let mut writer = OwnRecords {
            chunk: ChunkBuilder::new(self.own_header(began)),
            full: Vec::new(),
        };
        let mut builder = RecordBuilder::new();
        builder.start(op::BORN, began);
        builder.process(shell, std::process::id(), &snapshot.directory);
        writer.add(builder.finish());
        builder.start(op::ARGS, began);
        builder.program_arguments(shell, &words);
        writer.add(builder.finish());
        builder.start(op::EXEC, began);
        builder.program(shell, &snapshot.program, words.len());
        writer.add(builder.finish());
        for fd in &snapshot.close_on_exec {
            builder
                .start(op::CLOEXEC, began)
                .caller(caller)
                .fd(*fd)
                .arg(1)
                .result(0);
            writer.add(builder.finish());
        }
        if let Some((status, _, time)) = self.ended {
            builder
                .start(op::GONE, time)
                .caller(caller)
                .fd(shell as i32);
            builder.arg(wait_status(status)).aux(1).result(0);
            writer.add(builder.finish());
        }
        writer.full.push(writer.chunk.bytes().to_vec());
        writer.full
    }

    fn words(&self) -> Vec<Vec<u8>> {
        let text = self.beginning.text.known().unwrap_or_default();
        command(&self.beginning.snapshot.program, text)
    }
}

/// Records of the supervisor, in as many chunks as they need.
struct OwnRecords {
    chunk: ChunkBuilder,
    full: Vec<Vec<u8>>,
}

impl OwnRecords {
    fn add(&mut self, record: &[u8]) {
        if !self.chunk.push(record) {
            self.full.push(self.chunk.bytes().to_vec());
            self.chunk.restart();
            self.chunk.push(record);
        }
    }
}

/// The status as wait(2) gives it. A shell reports 128 and the number of a signal.
fn wait_status(status: i32) -> i32 {
    (status & 0xff) << 8
}

/// The command that does what the line does.
fn command(program: &[u8], text: &[u8]) -> Vec<Vec<u8>> {
    let mut words = vec![program.to_vec()];
    if !text.is_empty() {
        words.extend([b"-c".to_vec(), text.to_vec()]);
    }
    words
}

/// The header of a line's log.
fn line_header(plan: &LinePlan, id: &str, beginning: &LineBeginning) -> RunHeader {
    let (started, since_boot) = clock::both();
    let snapshot = &beginning.snapshot;
    let text = beginning.text.known().unwrap_or_default().to_vec();
    let descriptors = &snapshot.descriptors;
    RunHeader {
        id: id.to_owned(),
        name: None,
        repeats: None,
        command: command(&snapshot.program, &text),
        line: Some(ShellLine {
            session: plan.session.id.clone(),
            number: beginning.number,
            text,
            terminal: snapshot.terminal(),
        }),
        ssh_connection: None,
        cwd: snapshot.directory.clone(),
        descriptors: descriptors
            .iter()
            .map(|d| (d.fd, d.target.clone()))
            .collect(),
        descriptor_flags: descriptors.iter().map(|d| d.access).collect(),
        descriptor_files: descriptors.iter().map(|d| d.file).collect(),
        started,
        since_boot,
        arena: None,
        ..plan.session.clone()
    }
}
