//! Runs a step under `record`, so that its outputs have a history.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use backstory_contents::Contents;
use backstory_eventlog::event::Bytes;
use backstory_ordering::SmallSort;
use backstory_query as query;
use backstory_replay::rerun::PlannedStep;
use backstory_replay::rerun::execution::StepRunner;
use backstory_replay::rerun::hazards::outputs_made_anew;
use backstory_replay::rerun::kept_files::NeededSteps;
use backstory_replay::rerun::output_states::OutputStates;
use backstory_replay::rerun::unit_files::UnitFiles;
use backstory_store::{GraphStore, Store};
use backstory_vocabulary::{ContentsMode, Word};
use backstory_workflow::paths::base_name;

use super::{preparation, standard_input};
use crate::commands::near;
use crate::current_store::CurrentStore;
use crate::ending::{self, AtWork};
use crate::error::{Failure, complain};
use crate::subject;
use crate::text::when;
use crate::undo_note::digest_of;

/// The begin of the name of a run that repeats another.
const PREFIX: &str = "rerun-of-";

/// The kernel's limit for one argument, with its NUL (`MAX_ARG_STRLEN`, execve(2)).
const LONGEST: usize = 32 * 4096;

/// Runs steps under `record`.
pub struct StepRecorder {
    program: PathBuf,
    store: PathBuf,
    /// The names of the new runs, by the repeated run.
    names: HashMap<String, String>,
    /// Of each step, by its name, the outputs that were not there when it was recorded.
    anew: HashMap<String, Vec<Bytes>>,
    /// The output of a step is printed as a whole when the step has ended.
    grouped: bool,
    /// Steps print on standard error, because standard output is for the answer.
    apart: bool,
    /// The recorded changes of files of each step, by its name.
    units: HashMap<String, UnitFiles>,
    /// A person's work may be overwritten.
    overwrite: bool,
    contents: PathBuf,
    /// The files that steps of this `rerun` have changed.
    made: Mutex<HashSet<Bytes>>,
    /// The new run of each step, by its name.
    new_runs: Mutex<HashMap<String, String>>,
}

impl StepRecorder {
    /// A runner for these steps.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub fn new(
        current: &CurrentStore,
        steps: &[PlannedStep],
        grouped: bool,
        apart: bool,
    ) -> Result<StepRecorder, Failure> {
        let (mut names, mut anew) = (HashMap::new(), HashMap::new());
        for step in steps {
            let outputs = outputs_made_anew(&current.store, step)?;
            anew.insert(step.name.clone(), outputs);
            if !names.contains_key(&step.run) {
                names.insert(step.run.clone(), name(&current.store, &step.run)?);
            }
        }
        Ok(StepRecorder {
            program: std::env::current_exe()?,
            store: current.home.dir().to_owned(),
            names,
            anew,
            grouped,
            apart,
            units: HashMap::new(),
            overwrite: false,
            contents: current.home.contents_dir(),
            made: Mutex::default(),
            new_runs: Mutex::default(),
        })
    }

    /// Takes in the recorded changes of files. `overwrite`: they may overwrite a person's work.
    pub fn units(&mut self, needed: &NeededSteps, overwrite: bool) {
        let all = needed.steps.iter().zip(&needed.units);
        self.units = all
            .map(|(step, unit)| (step.name.clone(), unit.clone()))
            .collect();
        self.overwrite = overwrite;
    }

    fn is_made(&self, path: &Bytes) -> bool {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.contains(path)
    }

    /// `summary`: the file to which `record` writes the new run's id.
    fn command(&self, step: &PlannedStep, summary: &Path) -> io::Result<Command> {
        let os = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
        let contents = step.contents.unwrap_or(ContentsMode::Off);
        // The lines need a shell that knows `$'…'`.
        let shell = match Path::new("/bin/bash").exists() {
            true => "bash",
            false => "sh",
        };
        let options: &[&str] = match step.script.contains('\n') {
            true => &["-e", "-c"],
            false => &["-c"],
        };
        let mut command = Command::new(&self.program);
        command.arg("record").arg("--store").arg(&self.store);
        command.args(["--contents", contents.word(), "--repeats", &step.run]);
        command.arg("--json-summary").arg(summary);
        if let Some(name) = self.names.get(&step.run) {
            command.args(["--name", name]);
        }
        command.arg("--").arg(shell);
        match step.script.len() < LONGEST {
            true => command.args(options).arg(&step.script),
            false => command
                .args(options.iter().filter(|option| **option != "-c"))
                .arg(long_script(&self.store, &step.script)?),
        };
        command
            .env_clear()
            .envs(step.env.iter().map(|(name, value)| (os(name), os(value))));
        let input = standard_input::of(self.units.get(&step.name))?;
        command
            .current_dir(OsStr::from_bytes(&step.cwd))
            .stdin(input.map_or_else(Stdio::null, Stdio::from));
        Ok(command)
    }
}

