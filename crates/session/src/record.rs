//! `record`: prepares everything in the launcher, forks the other processes, and returns the
//! result.

use crate::broker::{self, BrokerLink};
use crate::control::Control;
use crate::deep_sink::DeepPlan;
use crate::drain::privileges::Privileges;
use crate::inherited_state::InheritedState;
use crate::launcher::{CommandEnd, Launcher};
use crate::lines::LinePlan;
use crate::part_lock::claimed_log;
use crate::plain_programs::KnownPrograms;
use crate::redact::Secrets;
use crate::setting::{CommandSetup, RunSetup, WatchResources};
use crate::watch::WatchPlan;
use crate::{
    Error, Options, RecordingResult, background, clock, clock_tick, header, keeper, launch,
    library, plain_start,
};
use backstory_abi as abi;
use backstory_arena::Arena;
use backstory_eventlog::run::RunEnd;
use backstory_guard::SharedBuffers;
use backstory_sys::{self as sys, address_space};
use backstory_vocabulary::{
    ContentsMode, DurabilityMode, GuardMode, OutputsMode, SuppressMode, TimeMode,
};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

/// Descriptors that launcher, keeper and supervisor need to start a command. The guard needs more:
/// without them the command runs, and its record is not complete.
const DESCRIPTORS: usize = 11;

/// Runs a command and records it. Returns when the command has ended.
///
/// The caller must have one thread. Afterwards its standard input and output are `/dev/null` and
/// its inherited descriptors are closed, because they belonged to the command. Relative paths in
/// the options start from the present directory. `after` runs in `/`.
pub fn record(mut options: Options) -> Result<RecordingResult, Error> {
    let name = options.command.first().cloned().ok_or(Error::NoCommand)?;
    let name = options.program.clone().unwrap_or(name);
    options.part = absolute(&options.part)?;
    options.log = absolute(&options.log)?;
    options.verdicts = options.verdicts.as_deref().map(absolute).transpose()?;
    let (run, log) = (options.id.clone(), options.log.clone());
    let mut inherited_state = InheritedState::take();
    if options.fixed_addresses {
        inherited_state.personality = Some(sys::fixed_addresses().map_err(Error::Addresses)?);
    }
    let free = sys::free_descriptors(DESCRIPTORS);
    if free < DESCRIPTORS {
        return Err(Error::Descriptors {
            free,
            needed: DESCRIPTORS,
        });
    }
    let end = match launch::search(&name, launch::search_path(&options.variables)) {
        Ok(program) => start(options, program, inherited_state)?,
        Err(errno) => not_found(&options, errno)?,
    };
    Ok(recorded(run, &name, end, &log))
}

/// Ends this process by the signal that ended the command, with its default action and without a
/// core file. Returns if the signal does not end a process.
pub fn end_by_signal(signal: i32) {
    sys::no_core();
    sys::act_on_self(signal);
}

fn absolute(path: &Path) -> Result<std::path::PathBuf, Error> {
    std::path::absolute(path).map_err(Error::file("find", path))
}

fn start(
    mut options: Options,
    program: std::ffi::CString,
    inherited_state: InheritedState,
) -> Result<CommandEnd, Error> {
    let mut environment = launch::environment();
    launch::set_variables(&mut environment, &options.variables);
    let programs = plain_start::programs(&options, &program, &environment, &inherited_state);
    let is_plain = programs.as_ref().is_some_and(KnownPrograms::starts_plain);
    if !is_plain && options.guard == GuardMode::Auto {
        options.guard = GuardMode::On;
    }
    let preload = library::extract(&options.library_dir, form(&options))?;
    let arena = Arena::create(&options.id, flags(&options))?;
    if arena.path().is_none() && options.guard == GuardMode::Auto {
        // Processes would not find the socket. The form of the library works with a filter, too.
        options.guard = GuardMode::On;
    }
    if !address_space::is_left() {
        arena.remove();
        return Err(Error::Room {
            bytes: address_space::NEEDED,
        });
    }
    let name = arena.path().map(Path::to_owned);
    let part = options.part.clone();
    let prepared = Prepared {
        preload,
        environment,
        programs,
    };
    let result = set(options, program, prepared, arena, inherited_state).and_then(play);
    if result.is_err() {
        // The command never ran, so no log is kept.
        if let Some(arena) = name {
            let _ = std::fs::remove_file(&arena);
            backstory_arena::remove_sockets(&arena);
        }
        let _ = std::fs::remove_file(part);
    }
    result
}

