//! Joins the guard to the run: installs the filter on the thread that starts the command, and runs
//! the receivers.
//!
//! Invariant: the notifications of an installed filter are always responded to, by the receivers or
//! by the keeper. A command whose filter could not be installed runs with the recorder alone, and
//! the run says so.

use crate::Options;
use crate::broker::{self, BrokerLink};
use crate::committer::Committer;
use crate::control::{Control, STARTED};
use crate::drain::Drainer;
use crate::filter_code;
use crate::function_tables::FunctionTables;
use crate::guard_filters::GuardFilters;
use crate::guard_socket::{GuardServices, GuardSocket};
use crate::header::Inherited;
use crate::instruction_redirections::InstructionRedirections;
use crate::launch::Launch;
use crate::lines::mark::{LineMark, MarkQueue};
use crate::plain_programs::{KnownPrograms, PlainPrograms};
use crate::preserve_requests::PreserveRequests;
use backstory_abi as abi;
use backstory_arena::{ChunkSupply, socket_path};
use backstory_eventlog::Reason;
use backstory_functions::UnmatchedPattern;
use backstory_guard::{
    ContentPreserver, Filter, FilterSpec, GuardSettings, Hooks, InstallError, ParkedCall,
    SharedBuffers, Simulator,
};
use backstory_preserve::{Preserver, UnfilteredStart};
use backstory_sys::Pid;
use backstory_vocabulary::{
    ContentsMode, DurabilityMode, GuardMode, IoUringMode, LookupsMode, TimeMode,
};
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Stack of the child that becomes the command.
const START_STACK: usize = 256 << 10;

/// Paths that the run's programs use.
pub(crate) struct RecorderPaths {
    /// Path of the arena, as the programs see it.
    pub arena: Vec<u8>,
    /// Path of the recorder's library.
    pub library: Vec<u8>,
    /// Path of the command's program.
    pub program: Vec<u8>,
}

/// Services for a command that is a shell.
#[derive(Default)]
pub(crate) struct ShellServices {
    /// The queue for its marks.
    pub marks: Option<(Arc<MarkQueue>, &'static Control)>,
    /// Executes its set-user-id programs.
    pub broker: Option<BrokerLink>,
}

/// A start of the command that is under way.
pub(crate) struct PendingStart {
    /// Result of installing the filter.
    pub installed: Receiver<Result<OwnedFd, InstallError>>,
    /// If a filter was installed, the command starts after a message on this channel. The starting
    /// process has a copy of all descriptors until it executes, the listener included. If all other
    /// holders died meanwhile, it would wait for a response from itself.
    pub go: SyncSender<()>,
}

/// Starts the command with the guard's filter.
///
/// Only the starting thread and its descendants have the filter. `done` is signalled when the
/// command's program runs or has failed to start.
pub(crate) fn start(
    options: &Options,
    launch: &Arc<Launch>,
    control: &'static Control,
    stock: &Arc<ChunkSupply>,
    done: [OwnedFd; 2],
) -> io::Result<PendingStart> {
    let filter = filter(options);
    let (tell, installed) = sync_channel(1);
    let (go, may_go) = sync_channel(1);
    let (stock, launch) = (Arc::clone(stock), Arc::clone(launch));
    let thread = std::thread::Builder::new()
        .name("start".into())
        .stack_size(START_STACK);
    thread.spawn(move || {
        let installed = filter.install();
        let guarded = installed.is_ok();
        if !guarded {
            unguarded(&stock);
        }
        // From here on this thread has the filter itself. It makes no watched call.
        let _ = tell.send(installed);
        if guarded {
            let _ = may_go.recv();
        }
        start_and_publish(&launch, control);
        done.iter().for_each(ring);
    })?;
    Ok(PendingStart { installed, go })
}

/// The filter of a run.
fn filter(options: &Options) -> Filter {
    Filter::build(&FilterSpec {
        gate: Some(backstory_recorder::GATE),
        strict: options.guard == GuardMode::Strict,
        lookups: options.lookups == LookupsMode::All,
        refuse_io_uring: options.io_uring == IoUringMode::Refuse,
        restrictions: broker::is_wanted(options),
        durability: options.durability,
    })
}

/// Starts the command on this thread and publishes the result.
pub(crate) fn start_and_publish(launch: &Launch, control: &Control) {
    match launch.start() {
        Ok(true) => control.reach(STARTED),
        Ok(false) => {} // the child has published the reason
        Err(error) => control.set_not_started(error.raw_os_error().unwrap_or(libc::EAGAIN)),
    }
}

/// Tells the recorders that there is no guard.
pub(crate) fn unguarded(stock: &ChunkSupply) {
    let flags = &stock.arena.header().flags;
    flags.fetch_and(!(abi::ARENA_GUARDED | abi::ARENA_STRICT), Ordering::AcqRel);
}

fn ring(bell: &OwnedFd) {
    // If the counter is full, it has woken all its readers already.
    let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
}

/// The running guard.
pub(crate) struct GuardSession {
    filters: Arc<GuardFilters>,
    /// For processes that install a filter later.
    socket: Option<GuardSocket>,
    bridge: Arc<SupervisorHooks>,
    /// The threads that make the log durable.
    committing: Vec<JoinHandle<()>>,
    trouble: Option<Reason>,
}

impl GuardSession {
    /// Starts to respond. `sent` is the result of passing the listener to the keeper.
    // Each argument is another part of the recording.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn begin(
        listener: OwnedFd,
        shared: Arc<SharedBuffers>,
        run: (&Options, &[Inherited]),
        shell: ShellServices,
        ways: RecorderPaths,
        stock: (&Arc<ChunkSupply>, Arc<Mutex<Drainer>>),
        to_keeper: OwnedFd,
        sent: io::Result<()>,
    ) -> GuardSession {
        let mut session = GuardSession::prepare(run, shell, ways, stock, to_keeper);
        session.trouble = sent.err().map(|error| Reason::KeeperWithoutListener {
            error: error.to_string(),
        });
        if let Err(error) = session.filters.begin(listener, shared) {
            session.trouble = Some(Reason::GuardSilent {
                error: error.to_string(),
            });
        }
        session
    }

