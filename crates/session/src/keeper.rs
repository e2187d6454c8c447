//! The keeper: a silent process between launcher and supervisor that outlives the supervisor and
//! takes over from it.
//!
//! Invariants:
//!
//! - The keeper stays in the launcher's process group while the launcher lives, and counts the
//!   signals to the group. So the launcher knows which signals were sent to it alone.
//! - It does nothing else until it is needed.
//! - Once it responds to the guard's notifications, it does so until no process with the filter is
//!   left.
//! - It reads its socket as long as it has it, and reads the rest when it closes it. So no process
//!   waits for ever to send its listener, or for a response by a listener that it has sent.

use crate::control::SEALED;
use crate::drain::Asking;
use crate::fallback_responder::{FallbackResponder, nobody_is_left};
use crate::keeper_socket::KeeperSocket;
use crate::setting::{CommandSetup, RunSetup, WatchResources};
use crate::supervisor;
use crate::{background, keeper_messages};
use backstory_eventlog::Reason;
use backstory_guard::SharedBuffers;
use backstory_sys::{self as sys, Pid};
use backstory_vocabulary::GuardMode;
use rustix::event::{PollFd, PollFlags, poll};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Runs the keeper. Ends with the process, or with its copy as the supervisor.
pub(crate) fn run(setting: RunSetup) {
    #[cfg(panic = "unwind")]
    end_at_panic();
    let control = setting.tools.control;
    control.keeper.store(sys::own_pid(), Ordering::Release);
    sys::become_subreaper();
    let Ok((mine, supervisors)) = sys::socket_pair() else {
        return;
    };
    let socket = socket(&setting);
    match sys::fork() {
        Ok(0) => {
            drop((mine, socket));
            if control.has_supervisor(sys::own_pid()) {
                supervisor::run(setting, &supervisors);
            }
        }
        Ok(pid) => {
            control.has_supervisor(pid);
            drop(supervisors);
            keep(setting, mine, socket, pid);
        }
        Err(_) => {}
    }
}

/// Ends the process if one of its threads panics, as a release build does. Recorded processes would
/// wait for that thread for ever.
#[cfg(panic = "unwind")]
fn end_at_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
}

/// The socket for processes that install a filter while they run. Without it, only the supervisor
/// can take their listeners.
fn socket(setting: &RunSetup) -> Option<KeeperSocket> {
    let installed_later = setting.job.options.guard == GuardMode::Auto;
    let arena = setting.tools.arena.path().filter(|_| installed_later);
    KeeperSocket::create(arena?).ok()
}

fn keep(
    setting: RunSetup,
    from_supervisor: OwnedFd,
    socket: Option<KeeperSocket>,
    supervisor: Pid,
) {
    sys::set_name(c"backstory-keep");
    let RunSetup {
        tools,
        mut job,
        shared,
        spare,
        broker,
        programs,
    } = setting;
    drop((spare, broker, programs));
    job.let_go(&[0, 1, 2]);
    job.launcher_fd = None;
    let _ = rustix::process::chdir("/"); // for the reason given in the supervisor
    sys::signal_at_parents_end(libc::SIGCHLD);
    let mut keeper = KeeperState {
        from_supervisor,
        socket,
        shared,
        joining: None,
        filters: Vec::new(),
        answering: Vec::new(),
        in_group: true,
    };
    keeper.wait_for_supervisor(&tools, supervisor);
    if tools.control.reached(SEALED) {
        sys::reap(supervisor);
        keeper.serve_to_the_end();
    } else {
        sys::wait_for(supervisor);
        keeper.inherit(tools, job);
    }
}

/// The state of the keeper.
struct KeeperState {
    from_supervisor: OwnedFd,
    /// For listeners that the supervisor does not take (`--guard=auto`).
    socket: Option<KeeperSocket>,
    /// The buffers of the filter that the command starts with.
    shared: Option<Arc<SharedBuffers>>,
    /// The buffers of the filter whose listener arrives next.
    joining: Option<Arc<SharedBuffers>>,
    /// The filters that the supervisor serves.
    filters: Vec<(OwnedFd, Arc<SharedBuffers>)>,
    /// The filters that this process serves.
    answering: Vec<FallbackResponder>,
    /// True while the keeper is in the launcher's process group.
    in_group: bool,
}

