//! Joins the guard to the run: installs its filter on the thread that starts the command, and serves its receivers.
//!
//! Invariant: a filter that is installed is answered, by the receivers or by the keeper; a command whose
//! filter could not be installed runs with the recorder alone, and the run says so.

use crate::Options;
use crate::control::{Control, STARTED};
use crate::header::Inherited;
use crate::launch::Launch;
use backstory_abi as abi;
use backstory_arena::{ChunkSupply, ChunkWriter};
use backstory_eventlog::Reason;
use backstory_guard::{
    ContentPreserver, Filter, FilterSpec, GuardSettings, Hooks, InstallError, ParkedCall,
    Receivers, SharedBuffers,
};
use backstory_preserve::Preserver;
use backstory_vocabulary::{ContentsMode, GuardMode, IoUringMode, LookupsMode};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Tells the keeper to answer from now on.
pub(crate) const SERVE: u8 = b'S';

/// The child that becomes the command has a stack of its own.
const START_STACK: usize = 256 << 10;

/// What has to be known of the run's programs.
pub(crate) struct RecorderPaths {
    /// How they find the arena.
    pub arena: Vec<u8>,
    /// Where the recorder's library is.
    pub library: Vec<u8>,
}

/// A start that has begun.
pub(crate) struct PendingStart {
    /// What the filter's installation came to.
    pub installed: Receiver<Result<OwnedFd, InstallError>>,
    /// The command is started once something was sent here, if there is a filter. Who starts has a copy of all our descriptors until it
    /// executes, the listener's too: were all others gone that hold one, it would wait for an answer from nobody but itself.
    pub go: SyncSender<()>,
}

/// Starts the command with the guard's filter on it.
///
/// The filter is on the starting thread and what comes from it only. `done` is rung when the command's program runs or can't.
pub(crate) fn start(
    options: &Options,
    launch: &Arc<Launch>,
    control: &'static Control,
    stock: &Arc<ChunkSupply>,
    done: [OwnedFd; 2],
) -> io::Result<PendingStart> {
    let filter = Filter::build(&FilterSpec {
        gate: Some(backstory_recorder::GATE),
        strict: options.guard == GuardMode::Strict,
        lookups: options.lookups == LookupsMode::All,
        refuse_io_uring: options.io_uring == IoUringMode::Refuse,
    });
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
        // From here on this thread is watched itself: it makes no call that the filter knows.
        let _ = tell.send(installed);
        if guarded {
            let _ = may_go.recv();
        }
        start_and_publish(&launch, control);
        done.iter().for_each(ring);
    })?;
    Ok(PendingStart { installed, go })
}

/// Starts the command on this thread and publishes what came of it.
pub(crate) fn start_and_publish(launch: &Launch, control: &Control) {
    match launch.start() {
        Ok(true) => control.reach(STARTED),
        Ok(false) => {} // the child has said why
        Err(error) => control.set_not_started(error.raw_os_error().unwrap_or(libc::EAGAIN)),
    }
}

/// Recorders must not count on the guard.
pub(crate) fn unguarded(stock: &ChunkSupply) {
    let flags = &stock.arena.header().flags;
    flags.fetch_and(!(abi::ARENA_GUARDED | abi::ARENA_STRICT), Ordering::AcqRel);
}

fn ring(bell: &OwnedFd) {
    // A full counter has woken everybody already.
    let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
}

/// The guard at work.
pub(crate) struct GuardSession {
    receivers: Option<Receivers>,
    bridge: Arc<SupervisorHooks>,
    to_keeper: OwnedFd,
    trouble: Option<Reason>,
}