    /// Makes the socket for a command that starts without a filter.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub(crate) fn begin_without_filter(
        programs: KnownPrograms,
        run: (&Options, &[Inherited]),
        shell: ShellServices,
        ways: RecorderPaths,
        stock: (&Arc<ChunkSupply>, Arc<Mutex<Drainer>>),
        to_keeper: OwnedFd,
    ) -> io::Result<GuardSession> {
        let path = socket_path(Path::new(OsStr::from_bytes(&ways.arena)));
        let arena = Arc::clone(stock.0);
        let start = UnfilteredStart {
            supervisor: std::process::id(),
            directory: std::env::current_dir().ok().map(PathBuf::into_os_string),
            program: ways.program.clone(),
            loaded: programs.loaded_files(),
            loaded_later: programs.files_of_load(),
        };
        let mut session = GuardSession::prepare(run, shell, ways, stock, to_keeper);
        if let Some(preserver) = &session.bridge.preserver {
            preserver.starts_without_filter(start);
        }
        let hooks: Arc<dyn Hooks> = Arc::clone(&session.bridge) as Arc<dyn Hooks>;
        let instructions = filter(run.0).to_bytes();
        if let Some(words) = arena.arena.table() {
            // The socket passes those that do not fit.
            filter_code::publish(words, &instructions);
        }
        let services = GuardServices {
            filters: Arc::clone(&session.filters),
            programs: PlainPrograms::begin(programs, &arena),
            contents: PreserveRequests::new(hooks, &session.filters, &arena),
            instructions,
        };
        session.socket = Some(GuardSocket::begin(path, services)?);
        Ok(session)
    }

    /// Prepares the services for the receivers. No filter exists yet.
    fn prepare(
        (options, inherited): (&Options, &[Inherited]),
        shell: ShellServices,
        ways: RecorderPaths,
        (stock, drainer): (&Arc<ChunkSupply>, Arc<Mutex<Drainer>>),
        to_keeper: OwnedFd,
    ) -> GuardSession {
        let notes = Arc::new(GuardNotes::default());
        let commits = (options.durability != DurabilityMode::After).then(|| {
            let notes = Arc::clone(&notes);
            Committer::start(drainer, Box::new(move |reason| notes.add(reason)))
        });
        let (committer, committing) = commits.unzip();
        let functions = options.functions.clone();
        // Without a thread, no function is recorded. Requests are answered so.
        let functions = functions.and_then(|one| FunctionTables::start(one, stock).ok());
        // Likewise, no instruction.
        let instructions = (options.time == TimeMode::Exact).then(InstructionRedirections::start);
        let bridge = Arc::new(SupervisorHooks {
            stock: Arc::clone(stock),
            supervisor: std::process::id(),
            notes,
            preserver: preserver(options, inherited, stock),
            committer,
            shell,
            functions,
            instructions: instructions.and_then(Result::ok),
        });
        let hooks: Arc<dyn Hooks> = Arc::clone(&bridge) as Arc<dyn Hooks>;
        let settings = settings(options, ways, stock);
        GuardSession {
            filters: Arc::new(GuardFilters::new(hooks, stock, settings, to_keeper)),
            socket: None,
            bridge,
            committing: committing.unwrap_or_default(),
            trouble: None,
        }
    }

    /// Ends the guard.
    pub(crate) fn end(self) -> GuardReport {
        let mut told: Vec<Reason> = self.trouble.into_iter().collect();
        let preserved = self.socket.is_none_or(GuardSocket::end);
        if !self.filters.end() || !preserved {
            told.push(Reason::SlowFileSystem {});
        }
        if let Some(committer) = &self.bridge.committer {
            committer.end(self.committing);
        }
        told.append(&mut self.bridge.notes.take());
        let (warnings, reasons): (Vec<Reason>, Vec<Reason>) =
            told.into_iter().partition(Reason::is_warning);
        let sentences = |of: Vec<Reason>| of.iter().map(Reason::to_string).collect::<Vec<_>>();
        let functions = self.bridge.functions.as_ref();
        let unmatched = functions.map(FunctionTables::unmatched);
        GuardReport {
            reasons: sentences(reasons),
            warnings: sentences(warnings),
            unmatched: unmatched.unwrap_or_default(),
        }
    }
}

