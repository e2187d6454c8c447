//! `replay --deep`: what is to run again against the deep log of a run, and its execution inside
//! the root.

mod options;

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use backstory_deep::{DeepLog, ReadMeter};
use backstory_reconstruct::engine::{self, AttemptSource, Options};
use backstory_reconstruct::read_files::{ReadFile, read_files};
use backstory_reconstruct::search::{Attempt, Search};
use backstory_reconstruct::sighting::Wanted;
use backstory_reconstruct::verdict::{Reconstruction, RequestVerdict};
use backstory_reconstruct::window;
use backstory_reconstruct::{Error, ReadLog, RecordedRun, log_context, origin};
use backstory_replay::plan::Plan;
use backstory_replay::root;
use backstory_replay::verdict::{OutputState, Verdict};
use serde::{Deserialize, Serialize};

use super::Played;
use super::directory::FED;
use super::request_outputs::{self, RequestOutputs};
use super::shallow_command::ShallowCommand;
use crate::error::{Failure, chain};
use crate::text::progress::Progress;

pub use options::request;

/// Why a file cannot be compared after one process ran again.
const NOT_RUN: &str = "a program that did not run again may have written it";

/// How a program is fed from a deep log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DeepRequest {
    log: PathBuf,
    process: Option<u32>,
    /// The absolute path of the program that runs again.
    program: Vec<u8>,
    /// The build id of that program in the record, in hexadecimal.
    build: Option<String>,
    request: Option<usize>,
    tool: Vec<Vec<u8>>,
    /// The program is a build with a sanitizer.
    is_sanitized: bool,
    patience: u64,
    /// Time-stamp counters between which the run is compared.
    pub window: (Option<u64>, Option<u64>),
    volatile: Vec<String>,
    inputs: Vec<(i32, Vec<u8>)>,
    /// Other bytes for the chosen request.
    request_input: Option<Vec<u8>>,
    /// The numbers of other arguments, with their values.
    arguments: Vec<(usize, Vec<u8>)>,
    variables: Vec<(Vec<u8>, Vec<u8>)>,
    /// Requests that are fed beside the chosen one, and the change of the clock.
    attempt: Attempt,
    /// The signal that killed the command of the run, if one did.
    killed_by: Option<i32>,
    /// The status of its end, if the deep log has all of it.
    status: Option<i32>,
    /// The command of the run, if the deep log does not have it.
    shallow_command: Option<ShallowCommand>,
    /// The tool is the byte engine.
    follows_bytes: bool,
    /// The search in the bytes that enter and leave, if any.
    pub wanted: Option<Wanted>,
    /// The verdict lists what forbids a copy of the started programs.
    pub lists_obstacles: bool,
    #[serde(skip)]
    read: OnceCell<Rc<ReadLog>>,
}

impl DeepRequest {
    /// The path of the program that runs again.
    pub fn program(&self) -> &[u8] {
        &self.program
    }

    /// The build id that the program had when it was recorded. `None`: it had none, or the log is
    /// of an earlier version.
    pub fn build(&self) -> Option<&str> {
        self.build.as_deref()
    }

    /// True if the program runs under a tool.
    pub fn has_tool(&self) -> bool {
        !self.tool.is_empty()
    }

    /// The search for what the chosen request needs, if one was chosen.
    pub fn search(&self, most: u32) -> Result<Option<Search>, Failure> {
        let Some(wanted) = self.request else {
            return Ok(None);
        };
        Ok(Some(Search::new(&self.read()?.candidates(wanted), most)))
    }

    /// The same program with this request alone.
    pub fn only(&self, request: usize) -> DeepRequest {
        DeepRequest {
            request: Some(request),
            ..self.clone()
        }
    }

    /// The same request, as this attempt has it.
    pub fn at(&self, attempt: &Attempt) -> DeepRequest {
        DeepRequest {
            attempt: attempt.clone(),
            ..self.clone()
        }
    }

    /// True if one request runs again.
    pub fn has_request(&self) -> bool {
        self.request.is_some()
    }

    /// True if all of the run's programs run again, to the end of the record.
    pub fn is_whole(&self) -> bool {
        self.request.is_none() && self.process.is_none() && self.window == (None, None)
    }

