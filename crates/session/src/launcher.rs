//! The launcher: the process that the shell started and waits for. It represents the command to the
//! shell.
//!
//! Invariants:
//!
//! - It returns as soon as the end of the command is published.
//! - It stops when the command stops.
//! - A signal sent to it alone is passed on to the command, once.

use crate::control::{Control, DISMISSED, EARLY, ENDED, LOGGED, NOT_STARTED, SEALED, STARTED};
use crate::drain::Asking;
use crate::fallback_responder::FallbackResponder;
use crate::group_signals::{GROUP_SIGNAL, GroupSignals};
use crate::setting::RunSetup;
use crate::{Error, background};
use backstory_eventlog::Reason;
use backstory_eventlog::run::RunEnd;
use backstory_sys::process_tree as tree;
use backstory_sys::{self as sys, Pid};
use rustix::event::{PollFd, PollFlags, poll};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The state of the launcher.
pub(crate) struct Launcher {
    setting: RunSetup,
    /// The socket that holds a copy of the guard's listener.
    spare: Option<OwnedFd>,
    keeper: Pid,
    keeper_lives: bool,
    supervisor_lives: bool,
    let_go: bool,
    stops_seen: u32,
    group_signals: GroupSignals,
    /// Signals that the kernel itself sent, as bits. Most come from keys of the terminal.
    from_kernel: u64,
}

/// The end of a recording, as the launcher sees it.
pub(crate) struct CommandEnd {
    /// The end of the command.
    pub end: RunEnd,
    /// True if the log is finalized already, and `end` has all reasons of the run.
    pub finalized: bool,
    /// A key of the terminal ended the command, and the signal reached the launcher, too.
    pub by_key: bool,
}

impl Launcher {
    /// Called after the keeper was forked.
    pub(crate) fn new(mut setting: RunSetup, keeper: Pid) -> Launcher {
        let spare = setting.spare.take().map(|(take, _)| take);
        // The broker ends when the supervisor does.
        setting.broker = None;
        Launcher {
            spare,
            setting,
            keeper,
            keeper_lives: true,
            supervisor_lives: true,
            let_go: false,
            stops_seen: 0,
            group_signals: GroupSignals::default(),
            from_kernel: 0,
        }
    }

