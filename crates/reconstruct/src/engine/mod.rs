//! The engine: starts a program under a filter, and responds to its calls from the record.
//!
//! In: a [`RecordedRun`] and [`Options`]. Out: a [`Reconstruction`]. The calling process has one
//! thread. It is inside the namespaces and the root in which the program may run. Calls that were
//! not recorded continue there.

mod attempts;
// The names of system calls are those of libc.
#[allow(non_upper_case_globals)]
mod call_words;
mod caller;
mod copy_code;
mod filter;
mod kept_environment;
mod placeholder;
mod proc_texts;
mod script;
mod stack;
mod standin;
mod start;
mod vdso;
// As above.
#[allow(non_upper_case_globals)]
mod supervisor;

pub use attempts::{AttemptSource, NextAttempt};
pub use start::TOOL_LOG;
pub use supervisor::STALLED;

use crate::error::Error;
use crate::process::{ProcessStart, RecordedProcess};
use crate::recorded::RecordedRun;
use crate::resource::ResourceId;
use crate::shift::ClockShift;
use crate::sighting::Wanted;
use crate::unit::RecordedUnit;
use crate::verdict::Reconstruction;
use filter::FilterNeeds;
use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The choice of the program, and of how it runs again.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its recorded process id. `None`: the first program of the run.
    pub process: Option<u32>,
    /// A tool and its arguments. The program's path and arguments are appended.
    pub tool: Vec<Vec<u8>>,
    /// The tool writes for the user to [`TOOL_LOG`].
    pub has_log: bool,
    /// Another program in the place of the recorded one.
    pub binary: Option<PathBuf>,
    /// The program is a build with a sanitizer, whose report is kept in full.
    pub is_sanitized: bool,
    /// The program is ended after so long without a call, if it uses no processor time.
    pub patience: Duration,
    /// Only the request with this number is fed, from 1.
    pub request: Option<usize>,
    /// Further requests that are fed, from 1.
    pub fed: Vec<usize>,
    /// The change of the clock.
    pub shift: ClockShift,
    /// Regular expressions of text in outputs that may differ.
    pub volatile: Vec<String>,
    /// The search in the bytes that enter and leave, if any.
    pub wanted: Option<Wanted>,
    /// The signal that killed the command of the run, if one did.
    pub killed_by: Option<i32>,
    /// The kernel's status of the end of that command, if the deep log has the command from its
    /// beginning to its end.
    pub status: Option<i32>,
    /// Descriptors whose input is replaced by these bytes, in the first process.
    pub inputs: Vec<(i32, Vec<u8>)>,
    /// Other bytes in the place of those that the chosen request brought.
    pub request_input: Option<Vec<u8>>,
    /// Other arguments of the first process: how far each is from their end, and its value.
    pub arguments: Vec<(usize, Vec<u8>)>,
    /// Variables of the first process, which add to or replace the recorded ones.
    pub variables: Vec<(Vec<u8>, Vec<u8>)>,
    /// The tool is the byte engine. It asks for recorded resources, and says which calls are the
    /// program's. Writes to files of the root are compared, too: the store may lack their contents.
    pub follows_bytes: bool,
    /// The verdict lists the obstacles to a copy of the started programs. To find these, the page
    /// tables of all programs are walked.
    pub lists_obstacles: bool,
    /// The paths that the root has at its start, and those that the run made. A directory of the
    /// root may lack other names that the record lists.
    pub known_paths: HashSet<Vec<u8>>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            process: None,
            tool: Vec::new(),
            has_log: false,
            binary: None,
            is_sanitized: false,
            patience: Duration::from_secs(30),
            request: None,
            fed: Vec::new(),
            shift: ClockShift::default(),
            volatile: Vec::new(),
            wanted: None,
            killed_by: None,
            status: None,
            inputs: Vec::new(),
            request_input: None,
            arguments: Vec::new(),
            variables: Vec::new(),
            follows_bytes: false,
            lists_obstacles: false,
            known_paths: HashSet::new(),
        }
    }
}

/// Reduces a run to the chosen request and those that are fed with it, if one is chosen. The run is
/// then as long as these, and not as long as the record.
///
/// # Errors
/// The record has no such program or request.
pub fn reduce(run: &mut RecordedRun, options: &Options) -> Result<(), Error> {
    let first = first_process(run, options.process)?;
    if let Some(wanted) = options.request
        && run.chosen.is_none()
    {
        crate::request::choose(run, wanted, &options.fed, first)?;
    }
    if options.wanted.is_none() {
        run.units.clear();
    }
    Ok(())
}

/// True if the program that is started was given this descriptor, and used it.
///
/// # Errors
/// The record has no such program.
pub fn has_input(run: &RecordedRun, options: &Options, fd: i32) -> Result<bool, Error> {
    let first = first_process(run, options.process)?;
    Ok(given(&run.processes[first], fd).is_some())
}

/// Runs a program again. `become_user` is called in its process before it is executed.
///
/// # Errors
/// The record has no such program or request, or the program could not be started.
pub fn reconstruct(
    run: RecordedRun,
    options: &Options,
    become_user: impl FnOnce() -> io::Result<()>,
) -> Result<Reconstruction, Error> {
    execute(run, options, None, become_user)
}

/// The same for the first of several attempts at a request. The next ones may begin in copies of
/// the started program.
///
/// If a copy is made, this function returns once for each attempt, in a process of its own. The
/// process that called it ends behind the last one.
///
/// # Errors
/// As of [`reconstruct`].
pub fn reconstruct_in_turn(
    run: RecordedRun,
    options: &Options,
    attempts: Box<dyn AttemptSource>,
    become_user: impl FnOnce() -> io::Result<()>,
) -> Result<Reconstruction, Error> {
    execute(run, options, Some(attempts), become_user)
}