    /// True if the program made that request itself. All that came before it runs again, too.
    pub fn is_of_client(&self) -> Result<bool, Failure> {
        let Some(wanted) = self.request else {
            return Ok(false);
        };
        let chosen = backstory_reconstruct::request::chosen(&self.read()?.run, wanted);
        Ok(chosen.is_ok_and(|unit| unit.is_client))
    }

    /// The epoch of the process that served or made a request. `None`: there is no such request.
    pub fn epoch_of(&self, request: usize) -> Result<Option<u64>, Failure> {
        let read = self.read()?;
        let chosen = backstory_reconstruct::request::chosen(&read.run, request);
        let process = chosen
            .ok()
            .and_then(|unit| read.run.processes.get(unit.process));
        Ok(process.map(|process| process.epoch))
    }

    /// True if a tool runs the program, or it gets other input.
    pub fn is_changed(&self) -> bool {
        self.has_tool() || self.has_other_input()
    }

    /// True if the program gets other input.
    pub fn has_other_input(&self) -> bool {
        !self.inputs.is_empty() || self.request_input.is_some()
    }

    /// The same without a tool and with the recorded input.
    pub fn as_recorded(&self) -> DeepRequest {
        DeepRequest {
            tool: Vec::new(),
            is_sanitized: false,
            inputs: Vec::new(),
            request_input: None,
            arguments: Vec::new(),
            variables: Vec::new(),
            ..self.clone()
        }
    }

    /// The same under the byte engine.
    pub fn under(&self, tool: Vec<Vec<u8>>) -> DeepRequest {
        DeepRequest {
            tool,
            shallow_command: None,
            follows_bytes: true,
            ..self.clone()
        }
    }

    /// The files whose bytes the log has, by path.
    pub fn read_files(&self) -> Result<BTreeMap<Vec<u8>, ReadFile>, Failure> {
        self.reading("reading the deep log", |log| {
            read_files(&RecordedRun::load(log))
        })
    }

    /// The outline of the deep log, which is read once for all requests and attempts.
    fn read(&self) -> Result<Rc<ReadLog>, Failure> {
        if let Some(read) = self.read.get() {
            return Ok(read.clone());
        }
        let read = Rc::new(self.reading("reading the deep log", ReadLog::outline)?);
        Ok(self.read.get_or_init(|| read).clone())
    }

    /// Reads the deep log, under a bar with these words.
    fn reading<T>(&self, words: &str, read: impl FnOnce(&DeepLog) -> T) -> Result<T, Failure> {
        let meter = ReadMeter::default();
        let log = self.open()?.metered(&meter);
        let progress = Progress::reading(words, &meter);
        let found = read(&log);
        progress.end();
        Ok(found)
    }

    /// For a replay of one request: the part of the run that is fed, as bytes for the process
    /// inside. So this process alone reads the whole log.
    pub fn part(&self) -> Result<Option<Vec<u8>>, Failure> {
        if self.request.is_none() {
            return Ok(None);
        }
        let (read, options) = (self.read()?, self.options());
        let part = self.reading("reading the deep log", |log| read.part(log, &options))?;
        let run = part.map_err(|error| Failure::not_found(chain(&error)))?;
        let bytes = run
            .to_bytes()
            .map_err(|error| Failure::not_found(chain(&error)))?;
        Ok(Some(bytes))
    }

    /// The run that is fed, inside the replay in this directory.
    pub fn load(&self, own: &Path) -> Result<RecordedRun, Failure> {
        if self.request.is_some() {
            let bytes = fs::read(own.join(FED))?;
            let run = RecordedRun::of_bytes(&bytes);
            return run.map_err(|error| Failure::not_found(chain(&error)));
        }
        let mut run = RecordedRun::load(&self.open()?);
        window::end_at_gaps(&mut run);
        window::cut(&mut run, self.window.0, self.window.1);
        Ok(run)
    }

    /// Opens the deep log.
    pub fn open(&self) -> Result<DeepLog, Failure> {
        DeepLog::open(&self.log).map_err(|error| Failure::not_found(chain(&error)))
    }

    /// Finds the recorded side of the first difference, in the whole record: where its bytes came
    /// from, and the calls before it.
    pub fn find_origins(&self, reconstruction: &mut Reconstruction) -> Result<(), Failure> {
        if reconstruction.first_difference().is_none() {
            return Ok(());
        }
        let read = self.read()?;
        self.reading("looking for the origin of the difference", |log| {
            origin::find(log, &read.run.units, reconstruction);
            log_context::find(log, reconstruction);
        })
    }