/// Makes the settings of a filter: of the one that the command starts with, or of one that joins
/// later (true).
fn settings(
    options: &Options,
    ways: RecorderPaths,
    stock: &Arc<ChunkSupply>,
) -> Box<dyn Fn(bool) -> GuardSettings + Send + Sync> {
    let (strict, lookups) = (
        options.guard == GuardMode::Strict,
        options.lookups == LookupsMode::All,
    );
    let (durability, stock) = (options.durability, Arc::clone(stock));
    let simulator = options.simulator.clone();
    let simulator = simulator.map(|simulator| (simulator, ways.program.clone()));
    Box::new(move |joins_later| GuardSettings {
        gate: Some(backstory_recorder::GATE),
        strict,
        joins_later,
        lookups,
        durability,
        arena_path: ways.arena.clone(),
        arena: stock.arena.fd().try_clone_to_owned().ok(),
        hidden: vec![ways.library.clone()],
        simulator: simulator.as_ref().map(|(options, program)| {
            let words = options.words.iter().map(|word| word.as_bytes().to_vec());
            let words: Vec<Vec<u8>> = words.collect();
            Simulator::new(&words, options.launcher(), program, &options.files)
        }),
        ..GuardSettings::default()
    })
}

/// The guard's report after its end, in sentences.
#[derive(Debug, Default)]
pub(crate) struct GuardReport {
    /// Reasons why the run is incomplete.
    pub reasons: Vec<String>,
    /// Effects of the guard on the programs.
    pub warnings: Vec<String>,
    /// Patterns for which no compiled function was recorded.
    pub unmatched: Vec<UnmatchedPattern>,
}

/// Services of the supervisor for the guard.
struct SupervisorHooks {
    stock: Arc<ChunkSupply>,
    /// Process id of the supervisor.
    supervisor: u32,
    notes: Arc<GuardNotes>,
    preserver: Option<Preserver>,
    /// Makes the log durable, in a run that wants this before its results.
    committer: Option<Arc<Committer>>,
    shell: ShellServices,
    /// The tables of functions, in a run that records calls.
    functions: Option<FunctionTables>,
    /// Redirects instructions, in a run that records them.
    instructions: Option<InstructionRedirections>,
}