fn execute(
    run: RecordedRun,
    options: &Options,
    attempts: Option<Box<dyn AttemptSource>>,
    become_user: impl FnOnce() -> io::Result<()>,
) -> Result<Reconstruction, Error> {
    let recorded_calls = run.calls();
    let (run, first) = changed(run, options)?;
    let unit = run.chosen;
    let any = |has: fn(&RecordedProcess) -> bool| run.processes.iter().any(has);
    let needs = FilterNeeds {
        asks_for_processors: any(|one| !one.processors.is_empty()),
        redirects_instructions: any(RecordedProcess::asked_processor),
    };
    let (child, listener) = start::start(&run.processes[first], options, needs, become_user)?;
    let attempts = attempts.map(|source| supervisor::Attempts::new(source, &run, options.shift));
    let mut supervisor = supervisor::Supervisor::new(run, first, listener, child, options, unit);
    supervisor.attempts = attempts;
    let mut result = supervisor.watch()?;
    result.recorded_calls = recorded_calls;
    Ok(result)
}

/// The part of a run that is fed, with what the user has changed. Returns the program that starts
/// everything, too.
fn changed(mut run: RecordedRun, options: &Options) -> Result<(RecordedRun, usize), Error> {
    let first = first_process(&run, options.process)?;
    reduce(&mut run, options)?;
    let unit = run.chosen;
    for (fd, bytes) in &options.inputs {
        replace_input(&mut run.processes[first], *fd, bytes);
    }
    if let (Some(bytes), Some(unit)) = (&options.request_input, &unit) {
        replace_request(&mut run.processes[unit.process], unit, bytes);
    }
    change_start(&mut run.processes[first].start, options);
    note_end(&mut run, first, options);
    Ok((run, first))
}

/// The path of the program that [`reconstruct`] would start.
///
/// # Errors
/// As of [`reconstruct`].
pub fn program(run: &RecordedRun, options: &Options) -> Result<Vec<u8>, Error> {
    let first = first_process(run, options.process)?;
    if let Some(wanted) = options.request {
        crate::request::chosen(run, wanted)?;
    }
    Ok(run.processes[first].start.program.clone())
}

/// The build id of the program that [`reconstruct`] would start, as it was recorded. Empty: it has
/// none, or the log is of an earlier version.
pub fn build(run: &RecordedRun, options: &Options) -> Vec<u8> {
    let first = first_process(run, options.process).ok();
    let process = first.and_then(|first| run.processes.get(first));
    process.map_or_else(Vec::new, |process| process.start.build.clone())
}

/// The directory in which [`reconstruct`] would start the program.
pub fn directory(run: &RecordedRun, options: &Options) -> Vec<u8> {
    let first = first_process(run, options.process).ok();
    let process = first.and_then(|first| run.processes.get(first));
    process.map_or(b"/".to_vec(), |process| process.start.directory.clone())
}

/// The program that starts everything: the one with this process id, or the first one.
pub(crate) fn first_process(run: &RecordedRun, pid: Option<u32>) -> Result<usize, Error> {
    let starts = |process: &RecordedProcess| process.start.by_exec;
    let mut all = run.processes.iter();
    let found = match pid {
        None => all.position(starts),
        Some(pid) => {
            if !all.clone().any(|process| process.pid == pid) {
                return Err(Error::NoProcess(pid));
            }
            all.position(|process| process.pid == pid && starts(process))
        }
    };
    found.ok_or(Error::NoProgram)
}

/// No recorded process waited for the command, so its status is not in the log, nor is the signal
/// that killed it.
fn note_end(run: &mut RecordedRun, first: usize, options: &Options) {
    let pid = run.processes[first].pid;
    let mut programs = run.processes.iter_mut().rev();
    // The last one that the command's process executed.
    if options.process.is_none()
        && let Some(last) = programs.find(|process| process.pid == pid)
    {
        match options.status {
            Some(status) if last.has_exited => last.ended_with(status),
            _ if last.has_exited => {}
            _ => last.killed_by = last.killed_by.or(options.killed_by),
        }
    }
}

/// A script has its interpreter before its arguments, so these count from the end.
fn change_start(start: &mut ProcessStart, options: &Options) {
    for (from_end, value) in &options.arguments {
        let at = start.arguments.len().checked_sub(*from_end);
        if let Some(argument) = at.and_then(|at| start.arguments.get_mut(at)) {
            argument.clone_from(value);
        }
    }
    for (name, value) in &options.variables {
        let head = [name, b"=".as_slice()].concat();
        start.environment.retain(|one| !one.starts_with(&head));
        start.environment.push([head, value.clone()].concat());
    }
}

/// The resource behind a descriptor that a process was given, and that it used.
fn given(process: &RecordedProcess, fd: i32) -> Option<ResourceId> {
    let inherited = process.inherited.iter().map(|(fd, id, _)| (*fd, *id));
    let mut all = inherited.chain(process.held.iter().copied());
    all.find(|(known, _)| *known == fd).map(|(_, id)| id)
}

/// Replaces what a process read from a descriptor that it was given.
fn replace_input(process: &mut RecordedProcess, fd: i32, bytes: &[u8]) {
    if let Some(id) = given(process, fd) {
        let streams = process.streams.entry(id).or_default();
        streams.input.replace(bytes.to_vec());
    }
}

/// Replaces what the process of a request read of it.
fn replace_request(process: &mut RecordedProcess, unit: &RecordedUnit, bytes: &[u8]) {
    if let Some(streams) = process.streams.get_mut(&unit.connection) {
        let belongs = |time| unit.has(unit.process, time);
        streams.input.replace_at(bytes.to_vec(), belongs);
    }
}