    /// The files that the requests wrote which ran again.
    pub fn outputs(&self, request: &RequestVerdict) -> Result<RequestOutputs, Failure> {
        Ok(RequestOutputs::of(&*self.read()?, request))
    }

    /// If only one process ran again, with those below it, other programs may have written a file
    /// that these did not open and write. If such a file differs, its state is unknown.
    pub fn excuse_others(
        &self,
        found: &Reconstruction,
        verdict: &mut Verdict,
    ) -> Result<(), Failure> {
        let Some(first) = self.process.filter(|_| !self.has_request()) else {
            return Ok(());
        };
        if verdict.is_identical() {
            return Ok(());
        }
        let ran = found.processes.iter().map(|process| process.pid).collect();
        let own = request_outputs::written_by(&self.read()?.run, first, &ran);
        for output in &mut verdict.outputs {
            let differs = matches!(output.state, OutputState::Different | OutputState::Missing);
            if differs && !own.contains(&output.path[..]) {
                output.state = OutputState::Unknown(NOT_RUN.to_owned());
            }
        }
        Ok(())
    }

    fn options(&self) -> Options {
        Options {
            process: self.process,
            tool: self.tool.clone(),
            has_log: !self.follows_bytes
                && self
                    .tool
                    .first()
                    .is_some_and(|tool| tool.ends_with(b"/valgrind")),
            binary: None,
            is_sanitized: self.is_sanitized,
            patience: Duration::from_secs(self.patience),
            request: self.request,
            fed: self.attempt.fed.clone(),
            shift: self.attempt.shift,
            volatile: self.volatile.clone(),
            wanted: self.wanted.clone(),
            killed_by: self.killed_by,
            status: self.status,
            inputs: self.inputs.clone(),
            request_input: self.request_input.clone(),
            arguments: Vec::new(),
            variables: self.variables.clone(),
            follows_bytes: self.follows_bytes,
            lists_obstacles: self.lists_obstacles && self.wanted.is_none(),
            known_paths: HashSet::new(),
        }
    }

    /// The run and the options, as the process inside the root needs them.
    pub fn inside(&self, plan: &Plan, mut recorded: RecordedRun) -> (RecordedRun, Options) {
        if let Some(command) = &self.shallow_command {
            command.put_before(&mut recorded, plan);
        }
        let mut options = self.options();
        let changed = self.arguments.iter();
        options.arguments = changed
            .map(|(number, value)| (plan.argv.len().saturating_sub(*number), value.clone()))
            .collect();
        let entries = plan.entries.iter().map(|entry| &entry.path);
        options.known_paths = entries.chain(&plan.made).cloned().collect();
        (recorded, options)
    }

    /// Runs the program inside the root. `attempts`: further ones may begin in copies of it. This
    /// function then returns in a process of its own for each attempt.
    pub fn play(
        &self,
        plan: &Plan,
        recorded: RecordedRun,
        attempts: Option<Box<dyn AttemptSource>>,
    ) -> Result<Played, Failure> {
        let user = || root::become_user(plan).map_err(std::io::Error::other);
        let (recorded, options) = self.inside(plan, recorded);
        let reconstructed = match attempts {
            Some(attempts) => engine::reconstruct_in_turn(recorded, &options, attempts, user),
            None => engine::reconstruct(recorded, &options, user),
        };
        let mut reconstruction = match reconstructed {
            Ok(reconstruction) => reconstruction,
            Err(error) => {
                let missing = match &error {
                    Error::NotStarted { program, .. } => Some(program.clone().into_bytes()),
                    _ => None,
                };
                return Ok(Played {
                    failure: Some(chain(&error)),
                    missing,
                    ..Played::default()
                });
            }
        };
        if let Some(command) = &self.shallow_command {
            command.compare(&mut reconstruction);
        }
        // A program that had to be killed.
        let killed = rustix::process::Signal::KILL.as_raw();
        let status = reconstruction.status.unwrap_or(killed);
        let executed = reconstruction.request.as_ref().map(|of| of.executed);
        let in_copy = executed.filter(|executed| executed.in_copies > 0);
        Ok(Played {
            took: in_copy.map_or(0, |executed| executed.took),
            status: match status & 0x7f {
                0 => status >> 8 & 0xff,
                signal => 128 + signal,
            },
            reconstruction: Some(reconstruction),
            ..Played::default()
        })
    }
}
