//! Logs of auditd: `/var/log/audit/audit.log`, or what `ausearch --raw` prints.
//!
//! | module | what it does |
//! | --- | --- |
//! | `record` | splits a line: kind, time, serial number, fields |
//! | `event` | joins the records of one system call |
//! | `queue` | orders events whose records are interleaved |
//! | `arguments` | makes a call of an event, with its paths |
//! | `machine`, `programs` | the processes of the log, and their programs |
//! | `gaps` | says what the log does not hold |
//!
//! The kernel logs a call when it returns. So a child of `vfork` is met before the call that made
//! it. `ppid` leads to its parent then, as it does where the rules select no forks.
//!
//! The log is that of a machine. A run has one command if all of its processes descend from one.

mod arguments;
mod event;
mod gaps;
mod machine;
mod programs;
mod queue;
mod record;

use crate::beginning::has_line;
use crate::lines::{LineFile, LogLine};
use crate::{Error, Findings, ImportFormat, ImportJob, RecordLog};
use backstory_ordering::SmallSort;
use machine::AuditedMachine;
use queue::EventQueue;
use record::AuditRecord;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A log of another format is given up after this many lines.
const PATIENCE: u64 = 1_000;
/// auditd logs a call within this time, in ns.
const DELAY: i64 = 60_000_000_000;
const EXPECTED: &str = "a record such as `type=SYSCALL msg=audit(1700000000.123:45): ...` \
                        (ausearch --raw)";

/// `auditd`
pub(crate) struct AuditFormat;

impl ImportFormat for AuditFormat {
    fn name(&self) -> &'static str {
        "auditd"
    }

    fn about(&self) -> &'static str {
        "logs of auditd: audit.log and its rotated files, or what `ausearch --raw` prints"
    }

    fn is_like(&self, beginning: &[u8]) -> bool {
        has_line(beginning, |line| AuditRecord::parse(line).is_some())
    }

    fn read(
        &self,
        job: &ImportJob<'_>,
        known: Option<&Findings>,
        records: &mut RecordLog,
    ) -> Result<Findings, Error> {
        let root = job.root.as_ref();
        let root = root.map(|root| root.as_os_str().as_bytes().to_vec());
        let mut reader = LogReader {
            machine: AuditedMachine::new(records, known, root),
            queue: EventQueue::default(),
            node: None,
        };
        for file in in_order(job)? {
            reader.file(job, file)?;
        }
        while let Some(event) = reader.queue.next(true) {
            reader.machine.event(event);
        }
        if reader.machine.gaps.events == 0 {
            return Err(reader.other_format(job));
        }
        let changed = job.files.changed();
        let mut found = reader.machine.end();
        let born_here = |born: i64| born <= found.started + DELAY;
        let written_here = (found.ended - DELAY..=found.ended + DELAY).contains(&changed);
        found.is_of_this_machine = written_here && job.files.born().is_some_and(born_here);
        Ok(known.cloned().unwrap_or(found))
    }
}

/// The files in the order of their first records: auditd rotates its log.
fn in_order(job: &ImportJob<'_>) -> Result<Vec<usize>, Error> {
    let mut all = Vec::new();
    for at in 0..job.files.files.len() {
        let (mut file, mut line) = (LineFile::open(job.files, at)?, LogLine::default());
        let mut first = None;
        while first.is_none() && line.number < PATIENCE && file.next(&mut line)? > 0 {
            first = AuditRecord::parse(&line.bytes).map(|record| record.time);
        }
        all.push((first.unwrap_or(i64::MAX), at));
    }
    all.sort_small();
    Ok(all.into_iter().map(|(_, at)| at).collect())
}

/// Reads the lines of all files.
struct LogReader<'a> {
    machine: AuditedMachine<'a>,
    queue: EventQueue,
    /// The machine that the records name.
    node: Option<Vec<u8>>,
}

impl LogReader<'_> {
    fn file(&mut self, job: &ImportJob<'_>, at: usize) -> Result<(), Error> {
        let (mut file, mut line) = (LineFile::open(job.files, at)?, LogLine::default());
        loop {
            let read = file.next(&mut line)?;
            if read == 0 || self.machine.has_failed() {
                return Ok(());
            }
            (job.done)(read);
            let gaps = &mut self.machine.gaps;
            gaps.cut_lines += usize::from(line.is_cut);
            gaps.is_cut_off |= line.is_last;
            if line.is_cut || is_of_ausearch(&line.bytes) {
                continue;
            }
            match AuditRecord::parse(&line.bytes) {
                Some(record) => self.record(&record, &job.files.files[at].path)?,
                None => {
                    gaps.foreign += 1;
                    gaps.first_foreign.get_or_insert((at, line.number));
                }
            }
            let gaps = &self.machine.gaps;
            if gaps.records == 0 && gaps.foreign >= PATIENCE as usize {
                return Ok(());
            }
        }
    }

    fn record(&mut self, record: &AuditRecord<'_>, path: &Path) -> Result<(), Error> {
        self.machine.gaps.records += 1;
        if let Some(node) = record.node {
            let first = self.node.get_or_insert_with(|| node.to_vec());
            if first != node {
                return Err(Error::NotOfOneRun {
                    path: path.to_owned(),
                    why: "the log has records of several machines: select those of one \
                          (ausearch --raw --node NAME)",
                });
            }
        }
        self.queue.add(record);
        while let Some(event) = self.queue.next(false) {
            self.machine.event(event);
        }
        Ok(())
    }

    fn other_format(&self, job: &ImportJob<'_>) -> Error {
        let gaps = &self.machine.gaps;
        let (file, line) = gaps.first_foreign.unwrap_or((0, 1));
        let path = job.files.files.get(file).map(|file| file.path.clone());
        Error::OtherFormat {
            path: path.unwrap_or_default(),
            tool: "auditd",
            line,
            column: 1,
            expected: match gaps.records {
                0 => EXPECTED,
                _ => "a record of a system call (type=SYSCALL)",
            },
        }
    }
}

/// The lines that `ausearch` without `--raw` prints between events.
fn is_of_ausearch(line: &[u8]) -> bool {
    line.is_empty() || line == b"----" || line.starts_with(b"time->")
}
