//! The supervisor: starts the command, drains the arena, responds to the guard's notifications and
//! ends the log.
//!
//! Invariant: from the moment the command runs, the supervisor holds nothing that the command could
//! need: no inherited descriptor, no terminal, no directory.

use crate::background;
use crate::broker::BrokerLink;
use crate::control::Control;
use crate::drain::Asking;
use crate::guarding::{self, GuardSession, RecorderPaths, ShellServices};
use crate::keeper_messages::LISTENER;
use crate::launch::Launch;
use crate::lines::mark::MarkQueue;
use crate::plain_programs::KnownPrograms;
use crate::setting::{CommandSetup, RunSetup};
use crate::watch::CommandWatch;
use backstory_arena::ChunkSupply;
use backstory_eventlog::Reason;
use backstory_sys as sys;
use backstory_vocabulary::DurabilityMode;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Time for the launcher to end after its notification, before writing the log keeps the disk busy.
const FRONT_LEAVES: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Runs the supervisor. `to_keeper` closes when this process ends or executes another program. The
/// keeper then knows that it is no supervisor any more.
pub(crate) fn run(setting: RunSetup, to_keeper: &OwnedFd) {
    sys::become_subreaper();
    sys::set_name(c"backstory-super");
    sys::heap::share_between_threads();
    let RunSetup {
        tools,
        mut job,
        shared,
        spare,
        broker,
        programs,
    } = setting;
    let control = tools.control;
    let after = std::mem::take(&mut job.options.after);
    let keeper_pid = control.keeper.load(Ordering::Acquire);
    let arena = tools.arena.public_path(keeper_pid);
    let marks = tools.lines.as_ref().map(|_| Arc::<MarkQueue>::default());
    let (mut watch, stock) = tools.into_watch(marks.clone());

    let at = backstory_sys::clock::counter();
    let started = job
        .launch(&arena, control)
        .map_err(|_| libc::EINVAL)
        .and_then(|launch| {
            let start = Start {
                launcher: spare.map(|(_, give)| give),
                job: &job,
                control,
                stock: &stock,
                watch: &mut watch,
                marks,
                broker,
            };
            match (shared, programs.clone()) {
                (Some(shared), _) => start.guarded(launch, shared, arena.as_bytes(), to_keeper),
                (None, Some(programs)) => {
                    start.without_filter(&launch, programs, arena.as_bytes(), to_keeper)
                }
                (None, None) => start.plain(&launch),
            }
            .map_err(|error| error.raw_os_error().unwrap_or(libc::EAGAIN))
        });
    let (told, unseen) = started.unwrap_or_else(|errno| {
        control.set_not_started(errno);
        (None, false)
    });
    let mut roles = Roles {
        launcher: job.launcher_fd.take(),
        started: told,
        must_kill: false,
    };
    watch.set_starting(roles.started.is_some());
    if roles.started.is_none() {
        resolve_in(&job, &watch);
    }
    if unseen {
        job.tell(at, control, watch.reporter());
    }
    if job.options.followed {
        watch.follow();
    }
    watch.start_draining(&stock, Asking::Possible);
    roles.watch_all(&mut watch, control, &job);
    watch.leave_launcher_running(|| roles.launcher_lives());
    roles.let_launcher_leave();
    watch.sync();
    if let (Some(programs), Some(path)) = (programs, &job.options.verdicts) {
        programs.keep(path);
    }
    background::become_it(&after);
}

/// A start of the command.
struct Start<'a> {
    /// The socket from which the launcher receives the listener, if it must.
    launcher: Option<OwnedFd>,
    job: &'a CommandSetup,
    control: &'static Control,
    stock: &'a Arc<ChunkSupply>,
    watch: &'a mut CommandWatch,
    /// The queue for the marks of a shell.
    marks: Option<Arc<MarkQueue>>,
    broker: Option<BrokerLink>,
}

/// A descriptor that signals the start of the command, if it is still to come; and whether no other
/// observer has seen the start.
type Started = (Option<OwnedFd>, bool);