impl GuardSession {
    /// Starts to answer. `sent` says what came of handing the listener to the keeper.
    pub(crate) fn begin(
        listener: OwnedFd,
        shared: Arc<SharedBuffers>,
        (options, inherited): (&Options, &[Inherited]),
        ways: RecorderPaths,
        stock: &Arc<ChunkSupply>,
        to_keeper: OwnedFd,
        sent: io::Result<()>,
    ) -> GuardSession {
        let bridge = Arc::new(SupervisorHooks {
            stock: Arc::clone(stock),
            supervisor: std::process::id(),
            notes: Mutex::default(),
            preserver: preserver(options, inherited, stock),
        });
        let watch = GuardSettings {
            gate: Some(backstory_recorder::GATE),
            strict: options.guard == GuardMode::Strict,
            lookups: options.lookups == LookupsMode::All,
            arena_path: ways.arena,
            arena: stock.arena.fd().try_clone_to_owned().ok(),
            hidden: vec![ways.library],
        };
        let for_sinks = Arc::clone(stock);
        let hooks: Arc<dyn Hooks> = Arc::clone(&bridge) as Arc<dyn Hooks>;
        let make_sink = move || ChunkWriter::new(Arc::clone(&for_sinks));
        let started = Receivers::start(listener, shared, watch, make_sink, hooks);
        let mut trouble = sent.err().map(|error| Reason::KeeperWithoutListener {
            error: error.to_string(),
        });
        let receivers = started
            .map_err(|error| {
                trouble = Some(Reason::GuardSilent {
                    error: error.to_string(),
                });
                // The keeper has the listener, too, and nothing else to do.
                let _ = rustix::io::write(&to_keeper, &[SERVE]);
            })
            .ok();
        if let Some(receivers) = &receivers {
            let monitor = receivers.monitor();
            stock.look_regularly(Box::new(move || monitor.check()));
        }
        GuardSession {
            receivers,
            bridge,
            to_keeper,
            trouble,
        }
    }

    /// Ends the guard's part.
    pub(crate) fn end(self) -> GuardReport {
        let mut told: Vec<Reason> = self.trouble.into_iter().collect();
        if let Some(receivers) = self.receivers {
            let ended = receivers.ended();
            if !receivers.stop() {
                told.push(Reason::SlowFileSystem {});
            }
            if !ended {
                // Whoever is still there must not wait for an answer.
                let _ = rustix::io::write(&self.to_keeper, &[SERVE]);
            }
        }
        told.append(&mut self.bridge.notes());
        let (warnings, reasons): (Vec<Reason>, Vec<Reason>) =
            told.into_iter().partition(Reason::is_warning);
        let sentences = |of: Vec<Reason>| of.iter().map(Reason::to_string).collect();
        GuardReport {
            reasons: sentences(reasons),
            warnings: sentences(warnings),
        }
    }
}

/// What the guard has to tell once it has ended, in sentences.
#[derive(Debug, Default)]
pub(crate) struct GuardReport {
    /// What makes the run incomplete.
    pub reasons: Vec<String>,
    /// What was not as it would have been without the guard.
    pub warnings: Vec<String>,
}

/// What the supervisor does for the guard.
struct SupervisorHooks {
    stock: Arc<ChunkSupply>,
    /// This process.
    supervisor: u32,
    notes: Mutex<Vec<Reason>>,
    preserver: Option<Preserver>,
}

/// Who keeps contents, if they are to be kept: beside the log.
fn preserver(
    options: &Options,
    inherited: &[Inherited],
    stock: &Arc<ChunkSupply>,
) -> Option<Preserver> {
    let wanted = options.contents != ContentsMode::Off;
    let place = options.log.with_extension("kept");
    let open = inherited.iter().filter(|i| i.access != libc::O_WRONLY);
    let open = open.map(|i| &i.target[..]);
    wanted.then(|| Preserver::new(options.contents, place, open, stock))
}

/// So many processes that can't be read say the same as more of them.
const NOTES: usize = 20;

impl SupervisorHooks {
    fn notes(&self) -> std::sync::MutexGuard<'_, Vec<Reason>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
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
        // The supervisor reaps its children itself.
        parent == self.supervisor
    }

    fn preserver(&self) -> Option<&dyn ContentPreserver> {
        self.preserver
            .as_ref()
            .map(|preserver| preserver as &dyn ContentPreserver)
    }

    fn report(&self, reason: Reason) {
        let mut notes = self.notes();
        if notes.len() < NOTES && !notes.contains(&reason) {
            notes.push(reason);
        }
    }
}