    fn control(&self) -> &'static Control {
        self.setting.tools.control
    }

    /// Waits for the end of the command. If this process is the last one left, it also starts
    /// `after`.
    pub(crate) fn wait(mut self, after: &[OsString]) -> Result<CommandEnd, Error> {
        let control = self.control();
        loop {
            self.look_at_children();
            if let Some(end) = control.summary() {
                self.take_signals();
                control.reach(DISMISSED);
                return Ok(CommandEnd {
                    // An early end lacks what the run's last processes did, and one from before
                    // the log was finalized what became known then. The log may be finalized now.
                    finalized: control.reached(SEALED) && !control.reached(EARLY | LOGGED),
                    by_key: self.by_key(&end),
                    end,
                });
            }
            if !self.keeper_lives && !self.supervisor_lives {
                let end = self.inherit()?;
                background::spawn(after);
                return Ok(CommandEnd {
                    end,
                    finalized: true,
                    by_key: false,
                });
            }
            self.let_go_of_what_the_command_has();
            self.stop_with_command();
            let mut fds = [
                PollFd::new(&self.setting.tools.signals, PollFlags::IN),
                PollFd::new(&self.setting.tools.bell, PollFlags::IN),
            ];
            // Interrupted or not, everything is examined.
            let _ = poll(&mut fds, Some(&sys::LOOK_AFTER));
            let mut count = [0; 8];
            let _ = rustix::io::read(&self.setting.tools.bell, &mut count);
            self.take_signals();
        }
    }

    fn take_signals(&mut self) {
        while let Some(info) = sys::read_signal(self.setting.tools.signals.as_fd()) {
            if info.ssi_code == libc::SI_KERNEL {
                self.from_kernel |= 1u64.checked_shl(info.ssi_signo).unwrap_or(0);
            }
            self.pass_on(&info);
        }
    }

    /// True if the command died of a signal that the terminal sent to both processes. The shell
    /// looks at how the launcher ends: after a mere exit status it would go on with its loop.
    fn by_key(&self, end: &RunEnd) -> bool {
        let mut keys = [libc::SIGINT, libc::SIGQUIT].into_iter();
        keys.any(|key| end.signal == Some(key) && self.from_kernel & 1 << key != 0)
    }

    /// Closes the descriptors that belong to the command. A reader of its pipes must see their end
    /// when the command closes them. Standard error stays open for the one line that reports a
    /// problem.
    fn let_go_of_what_the_command_has(&mut self) {
        if !self.let_go && self.control().reached(STARTED | NOT_STARTED | ENDED) {
            self.let_go = true;
            self.setting.job.let_go(&[0, 1]);
        }
    }

    fn look_at_children(&mut self) {
        if self.keeper_lives {
            sys::keep_going(self.keeper);
        }
        if self.keeper_lives
            && let Ok(Some(_)) = sys::child_change(Some(self.keeper), libc::WEXITED | libc::WNOWAIT)
        {
            sys::reap(self.keeper);
            self.keeper_lives = false;
        }
        if !self.keeper_lives && self.supervisor_lives {
            // The death of its parent made it this process's child, unless it had died before.
            self.supervisor_lives = self
                .control()
                .supervisor_or_none()
                .is_some_and(|supervisor| {
                    sys::keep_going(supervisor);
                    match sys::child_change(Some(supervisor), libc::WEXITED | libc::WNOWAIT) {
                        Ok(Some(_)) => {
                            sys::reap(supervisor);
                            false
                        }
                        lives => lives.is_ok(),
                    }
                });
        }
    }

    /// Takes over when supervisor and keeper are dead: this process concludes the run.
    fn inherit(self) -> Result<RunEnd, Error> {
        let control = self.control();
        if control.command_or_none().is_none() {
            let gone = io::Error::other("the supervisor and the keeper died before it");
            return Err(Error::system("start the command")(gone));
        }
        let mut answering = self.serve();
        let mut tools = self.setting.tools;
        tools.plan.detach_after = Some(Duration::ZERO); // no process stays behind for daemons
        let (mut watch, stock) = tools.into_watch(None);
        watch.add_reason(&Reason::BothDied {});
        watch.start_draining(&stock, Asking::Impossible);
        while !watch.step() {
            let calls = answering.as_ref().and_then(FallbackResponder::waits_for);
            watch.wait(calls.as_slice());
            answering.iter_mut().for_each(FallbackResponder::answer);
        }
        watch.sync();
        if let Some(answering) = answering {
            outlive_us(answering);
        }
        control.summary().ok_or_else(|| {
            Error::system("read the run's end")(io::Error::other("it was not published"))
        })
    }

    /// Responds to the guard's notifications from now on.
    fn serve(&self) -> Option<FallbackResponder> {
        let (_, listener) = self
            .spare
            .as_ref()
            .and_then(|s| sys::receive_fd(s.as_fd()))?;
        let shared = Arc::clone(self.setting.shared.as_ref()?);
        Some(FallbackResponder::begin(listener?, shared))
    }

    /// Stops with the command, because the shell watches this process.
    fn stop_with_command(&mut self) {
        let stop = self.control().stop.load(Ordering::Acquire);
        if stop != self.stops_seen {
            self.stops_seen = stop;
            let control = self.control();
            control.launcher_stops.store(1, Ordering::SeqCst);
            // After this time a stop or continuation of the whole group has reached the command,
            // too. Stopping because the command had been stopped before would be one stop too many.
            std::thread::sleep(GROUP_SIGNAL);
            if control.command_pid().is_some_and(tree::stopped) {
                sys::act_on_self((stop & 0xff) as i32);
            }
            control.launcher_stops.store(0, Ordering::SeqCst);
        }
    }

    /// Passes on a signal that a process sent to the launcher alone, because it was meant for the
    /// command. A signal to the whole group reaches the command directly, and the keeper, which
    /// counts it.
    fn pass_on(&mut self, info: &libc::signalfd_siginfo) {
        let control = self.control();
        let signal = info.ssi_signo;
        let ours = control.supervisor() == Some(info.ssi_pid as Pid);
        if !sys::sent_by_process(info) || ours || self.sent_to_group(signal as usize) {
            return;
        }
        let Some(command) = control.command_pid().filter(|_| !control.reached(ENDED)) else {
            return;
        };
        // Errors concern the command: it may have ended, or changed its user.
        let _ = if info.ssi_code == libc::SI_QUEUE {
            sys::queue(command, signal as i32, info.ssi_ptr)
        } else {
            sys::kill(command, signal as i32)
        };
    }

    fn sent_to_group(&mut self, signal: usize) -> bool {
        let (control, keeper) = (self.control(), self.keeper);
        let mut signals = std::mem::take(&mut self.group_signals);
        let lives = || {
            self.look_at_children();
            self.keeper_lives
        };
        let sent = signals.reached(control, keeper, signal, lives);
        self.group_signals = signals;
        sent
    }
}

/// Leaves a process behind that responds to the guard's notifications, if a process with the filter
/// is left.
fn outlive_us(answering: FallbackResponder) {
    if answering.is_over() {
        return;
    }
    let us = sys::own_pid();
    // If there is no memory even for this, the calls of the daemons fail, which they survive. The
    // copy uses nothing that another thread may have locked.
    if let Ok(0) = sys::fork() {
        sys::leave_session();
        sys::nullify(&[0, 1, 2]);
        answering.in_a_copy(|| sys::parent() != Some(us));
        sys::exit_now(0);
    }
}