/// Writes a script that is too long for an argument into the store's directory. It stays, so that
/// the new run can be repeated.
fn long_script(store: &Path, script: &str) -> io::Result<PathBuf> {
    let directory = store.join("scripts");
    std::fs::create_dir_all(&directory)?;
    let path = directory.join(format!("{}.sh", digest_of(script.as_bytes())?));
    std::fs::write(&path, script)?;
    Ok(path)
}

/// The name of a run that repeats this one. A repetition of a repetition has the same name.
fn name(store: &dyn Store, run: &str) -> Result<String, Failure> {
    let record = store.run(run)?;
    let name = record.and_then(|record| record.name);
    Ok(match name {
        Some(name) if name.starts_with(PREFIX) => name,
        name => format!("{PREFIX}{}", name.as_deref().unwrap_or(run)),
    })
}

impl StepRunner for StepRecorder {
    fn changes(&self, step: &PlannedStep) -> Vec<Bytes> {
        let mut all: Vec<Bytes> = step.outputs.iter().map(|(path, _)| path.clone()).collect();
        let unit = self.units.get(&step.name);
        let changed = unit.into_iter().flat_map(|unit| &unit.changed);
        all.extend(changed.map(|file| file.path.clone()));
        all.sort_small();
        all.dedup();
        all
    }

    fn prepare(&self, step: &PlannedStep) -> io::Result<()> {
        let cwd = Path::new(OsStr::from_bytes(&step.cwd));
        if !cwd.is_dir() {
            return Err(io::Error::other(format!(
                "its directory {} does not exist",
                cwd.display()
            )));
        }
        // They are aside already.
        for output in self.anew.get(&step.name).into_iter().flatten() {
            preparation::remove(Path::new(OsStr::from_bytes(output)))?;
        }
        let unit = self.units.get(&step.name);
        for file in unit.into_iter().flat_map(|unit| &unit.changed) {
            if self.is_made(&file.path) {
                continue;
            }
            if !self.overwrite && !file.is_as_left(&self.store) {
                let path = near(&file.path);
                return Err(io::Error::other(format!(
                    "{path} was changed since a recorded command left it, and would be overwritten: copy it away, or give --overwrite"
                )));
            }
            preparation::bring_back(file, &self.contents)?;
        }
        preparation::directories(step, unit.map_or(&[], |unit| &unit.directories))
    }

    fn may_leave(&self, step: &PlannedStep, output: &[u8]) -> bool {
        let unit = self.units.get(&step.name);
        let mut changed = unit.into_iter().flat_map(|unit| &unit.changed);
        // The recorded step removed it, too.
        let is_temporary = changed.any(|file| *file.path == *output && !file.remains);
        let new_runs = self.new_runs.lock().unwrap_or_else(PoisonError::into_inner);
        let run = new_runs.get(&step.name).cloned();
        drop(new_runs);
        is_temporary || run.is_some_and(|run| examines(&self.store, run, output))
    }

    fn is_stored(&self, copy: &Path) -> bool {
        let digest = subject::digest_of_file(copy);
        let contents = Contents::open(&self.contents);
        let found = digest.zip(contents.ok());
        found.is_some_and(|(digest, contents)| contents.has(&digest).unwrap_or(false))
    }

    fn run(&self, step: &PlannedStep, started: &dyn Fn(u32)) -> io::Result<i32> {
        let summary = tempfile::NamedTempFile::new()?;
        let mut command = self.command(step, summary.path())?;
        let printed = PrintedOutput::of(&mut command, self.grouped, step.is_imported)?;
        if self.apart && printed.is_none() {
            command.stdout(io::stderr().as_fd().try_clone_to_owned()?);
        }
        let states = OutputStates::of(step);
        let status = ended(command.spawn()?, started)?;
        let changed = self.changes(step);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.extend(changed);
        drop(made);
        if let Ok(Some(run)) = recorded_run(summary.path()) {
            let mut runs = self.new_runs.lock().unwrap_or_else(PoisonError::into_inner);
            runs.insert(step.name.clone(), run);
        }
        // A step may leave an equal output alone (`cmp new out || mv new out`), but looks at it.
        let untouched = step.is_imported && status == 0 && states.are_untouched(step);
        let missed = untouched && !examines_output(&self.store, summary.path(), step);
        let why = missed.then(|| without_output(step, printed.as_ref()));
        if let Some(printed) = printed {
            printed.pass_on(self.apart, missed)?;
        }
        // The signal that ends this program may have ended the step: its outputs are put back.
        ending::unless_ended();
        if status != 0 {
            return Ok(status);
        }
        if let Some(why) = why {
            return Err(io::Error::other(why));
        }
        match killed(&self.store, summary.path()) {
            Ok(None) => {}
            Ok(Some(why)) => return Err(io::Error::other(why)),
            Err(failure) => complain(&failure.line),
        }
        Ok(status)
    }
}

/// The id of the new run.
fn recorded_run(summary: &Path) -> Result<Option<String>, Failure> {
    let text = std::fs::read(summary)?;
    let read: serde_json::Value = serde_json::from_slice(&text).map_err(Failure::not_found)?;
    Ok(read["run"].as_str().map(ToOwned::to_owned))
}