/// The preserver of contents, which works beside the log. `None` if contents are not stored.
fn preserver(
    options: &Options,
    inherited: &[Inherited],
    stock: &Arc<ChunkSupply>,
) -> Option<Preserver> {
    let wanted = options.contents != ContentsMode::Off;
    let open = inherited.iter().filter(|i| i.access != libc::O_WRONLY);
    let open = open.map(|i| &i.target[..]);
    wanted.then(|| Preserver::new(options.contents, options.kept_dir(), open, stock))
}

/// Most notes about unreadable processes. More of them add no information.
const NOTES: usize = 20;

/// The reasons that the guard has found.
#[derive(Default)]
struct GuardNotes(Mutex<Vec<Reason>>);

impl GuardNotes {
    fn add(&self, reason: Reason) {
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() < NOTES && !notes.contains(&reason) {
            notes.push(reason);
        }
    }

    fn take(&self) -> Vec<Reason> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Hooks for SupervisorHooks {
    fn announce_chunk(&self, chunk: u32, pid: u32, _tid: u32) {
        self.stock.arena.announce(chunk as usize, pid);
    }

    fn request_chunk(&self, parked: ParkedCall) {
        self.stock.ask(Box::new(parked));
    }

    fn pid_namespace_created(&self) {
        let flags = &self.stock.arena.header().flags;
        flags.fetch_or(abi::ARENA_PIDNS, Ordering::AcqRel);
    }

    fn collects_children_of(&self, parent: u32) -> bool {
        // The supervisor reaps its own children.
        parent == self.supervisor
    }

    fn preserver(&self) -> Option<&dyn ContentPreserver> {
        self.preserver
            .as_ref()
            .map(|preserver| preserver as &dyn ContentPreserver)
    }

    fn commit(&self, parked: ParkedCall) {
        if let Some(committer) = &self.committer {
            committer.push(parked);
        }
    }

    fn line_mark(&self, tid: u32, mark: Vec<u8>, parked: ParkedCall) {
        let Some((queue, control)) = &self.shell.marks else {
            return;
        };
        // The marks of other shells mean nothing: their lines are part of this shell's line.
        let is_shells = control.command_pid() == Some(tid as Pid);
        if let Some(mark) = LineMark::of(&mark).filter(|_| is_shells) {
            queue.push(mark, Box::new(parked));
            self.stock.wake();
        }
    }

    fn function_table(&self, pid: u32, address: u64, parked: ParkedCall) {
        if let Some(functions) = &self.functions {
            functions.request(pid, address, parked);
        }
    }

    fn redirect_instructions(&self, pid: u32, to: u64, parked: ParkedCall) {
        if let Some(instructions) = &self.instructions {
            instructions.request(pid, to, parked);
        }
    }

    fn other_recording(&self, arena: &[u8]) {
        let log = backstory_arena::log_of_arena(Path::new(OsStr::from_bytes(arena)));
        let directory = log.as_deref().and_then(Path::parent);
        let own = self.stock.arena.fed();
        // A run in the same store is joined with this one by the files of both.
        if directory.is_some() && directory == own.as_deref().and_then(Path::parent) {
            return;
        }
        let store = directory.and_then(Path::parent);
        let store = store.map_or("another store".to_owned(), |store| {
            format!("the store {}", store.display())
        });
        self.notes.add(Reason::OtherRecording { store });
    }

    fn restricts_itself(&self, tid: u32) {
        if let Some(broker) = &self.shell.broker {
            broker.mark(tid);
        }
    }

    fn may_use_broker(&self, tid: u32) -> bool {
        let broker = self.shell.broker.as_ref();
        broker.is_some_and(|broker| broker.may_serve(tid))
    }

    fn broker_socket(&self, tid: u32, waits: &dyn Fn() -> bool) -> Option<OwnedFd> {
        self.shell.broker.as_ref()?.connect(tid, waits)
    }

    fn report(&self, reason: Reason) {
        self.notes.add(reason);
    }
}