impl KeeperState {
    /// Returns when the process at the other end is no supervisor any more. The end of the socket
    /// is not enough: the command has a copy of the socket until it executes. Its `execve` may be
    /// the very call that waits for a response from the keeper.
    fn wait_for_supervisor(&mut self, tools: &WatchResources, supervisor: Pid) {
        loop {
            let mut fds = vec![
                PollFd::new(&tools.signals, PollFlags::IN),
                PollFd::new(&self.from_supervisor, PollFlags::IN),
            ];
            let others = self.waits_for();
            fds.extend(others.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
            if poll(&mut fds, Some(&sys::LOOK_AFTER)).is_err() {
                continue;
            }
            let (signals, news) = (fds[0].revents(), fds[1].revents());
            drop(fds);
            self.answer();
            if news.contains(PollFlags::IN) {
                self.hear();
            }
            // A supervisor that has just sent a message does not stand still. With `--guard=auto`
            // it sends many.
            if news == PollFlags::IN && signals.is_empty() {
                continue;
            }
            count_signals(tools);
            self.leave_group_without_launcher(tools);
            sys::keep_going(supervisor);
            let died = sys::child_change(Some(supervisor), libc::WEXITED | libc::WNOWAIT);
            if news.contains(PollFlags::HUP) || matches!(died, Ok(Some(_))) {
                self.hear();
                return;
            }
        }
    }

    /// Receives messages of the supervisor.
    fn hear(&mut self) {
        while let Some((byte, descriptor)) = sys::receive_fd(self.from_supervisor.as_fd()) {
            match (byte, descriptor) {
                (keeper_messages::LISTENER, Some(listener)) => {
                    let buffers = self.joining.take().or_else(|| self.shared.clone());
                    self.filters.retain(|(one, _)| !nobody_is_left(one));
                    self.filters
                        .extend(buffers.map(|buffers| (listener, buffers)));
                }
                (keeper_messages::BUFFERS, Some(file)) => {
                    self.joining = SharedBuffers::of_file(file.as_fd()).ok().map(Arc::new);
                }
                (keeper_messages::SERVE_LAST, _) => {
                    let last = self.filters.pop();
                    self.answering.extend(last.map(begin));
                }
                (keeper_messages::SERVE, _) => self.serve(),
                _ => {}
            }
        }
    }

    /// Leaves a process group whose launcher is gone, because it belongs to the shell then.
    fn leave_group_without_launcher(&mut self, tools: &WatchResources) {
        if self.in_group && sys::parent() != Some(tools.launcher) {
            self.in_group = false;
            sys::leave_session();
        }
    }

    /// Responds to notifications from now on, until no process with a filter is left.
    fn serve(&mut self) {
        let filters = std::mem::take(&mut self.filters);
        self.answering.extend(filters.into_iter().map(begin));
    }

    /// The descriptors of processes, to poll before [`KeeperState::answer`].
    fn waits_for(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let calls = self.answering.iter();
        let calls = calls.filter_map(FallbackResponder::waits_for);
        let listeners = self.socket.iter().map(KeeperSocket::waits_for);
        listeners.chain(calls)
    }

    /// Takes the listeners that processes have sent. Responds to the notifications that wait now,
    /// unless threads do so in the background.
    fn answer(&mut self) {
        self.take_listeners();
        self.answering
            .iter_mut()
            .for_each(FallbackResponder::answer);
    }

    fn take_listeners(&mut self) {
        let listeners = self.socket.as_ref().map(KeeperSocket::take);
        self.respond_by(listeners.unwrap_or_default());
    }

    /// Responds from now on by listeners that the supervisor did not take. It may have served one
    /// of them before its death. Then two threads respond by it.
    fn respond_by(&mut self, listeners: Vec<OwnedFd>) {
        for listener in listeners {
            // Without memory for a notification, the calls of the process fail.
            if let Ok(buffers) = SharedBuffers::create() {
                self.answering.retain(|one| !one.is_over());
                self.answering.push(begin((listener, Arc::new(buffers))));
            }
        }
    }

    /// True if this process responds by no listener any more. The socket is closed then. A process
    /// may have sent its listener just before: it is served.
    fn is_over(&mut self) -> bool {
        self.answering.retain(|one| !one.is_over());
        if self.answering.is_empty()
            && let Some(socket) = self.socket.take()
        {
            self.respond_by(socket.close());
        }
        self.answering.is_empty()
    }

    /// Serves the processes that still have a filter after the log is finalized.
    fn serve_to_the_end(mut self) {
        self.take_listeners();
        let over = |(listener, _): &(OwnedFd, _)| nobody_is_left(listener);
        if self.filters.iter().all(over) && self.is_over() {
            return;
        }
        sys::forget_children(); // zombies of the daemons
        self.serve();
        self.serve_until_over();
    }

    /// Responds to notifications, and takes further listeners, until no process with one of the
    /// filters is left.
    fn serve_until_over(mut self) {
        loop {
            self.answer();
            if self.is_over() {
                return;
            }
            let calls = self.answering.iter().map(FallbackResponder::call_or_end);
            let listeners = self.socket.iter().map(KeeperSocket::waits_for);
            let listeners = listeners.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            let mut fds: Vec<_> = calls.chain(listeners).collect();
            let _ = poll(&mut fds, None);
        }
    }

    /// Takes over from a supervisor that died before the log was finalized.
    fn inherit(mut self, tools: WatchResources, job: CommandSetup) {
        self.serve();
        let launcher = tools.launcher;
        let (mut watch, stock) = tools.into_watch(None);
        watch.add_reason(&Reason::SupervisorDied {});
        watch.start_draining(&stock, Asking::Impossible);
        while !watch.step() {
            let calls: Vec<_> = self.waits_for().collect();
            watch.wait(&calls);
            self.answer();
        }
        watch.leave_launcher_running(|| {
            self.answer();
            sys::parent() == Some(launcher) // the launcher is the parent of this process
        });
        watch.sync();
        self.take_listeners();
        if self.is_over() {
            background::become_it(&job.options.after);
        } else {
            background::spawn(&job.options.after);
            self.serve_to_the_end();
        }
    }
}

fn begin((listener, buffers): (OwnedFd, Arc<SharedBuffers>)) -> FallbackResponder {
    FallbackResponder::begin(listener, buffers)
}

/// Counts the signals that a process sent to the whole group. Signals of the terminal and of the
/// kernel do not count, nor do signals that the launcher sends to the keeper alone.
fn count_signals(tools: &WatchResources) {
    tools.control.keeper_counts.fetch_add(1, Ordering::AcqRel);
    while let Some(info) = sys::read_signal(tools.signals.as_fd()) {
        let counter = tools.control.group_signals.get(info.ssi_signo as usize);
        let counts = sys::sent_by_process(&info) && info.ssi_pid as Pid != tools.launcher;
        if let (true, Some(counter)) = (counts, counter) {
            counter.fetch_add(1, Ordering::Release);
        }
    }
    tools.control.keeper_counts.fetch_add(1, Ordering::AcqRel);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard_filters::tests::guarded;
    use crate::keeper_socket::tests::{is_refused, send, send_nothing, socket_at};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// After this time, a process that should go on counts as waiting for ever.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// A keeper that responds by these listeners.
    fn serving(socket: KeeperSocket, listeners: Vec<OwnedFd>) -> KeeperState {
        let (from_supervisor, _) = sys::socket_pair().unwrap();
        let mut keeper = KeeperState {
            from_supervisor,
            socket: Some(socket),
            shared: None,
            joining: None,
            filters: Vec::new(),
            answering: Vec::new(),
            in_group: false,
        };
        keeper.respond_by(listeners);
        keeper
    }

    /// Messages that the socket of a keeper holds before a sender has to wait.
    fn queue() -> usize {
        let limit = std::fs::read_to_string("/proc/sys/net/unix/max_dgram_qlen");
        let limit = limit.ok().and_then(|text| text.trim().parse().ok());
        limit.unwrap_or(512)
    }

    #[test]
    fn after_the_end_of_the_log_no_sender_to_the_keeper_waits_for_ever() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let socket = socket_at(&path);
        let (first, second) = (guarded(), guarded());
        let ((Ok(served), go, daemon), (Ok(listener), may_open, opener)) = (first, second) else {
            let why = "no filter can be installed";
            return backstory_testkit::need::skipped("a keeper after the end of the log", why);
        };
        let keeper = serving(socket, vec![served]);
        let (tell_end, ended) = channel();
        std::thread::spawn(move || {
            keeper.serve_until_over();
            tell_end.send(()).unwrap();
        });
        let (tell, opened) = channel();
        std::thread::spawn(move || {
            for _ in 0..=queue() {
                send_nothing(&path);
            }
            send(&path, listener.as_fd());
            drop(listener);
            may_open.send(()).unwrap();
            tell.send(opener.join().unwrap()).unwrap();
        });
        assert_eq!(opened.recv_timeout(PATIENCE), Ok(true));
        go.send(()).unwrap();
        assert!(daemon.join().unwrap());
        assert_eq!(ended.recv_timeout(PATIENCE), Ok(()));
    }

    #[test]
    fn a_listener_that_was_sent_before_the_keeper_ends_is_served() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let mut keeper = serving(socket_at(&path), Vec::new());
        let (Ok(listener), go, thread) = guarded() else {
            let why = "no filter can be installed";
            return backstory_testkit::need::skipped("a keeper that ends", why);
        };
        send(&path, listener.as_fd());
        drop(listener);
        assert!(!keeper.is_over());
        assert!(is_refused(&path));
        go.send(()).unwrap();
        keeper.serve_until_over();
        assert!(thread.join().unwrap());
        let mut idle = serving(socket_at(&directory.path().join("other")), Vec::new());
        assert!(idle.is_over());
    }
}