/// Parts of the run that are prepared before the arena.
struct Prepared {
    preload: std::ffi::OsString,
    environment: Vec<Vec<u8>>,
    /// The programs of a run with `--guard=auto`.
    programs: Option<KnownPrograms>,
}

/// The form of the recorder. A run that is recorded deeply records no functions.
fn form(options: &Options) -> &'static library::RecorderForm {
    match (&options.deep, &options.functions) {
        (Some(_), _) => &library::DEEP,
        (None, Some(_)) => &library::FUNCTIONS,
        (None, None) if options.guard == GuardMode::Auto => &library::AUTO,
        (None, None) => &library::PLAIN,
    }
}

fn flags(options: &Options) -> u32 {
    let guard = match options.guard {
        GuardMode::Off => 0,
        GuardMode::On => abi::ARENA_GUARDED,
        GuardMode::Strict => abi::ARENA_GUARDED | abi::ARENA_STRICT,
        GuardMode::Auto => abi::ARENA_GUARDED | abi::ARENA_AUTO,
    };
    let suppress = if options.suppress == SuppressMode::On {
        0
    } else {
        abi::ARENA_ALL_OPS
    };
    let keep = match options.contents {
        ContentsMode::Off => 0,
        ContentsMode::Lazy | ContentsMode::All => abi::ARENA_KEEP,
    };
    let ordered = match options.durability {
        DurabilityMode::Ordered => abi::ARENA_ORDERED,
        DurabilityMode::After | DurabilityMode::Sync => 0,
    };
    let full = match options.deep {
        Some(OutputsMode::Full) => abi::ARENA_FULL,
        Some(OutputsMode::Digest) | None => 0,
    };
    let exact = match options.time {
        TimeMode::Exact => abi::ARENA_EXACT,
        TimeMode::Usual => 0,
    };
    let broker = match broker::is_wanted(options) {
        true => abi::ARENA_BROKER,
        false => 0,
    };
    guard | suppress | keep | ordered | full | exact | broker
}

fn set(
    options: Options,
    program: std::ffi::CString,
    prepared: Prepared,
    arena: Arena,
    mut inherited_state: InheritedState,
) -> Result<RunSetup, Error> {
    let Prepared {
        preload,
        environment,
        programs,
    } = prepared;
    let mut inherited = header::inherited();
    inherited.retain(|d| d.fd > 2 || inherited_state.closed & (1 << d.fd) == 0);
    let head = header::header(&options, &environment, &inherited, arena.path());
    let just_changed = clock_tick::just_changed(program.as_bytes(), &options.command, &inherited);
    let part = options.part.clone();
    arena.feeds(&std::path::absolute(&part).unwrap_or_else(|_| part.clone()));
    let (log, claim) = claimed_log(&part, &head)?;
    let bell = rustix::event::eventfd(
        0,
        rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK,
    )
    .map_err(Error::system("make an event descriptor"))?;
    let launcher_fd = rustix::process::pidfd_open(
        rustix::process::getpid(),
        rustix::process::PidfdFlags::empty(),
    );
    let signals = sys::signal_fd().map_err(Error::system("make a signal descriptor"))?;
    let control = Control::map().map_err(Error::system("map shared memory"))?;
    let from_start = matches!(options.guard, GuardMode::On | GuardMode::Strict);
    let shared = from_start
        .then(SharedBuffers::create)
        .transpose()
        .map_err(Error::system("map shared memory"))?;
    let spare = shared
        .is_some()
        .then(sys::socket_pair)
        .transpose()
        .map_err(Error::system("make a pair of sockets"))?;
    inherited_state.mask = sys::set_mask(&sys::all_signals());
    let plan = WatchPlan {
        part,
        log: options.log.clone(),
        detach_after: options.detach_after,
        waits_for_deep_log: options.waits_for_deep_log,
        inherited: inherited.iter().map(|d| d.target.clone()).collect(),
        _claim: Arc::new(claim),
    };
    let lines = options.lines.as_ref().map(|lines| LinePlan {
        session: head.clone(),
        directory: options
            .log
            .parent()
            .map_or_else(Default::default, Path::to_owned),
        new_id: lines.new_id,
        policy: lines.policy.clone(),
    });
    let deep = DeepPlan::of(&head, &options.log);
    let tools = WatchResources {
        deep,
        control,
        bell,
        signals,
        launcher: sys::own_pid(),
        arena,
        log,
        secrets: Secrets::new(&options.redact),
        privileges: Privileges::of_run(options.guard),
        functions: options.functions.clone(),
        plan,
        lines,
    };
    let job = CommandSetup {
        program,
        cwd: head.cwd,
        preload,
        environment,
        inherited,
        just_changed,
        inherited_state,
        launcher_fd: launcher_fd.ok(),
        options,
    };
    Ok(RunSetup {
        tools,
        job,
        shared: shared.map(Arc::new),
        spare,
        broker: None,
        programs,
    })
}

