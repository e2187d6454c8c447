//! A format, and the facts that a log of it gives.

use crate::{Error, LogFile, LogFiles, ProcessIds, RecordLog};
use backstory_eventlog::Reason;
use backstory_eventlog::event::Time;
use backstory_eventlog::job_rank::JobRank;
use std::path::PathBuf;

/// A log format of another tool.
pub trait ImportFormat: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// One line about it.
    fn about(&self) -> &'static str;

    /// A script for the tool, which writes logs of this format.
    fn script(&self) -> Option<&'static str> {
        None
    }

    /// True if a file begins as one of this format does. Messages about files that another format
    /// refused use it.
    fn is_like(&self, _beginning: &[u8]) -> bool {
        false
    }

    /// True if the beginning of a log is a log, up to the end of any line. Then `import --pipe`
    /// shows it before it has ended.
    fn is_of_lines(&self) -> bool {
        false
    }

    /// True if the tool compresses its log.
    fn is_compressed(&self) -> bool {
        false
    }

    /// Where a directory that the tool makes has the files of the log. `*` at the end is all files.
    fn files_within(&self) -> &'static [&'static str] {
        &[]
    }

    /// Reads the log, and passes its operations to `records`. The log is read twice: at the second
    /// time, `known` are the findings of the first.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or is no log of this format.
    fn read(
        &self,
        job: &ImportJob<'_>,
        known: Option<&Findings>,
        records: &mut RecordLog,
    ) -> Result<Findings, Error>;
}

/// A log that is imported.
pub struct ImportJob<'a> {
    /// Its files.
    pub files: &'a LogFiles,
    /// The directory in which the command began, if the user knows better than the log.
    pub cwd: Option<PathBuf>,
    /// The directory of this machine that the command had as its root.
    pub root: Option<PathBuf>,
    /// Takes the number of bytes of each piece that was read.
    pub done: &'a dyn Fn(u64),
}

impl ImportJob<'_> {
    /// The file of a log that is one file.
    ///
    /// # Errors
    ///
    /// There are several. `why` says that the format has one.
    pub(crate) fn only_file(&self, why: &'static str) -> Result<&LogFile, Error> {
        match &self.files.files[..] {
            [file] => Ok(file),
            files => Err(Error::NotOfOneRun {
                path: files
                    .get(1)
                    .map(|file| file.path.clone())
                    .unwrap_or_default(),
                why,
            }),
        }
    }
}

/// The facts about a run that its log gives.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Findings {
    /// The command of the first process.
    pub command: Vec<Vec<u8>>,
    /// Its environment, if the log has it.
    pub environment: Vec<Vec<u8>>,
    /// Its directory.
    pub cwd: Vec<u8>,
    /// The files of the descriptors that it began with.
    pub descriptors: Vec<(i32, Vec<u8>)>,
    /// The time of the first record, in ns since 1970.
    pub started: Time,
    /// The time of the last one.
    pub ended: Time,
    /// Exit status of the first process.
    pub exit: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Its place in a job of a launcher of parallel work, if the document states it.
    pub job_rank: Option<JobRank>,
    /// The parts of the run that the log does not have.
    pub gaps: Vec<Reason>,
    /// Facts about the run that were concluded, and are not in the log.
    pub warnings: Vec<Reason>,
    /// Whether the log was written on this machine while the command ran: files that are here now
    /// may be those that the log names.
    pub is_of_this_machine: bool,
    /// The time to add to each time of the log, if it has no dates.
    pub time_base: Time,
    /// The id of the first process, if the log has it in later lines only.
    pub first_pid: Option<u32>,
    /// The processes that have calls in the log.
    pub process_ids: ProcessIds,
    /// The log has every call of its processes. So a file that no call used was not used.
    pub has_every_call: bool,
}