impl Start<'_> {
    fn plain(self, launch: &Launch) -> io::Result<Started> {
        guarding::start_and_publish(launch, self.control);
        Ok((None, true))
    }

    /// Starts the command without a filter. Its processes install one when they need it.
    fn without_filter(
        self,
        launch: &Launch,
        programs: KnownPrograms,
        arena: &[u8],
        to_keeper: &OwnedFd,
    ) -> io::Result<Started> {
        let ways = self.paths(arena);
        self.watch.confirm_at_end(programs.clone());
        let session = to_keeper.try_clone().and_then(|to_keeper| {
            let run = (&self.job.options, &self.job.inherited[..]);
            let stock = (self.stock, self.watch.drainer());
            let shell = ShellServices::default();
            GuardSession::begin_without_filter(programs, run, shell, ways, stock, to_keeper)
        });
        match session {
            Ok(session) => self.watch.at_end(Box::new(|| session.end())),
            Err(error) => {
                let error = error.to_string();
                self.watch.add_reason(&Reason::NoGuard { error });
            }
        }
        self.plain(launch)
    }

    fn paths(&self, arena: &[u8]) -> RecorderPaths {
        RecorderPaths {
            arena: arena.to_vec(),
            library: crate::library::home(&self.job.preload),
            program: self.job.program.to_bytes().to_vec(),
        }
    }

    fn guarded(
        self,
        launch: Launch,
        shared: Arc<backstory_guard::SharedBuffers>,
        arena: &[u8],
        to_keeper: &OwnedFd,
    ) -> io::Result<Started> {
        let options = &self.job.options;
        let (to_keeper, done, bells) = match self.descriptors(to_keeper) {
            Ok(descriptors) => descriptors,
            Err(error) => {
                guarding::unguarded(self.stock);
                let error = error.to_string();
                self.watch.add_reason(&Reason::NoGuard { error });
                return self.plain(&launch);
            }
        };
        let launch = Arc::new(launch);
        let begun = match guarding::start(options, &launch, self.control, self.stock, bells) {
            Ok(begun) => begun,
            Err(error) => {
                guarding::unguarded(self.stock);
                let error = error.to_string();
                self.watch.add_reason(&Reason::NoGuard { error });
                return self.plain(&launch);
            }
        };
        match begun.installed.recv() {
            Ok(Ok(listener)) => {
                let sent = sys::send_fd(to_keeper.as_fd(), LISTENER, listener.as_fd());
                if let Some(launcher) = &self.launcher {
                    // A failure matters only if keeper and supervisor both die.
                    let _ = sys::send_fd(launcher.as_fd(), LISTENER, listener.as_fd());
                }
                let _ = begun.go.send(());
                let ways = self.paths(arena);
                if options.durability != DurabilityMode::After {
                    self.watch.append_pieces();
                }
                let guarding = GuardSession::begin(
                    listener,
                    shared,
                    (options, &self.job.inherited),
                    ShellServices {
                        marks: self.marks.map(|queue| (queue, self.control)),
                        broker: self.broker,
                    },
                    ways,
                    (self.stock, self.watch.drainer()),
                    to_keeper,
                    sent,
                );
                self.watch.at_end(Box::new(|| guarding.end()));
                Ok((Some(done), false))
            }
            Ok(Err(error)) => {
                let why = error.to_string();
                self.watch.add_reason(&Reason::NoFilter { why });
                wait_for(&done);
                Ok((None, true))
            }
            Err(_) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

/// The guard's way to the keeper, the descriptor that signals its end, and its bells.
type GuardDescriptors = (OwnedFd, OwnedFd, [OwnedFd; 2]);

impl Start<'_> {
    /// The descriptors of the guard. Few may be left, and the command runs without a guard then.
    fn descriptors(&self, to_keeper: &OwnedFd) -> io::Result<GuardDescriptors> {
        let done = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let bells = [self.watch.bell()?, done.try_clone()?];
        Ok((to_keeper.try_clone()?, done, bells))
    }
}

fn wait_for(bell: &OwnedFd) {
    while poll(&mut [PollFd::new(bell, PollFlags::IN)], None).is_err() {}
}

/// Releases the session, descriptors and directory that the command inherited, once the command
/// runs or has failed to start.
fn resolve_in(job: &CommandSetup, watch: &CommandWatch) {
    sys::leave_session();
    job.let_go(&[0, 1, 2]);
    // A directory that this process kept busy could not be unmounted by the command.
    let _ = rustix::process::chdir("/");
    watch.ring();
}

/// The other processes that the supervisor still expects to hear from.
struct Roles {
    launcher: Option<OwnedFd>,
    started: Option<OwnedFd>,
    /// The launcher was killed, and the command has not been killed for it.
    must_kill: bool,
}

impl Roles {
    /// Watches until the log is finalized. If the launcher is killed, the command is killed, too:
    /// it would not have outlived its own killing.
    fn watch_all(
        &mut self,
        watch: &mut CommandWatch,
        control: &'static Control,
        job: &CommandSetup,
    ) {
        while !watch.step() {
            let places = [&self.launcher, &self.started];
            let others: Vec<_> = places
                .iter()
                .flat_map(|p| p.as_ref())
                .map(AsFd::as_fd)
                .collect();
            let mut woken = watch.wait(&others).into_iter();
            let [launcher, started] =
                places.map(|place| place.is_some() && woken.next() == Some(true));
            if started {
                self.started = None;
                watch.set_starting(false);
                resolve_in(job, watch);
            }
            if launcher {
                self.launcher = None;
                // If it was killed while it was stopped, it will not say that it goes on.
                control.launcher_stops.store(0, Ordering::SeqCst);
                self.must_kill = !watch.dismissed();
            }
            // A command that is still being started has no number yet.
            if self.must_kill && control.ended().is_none() {
                self.must_kill = !kill_command(control);
            }
        }
    }

    /// True until the launcher has ended.
    fn launcher_lives(&self) -> bool {
        self.launcher.as_ref().is_some_and(|launcher| {
            let mut fds = [PollFd::new(launcher, PollFlags::IN)];
            !poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ended| ended > 0)
        })
    }

    /// Gives the launcher time to end, so that its last steps do not wait for the disk.
    fn let_launcher_leave(&self) {
        if let Some(launcher) = &self.launcher {
            let mut fds = [PollFd::new(launcher, PollFlags::IN)];
            let _ = poll(&mut fds, Some(&FRONT_LEAVES)); // continues after a timeout, too
        }
    }
}

/// Kills the command. False if its number is not known yet.
fn kill_command(control: &Control) -> bool {
    let command = control.command_pid();
    if let Some(pid) = command {
        // It may have ended by itself in this moment.
        let _ = sys::kill(pid, libc::SIGKILL);
    }
    command.is_some()
}
