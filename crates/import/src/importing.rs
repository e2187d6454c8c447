//! One import from its beginning to its end.

use crate::{Error, Findings, ImportFormat, ImportJob, LogFiles, RecordLog};
use backstory_eventlog::Reason;
use backstory_eventlog::run::{Modes, RunEnd, RunHeader};
use backstory_session::Secrets;
use backstory_vocabulary::{ContentsMode, vocabulary};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

vocabulary! {
    /// Whether the files that a log names are looked up on this machine (`--machine`).
    #[derive(Default)]
    pub enum MachineMode: "machine mode" {
        /// They are if the log was written here while the command ran.
        #[default]
        Auto = "auto",
        /// They are.
        Here = "here",
        /// They are not: paths are all that is known of the files.
        Other = "other",
    }
}

/// How a log is imported.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// Id of the run.
    pub id: String,
    /// Its name.
    pub name: Option<String>,
    /// The log of the run, which must not exist.
    pub log: PathBuf,
    /// The directory in which the command began.
    pub cwd: Option<PathBuf>,
    /// The directory that the command had as its root.
    pub root: Option<PathBuf>,
    /// Where the files are.
    pub machine: MachineMode,
    /// Patterns of names whose values are redacted.
    pub redact: Vec<String>,
    /// `backstory --version`
    pub version: String,
}

/// A run that was imported.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedRun {
    /// Reasons why the run is not complete.
    pub incomplete_because: Vec<String>,
    /// Facts that were concluded.
    pub warnings: Vec<String>,
    /// Files of this machine are taken for those that the log names.
    pub is_of_this_machine: bool,
}

/// The options that change the records of a run, as bytes.
pub fn options_number(
    cwd: Option<&PathBuf>,
    root: Option<&PathBuf>,
    machine: MachineMode,
) -> Vec<u8> {
    use backstory_vocabulary::Word;
    let mut all = Vec::new();
    for path in [cwd, root] {
        all.extend(path.map_or(&b""[..], |path| path.as_os_str().as_bytes()));
        all.push(0);
    }
    all.extend(machine.word().as_bytes());
    all
}

/// Imports a log. `None` if another import of it has made the run meanwhile.
///
/// # Errors
///
/// The log cannot be read, is in another format, or the run's log cannot be written.
pub fn import(
    format: &dyn ImportFormat,
    files: &LogFiles,
    options: &ImportOptions,
    done: &dyn Fn(u64),
) -> Result<Option<ImportedRun>, Error> {
    let job = ImportJob {
        files,
        cwd: options.cwd.clone(),
        root: options.root.clone(),
        done,
    };
    let mut findings = format.read(&job, None, &mut RecordLog::rehearsal())?;
    findings.is_of_this_machine = match options.machine {
        MachineMode::Auto => findings.is_of_this_machine,
        MachineMode::Here => true,
        MachineMode::Other => false,
    };
    if let Some(pipe) = files.open_pipe() {
        findings.gaps.push(Reason::ImportGap {
            what: format!("a program still has the pipe {} open", pipe.display()),
        });
    }
    let Some(unfinished) = UnfinishedLog::claim(options)? else {
        return Ok(None);
    };
    let head = header(format, files, options, &findings);
    let secrets = Secrets::new(&options.redact);
    let mut records =
        RecordLog::create(&unfinished.path, &head, secrets).inspect_err(|_| unfinished.remove())?;
    let written = format
        .read(&job, Some(&findings), &mut records)
        .and_then(|_| files.unchanged())
        .and_then(|()| Ok(records.end(&end(&findings), !findings.is_of_this_machine)?))
        .and_then(|()| {
            std::fs::rename(&unfinished.path, &options.log)
                .map_err(Error::write("finalize", &options.log))
        });
    written.inspect_err(|_| unfinished.remove())?;
    let run = end(&findings);
    Ok(Some(ImportedRun {
        incomplete_because: run.incomplete_because,
        warnings: run.warnings,
        is_of_this_machine: findings.is_of_this_machine,
    }))
}

/// The files of an import that is not finished: the log of the run, and its lock.
pub fn unfinished_paths(log: &Path) -> [PathBuf; 2] {
    ["import", "import.lock"].map(|extension| log.with_extension(extension))
}

/// The log of a run while it is written. No other command takes it for the log of a run. An import
/// of the same log that was killed leaves it, and the next one begins it again.
struct UnfinishedLog {
    path: PathBuf,
    /// Locked, so that two imports of one log do not write one file.
    _lock: File,
}

impl UnfinishedLog {
    /// Waits for other imports of the same log. `None` if one of them has made the run.
    fn claim(options: &ImportOptions) -> Result<Option<UnfinishedLog>, Error> {
        let [path, lock_path] = unfinished_paths(&options.log);
        let fail = || Error::write("make", &lock_path);
        loop {
            let lock = File::create(&lock_path).map_err(fail())?;
            lock.lock().map_err(fail())?;
            // The import before may have removed the file while this one waited.
            let number = |meta: std::fs::Metadata| meta.ino();
            let there = std::fs::metadata(&lock_path).map(number).ok();
            if there != lock.metadata().map(number).ok() {
                continue;
            }
            let unfinished = UnfinishedLog { path, _lock: lock };
            if options.log.exists() {
                return Ok(None);
            }
            // It is there if an import was killed.
            let _ = std::fs::remove_file(&unfinished.path);
            return Ok(Some(unfinished));
        }
    }

    /// Removes what a failed import has written.
    fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Drop for UnfinishedLog {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.path.with_extension("import.lock"));
    }
}

fn header(
    format: &dyn ImportFormat,
    files: &LogFiles,
    options: &ImportOptions,
    findings: &Findings,
) -> RunHeader {
    let secrets = Secrets::new(&options.redact);
    let root = options.root.as_deref();
    let descriptor = |(fd, target): &(i32, Vec<u8>)| match target.starts_with(b"/") {
        true => (*fd, below(root, target)),
        false => (*fd, target.clone()),
    };
    RunHeader {
        id: options.id.clone(),
        name: options.name.clone(),
        imported: Some(files.imported(format.name())),
        command: secrets.command(&findings.command),
        environment: secrets.environment(&findings.environment),
        cwd: below(root, &findings.cwd),
        descriptors: findings.descriptors.iter().map(descriptor).collect(),
        uid: files.files.first().map_or(0, |file| file.owner),
        modes: Modes {
            contents: Some(ContentsMode::Off),
            ..Modes::default()
        },
        started: findings.started,
        job_rank: findings.job_rank.clone(),
        version: options.version.clone(),
        ..RunHeader::default()
    }
}

fn end(findings: &Findings) -> RunEnd {
    let sentences = |all: &[Reason]| all.iter().map(ToString::to_string).collect();
    RunEnd {
        exit: findings.exit,
        signal: findings.signal,
        command_ended: findings.ended,
        ended: findings.ended,
        incomplete_because: sentences(&findings.gaps),
        warnings: sentences(&findings.warnings),
        ..RunEnd::default()
    }
}

/// An absolute path of the command, as this machine has it.
fn below(root: Option<&Path>, path: &[u8]) -> Vec<u8> {
    let root = root.map_or(&b""[..], |root| root.as_os_str().as_bytes());
    let root = root.strip_suffix(b"/").unwrap_or(root);
    [root, path].concat()
}
