//! Prepares a supervisor for a recorded run and a program that was started.

use super::clock;
use super::due_signals::DueSignals;
use super::listings::Listings;
use super::own_calls::OwnCalls;
use super::own_pipes::OwnPipes;
use super::part::Part;
use super::passing::PassedDescriptors;
use super::pipes::Pipes;
use super::places::Places;
use super::processes::LiveProcess;
use super::thread_clocks::Passed;
use super::{StandIns, Supervisor, TimeFunctions};
use crate::engine::{Options, script};
use crate::matcher::ProcessMatcher;
use crate::process::RecordedProcess;
use crate::recorded::RecordedRun;
use crate::resource::ResourceId;
use crate::sighting::SightingSearch;
use crate::unit::RecordedUnit;
use crate::verdict::Reconstruction;
use backstory_instructions::Redirector;
use backstory_sys as sys;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

impl Supervisor {
    /// Prepares to watch a program that was started.
    pub fn new(
        run: RecordedRun,
        first: usize,
        listener: OwnedFd,
        child: sys::Pid,
        options: &Options,
        unit: Option<RecordedUnit>,
    ) -> Supervisor {
        let process = &run.processes[first];
        let recorded = OsStr::from_bytes(&process.start.program);
        let program = options.binary.clone().unwrap_or_else(|| recorded.into());
        let program = match options.tool.is_empty() {
            true => program,
            false => executed_by_tool(&process.start.directory, program),
        };
        let shows = process.inherited.iter().find(|(fd, _, _)| *fd == 1);
        let state = match options.tool.is_empty() {
            true => LiveProcess::waiting_for(first),
            false => LiveProcess::tool(),
        };
        let is_whole = options.process.is_none() && options.request.is_none() && !run.is_cut;
        let users = users(&run.processes);
        Supervisor {
            listener,
            pipes: match (is_whole, options.request) {
                (true, _) => Pipes::of(&run.processes, &run.connections),
                // The other ends of connections may be left out.
                (false, Some(_)) => Pipes::of(&run.processes, &[]),
                (false, None) => Pipes::default(),
            },
            own_pipes: OwnPipes::of(&run.processes, &users),
            passed_descriptors: PassedDescriptors::default(),
            longer_paths: HashMap::new(),
            shows: shows.map(|(_, id, _)| *id),
            started: vec![false; run.processes.len()],
            passed: vec![Passed::default(); run.processes.len()],
            due: due(&run.processes),
            clock: run.clock,
            rules: run.clock.rules(&options.volatile),
            since_boot: clock::since_boot(),
            time_functions: match run.clock.to {
                Some(_) => TimeFunctions::find(),
                None => TimeFunctions::default(),
            },
            sought: options.wanted.as_ref().map(SightingSearch::new),
            units: run.units,
            attempts: None,
            aside: HashSet::new(),
            in_copy: None,
            part: unit.map(|unit| Part::new(unit, run.fed, options)),
            parked_for: Duration::ZERO,
            child_work: HashMap::new(),
            places: Places::of(&run.processes, options.follows_bytes),
            follows_bytes: options.follows_bytes,
            redirector: Redirector::default(),
            own_calls: OwnCalls::default(),
            in_vain: vec![0; run.processes.len()],
            created_threads: vec![0; run.processes.len()],
            hidden: HashMap::new(),
            suspended: HashMap::new(),
            still: None,
            has_tool: !options.tool.is_empty(),
            held: Vec::new(),
            held_threads: HashSet::new(),
            staying: HashSet::new(),
            asleep: HashSet::new(),
            closing: None,
            progress: None,
            last_calls: HashMap::new(),
            resources: run.resources,
            killed_early: run.killed_early,
            made: made(&run.processes),
            users,
            matchers: matchers(run.processes, options),
            first,
            child,
            began: Instant::now(),
            live: HashMap::from([(child as u32, state)]),
            explained_ends: HashSet::new(),
            groups: HashMap::new(),
            foreign_groups: HashMap::new(),
            threads: HashMap::new(),
            announced: HashSet::new(),
            creating: None,
            interrupted_creations: HashMap::new(),
            stand_ins: StandIns::default(),
            idents: HashMap::new(),
            listings: Listings::new(options.known_paths.clone()),
            parked: Vec::new(),
            program,
            patience: options.patience,
            is_whole,
            result: Reconstruction {
                shift: options.shift,
                tries: 1,
                lacks_because: run.lacks_because,
                ..Reconstruction::default()
            },
        }
    }
}

/// The program that a tool executes: of a script, it is the interpreter. The path is absolute: a
/// debugger executes a relative one by its absolute path.
fn executed_by_tool(directory: &[u8], program: PathBuf) -> PathBuf {
    let words = script::interpreter(directory, program.as_os_str().as_bytes());
    let interpreter = words.into_iter().next();
    let program = interpreter.map_or(program, |path| OsString::from_vec(path).into());
    let root = Path::new("/");
    root.join(OsStr::from_bytes(directory)).join(program)
}

/// The programs at their beginning.
fn matchers(processes: Vec<RecordedProcess>, options: &Options) -> Vec<ProcessMatcher> {
    let mut all: Vec<ProcessMatcher> = processes.into_iter().map(ProcessMatcher::new).collect();
    if options.is_sanitized {
        all.iter_mut().for_each(ProcessMatcher::keep_whole_report);
    }
    all
}

/// The handlers that ran in each program.
fn due(processes: &[RecordedProcess]) -> Vec<DueSignals> {
    let all = processes.iter();
    all.map(|process| DueSignals::of(&process.handlers))
        .collect()
}

/// The number of programs that read or wrote each resource.
pub(super) fn users(processes: &[RecordedProcess]) -> HashMap<ResourceId, usize> {
    let mut users = HashMap::new();
    for id in processes.iter().flat_map(|one| one.streams.keys()) {
        *users.entry(*id).or_default() += 1;
    }
    users
}

/// The processes that recorded calls made, each with the program that made the call.
pub(super) fn made(processes: &[RecordedProcess]) -> HashMap<u32, usize> {
    let mut made = HashMap::new();
    for (index, process) in processes.iter().enumerate() {
        let pids = process.children.iter();
        let pids = pids.filter_map(|child| u32::try_from(child.pid).ok());
        made.extend(pids.map(|pid| (pid, index)));
    }
    made
}

#[cfg(test)]
mod tests {
    use super::executed_by_tool;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Path, PathBuf};

    #[test]
    fn a_tool_executes_a_relative_program_or_interpreter_in_the_directory_of_the_program() {
        let directory = tempfile::tempdir().unwrap();
        let own = directory.path();
        fs::write(own.join("script"), "#!bin/run -x\n").unwrap();
        let executed =
            |program: &str| executed_by_tool(own.as_os_str().as_bytes(), PathBuf::from(program));
        for (program, path) in [
            ("./server", own.join("server")),
            ("/bin/cat", PathBuf::from("/bin/cat")),
            ("./script", own.join("bin/run")),
        ] {
            assert_eq!(executed(program), path, "{program}");
        }
        // The record has no directory.
        let unknown = executed_by_tool(b"", PathBuf::from("server"));
        assert_eq!(unknown, Path::new("/server"));
    }
}