/// The sentence on a process of the new run that a signal from outside ended. Its output may be
/// incomplete, although the step ended with status 0.
fn killed(store: &Path, summary: &Path) -> Result<Option<String>, Failure> {
    let current = CurrentStore::open(Some(store))?;
    let Some(run) = recorded_run(summary)? else {
        return Ok(None);
    };
    // A run whose daemons are still recorded is not in the store.
    let Some(record) = current.store.run(&run)? else {
        return Ok(None);
    };
    let ended = query::ended_from_outside(&current.store, &record)?;
    Ok(ended.map(|activity| {
        let program = activity.exec_path.unwrap_or_default();
        let name = String::from_utf8_lossy(base_name(&program)).into_owned();
        let signal = activity.signal.unwrap_or_default();
        format!("signal {signal} from outside ended {name}, although the step ended with status 0")
    }))
}

/// True if the new run has read or looked up an output that exists. A run that is not in the store
/// yet, or cannot be read, has not.
fn examines_output(store: &Path, summary: &Path, step: &PlannedStep) -> bool {
    let run = recorded_run(summary).ok().flatten().unwrap_or_default();
    let mut outputs = step.outputs.iter();
    outputs.any(|(path, _)| examines(store, run.clone(), path))
}

/// The same of one output. `run`: the id of the new run.
fn examines(store: &Path, run: String, output: &[u8]) -> bool {
    let path = Path::new(OsStr::from_bytes(output));
    let wanted = query::Touches {
        lookups: true,
        run: Some(run),
    };
    let examined = || -> Result<bool, Failure> {
        let current = CurrentStore::open(Some(store))?;
        Ok(query::TouchSearch::new(&current.store, path, &wanted).is_ok())
    };
    path.exists() && examined().unwrap_or(false)
}

/// The sentence on an imported step that has written no output.
fn without_output(step: &PlannedStep, printed: Option<&PrintedOutput>) -> String {
    let first = step.outputs.first().map(|(path, _)| near(path));
    let outputs = match (first, step.outputs.len()) {
        (Some(first), 1) => format!("did not write {first}"),
        (first, _) => format!(
            "wrote none of its outputs, such as {}",
            first.unwrap_or_default()
        ),
    };
    let bytes = printed.map_or(0, PrintedOutput::bytes);
    let hidden = match bytes {
        0 => String::new(),
        _ => format!("; its standard output ({}) is not shown", when::size(bytes)),
    };
    format!(
        "it {outputs}: the imported record has no redirection to it{hidden}; run the command yourself under backstory record"
    )
}

fn ended(mut child: Child, started: &dyn Fn(u32)) -> io::Result<i32> {
    started(child.id());
    let at_work = AtWork::of(&child);
    let status = child.wait()?;
    drop(at_work);
    Ok(status.code().unwrap_or(128))
}

/// The output of a step that is printed when the step has ended.
struct PrintedOutput {
    out: File,
    /// `None`: errors are in the same file, so they stay in order, or were printed already.
    errors: Option<File>,
}

impl PrintedOutput {
    /// Redirects what the step prints. `grouped`: all of it, so that no other step prints in
    /// between. `apart`: standard output alone, because it may be what belongs into a file.
    fn of(command: &mut Command, grouped: bool, apart: bool) -> io::Result<Option<PrintedOutput>> {
        if !grouped && !apart {
            return Ok(None);
        }
        let file =
            |fd: &dyn AsFd| rustix::fs::fstat(fd.as_fd()).map(|found| (found.st_dev, found.st_ino));
        let one = match (file(&io::stdout()), file(&io::stderr())) {
            (Ok(out), Ok(errors)) => out == errors && !apart,
            _ => false,
        };
        let out = tempfile::tempfile()?;
        let errors = match grouped && !one {
            true => Some(tempfile::tempfile()?),
            false => None,
        };
        command.stdout(out.try_clone()?);
        if grouped {
            command.stderr(errors.as_ref().unwrap_or(&out).try_clone()?);
        }
        Ok(Some(PrintedOutput { out, errors }))
    }

    /// The size of what is printed on standard output. 0 if unknown.
    fn bytes(&self) -> u64 {
        self.out.metadata().map_or(0, |found| found.len())
    }

    /// Prints it. `apart`: on standard error. `silent`: errors only.
    fn pass_on(mut self, apart: bool, silent: bool) -> io::Result<()> {
        // Both locks, so that no other step prints in between.
        let (mut stdout, mut stderr) = (io::stdout().lock(), io::stderr().lock());
        self.out.rewind()?;
        match (silent, apart) {
            (true, _) => 0,
            (false, true) => io::copy(&mut self.out, &mut stderr)?,
            (false, false) => io::copy(&mut self.out, &mut stdout)?,
        };
        stdout.flush()?;
        if let Some(mut errors) = self.errors {
            errors.rewind()?;
            io::copy(&mut errors, &mut stderr)?;
        }
        Ok(())
    }
}