/// Forks the other processes and waits for the command. Restores the caller's signal mask.
fn play(mut setting: RunSetup) -> Result<CommandEnd, Error> {
    sys::become_subreaper();
    if broker::is_wanted(&setting.job.options) {
        setting.broker = BrokerLink::fork();
    }
    let mask = setting.job.inherited_state.mask;
    let after = setting.job.options.after.clone();
    let keeper = match sys::fork() {
        Ok(0) => {
            // Neither a return nor a panic may bring this copy of the launcher back into the
            // launcher's code.
            let life = std::panic::AssertUnwindSafe(|| keeper::run(setting));
            let ended = std::panic::catch_unwind(life);
            sys::exit_now(if ended.is_ok() { 0 } else { 101 })
        }
        Ok(pid) => pid,
        Err(error) => {
            sys::set_mask(&mask);
            return Err(Error::system("fork")(error));
        }
    };
    let end = Launcher::new(setting, keeper).wait(&after);
    sys::set_mask(&mask);
    end
}

/// Records a command that does not exist as a run that never started.
fn not_found(options: &Options, errno: i32) -> Result<CommandEnd, Error> {
    let environment = launch::environment();
    let head = header::header(options, &environment, &header::inherited(), None);
    let end = RunEnd {
        not_started: Some(errno),
        command_ended: clock::now(),
        ended: clock::now(),
        ..RunEnd::default()
    };
    let part = &options.part;
    let (mut log, _claim) = claimed_log(part, &head)?;
    log.end(&end).map_err(Error::log("write", part))?;
    std::fs::rename(part, &options.log).map_err(Error::file("finalize", part))?;
    background::spawn(&options.after);
    Ok(CommandEnd {
        end,
        finalized: true,
        by_key: false,
    })
}

/// The reason why the command could not be executed, in a shell's words.
fn why_not(name: &OsStr, errno: i32) -> String {
    let path = Path::new(name);
    let why = match errno {
        libc::ENOENT if name.is_empty() => return "the command is an empty string".to_owned(),
        libc::ENOENT if !name.as_encoded_bytes().contains(&b'/') => "no such command in PATH".to_owned(),
        libc::ENOENT if path.exists() => "its interpreter is not there".to_owned(),
        libc::EACCES if path.is_dir() => "it is a directory".to_owned(),
        libc::EACCES if path.is_file() => "it may not be executed".to_owned(),
        libc::EAGAIN => {
            "cannot be started: no more processes or threads are allowed beside those that record (`ulimit -u`)".to_owned()
        }
        libc::ENOSYS => "cannot be started: those that record were killed before it".to_owned(),
        other => sys::describe(other),
    };
    format!("{}: {why}", name.display())
}

fn recorded(run: String, name: &OsStr, ended: CommandEnd, log: &Path) -> RecordingResult {
    let CommandEnd {
        end,
        finalized,
        by_key,
    } = ended;
    let missing = !end.incomplete_because.is_empty() || end.lost > 0;
    let complete = match missing {
        true => Some(false),
        // A process that goes on may still lose operations. A log that is not finalized may still
        // be damaged.
        false => (finalized && log.exists()).then_some(true),
    };
    RecordingResult {
        run,
        exit: end.exit,
        signal: end.signal,
        complete,
        lost: end.lost,
        reasons: end.incomplete_because,
        warnings: end.warnings,
        refusal: end.not_started.map(|errno| why_not(name, errno)),
        not_started: end.not_started,
        still_recording: !finalized,
        usage: end.usage,
        by_key,
    }
}
