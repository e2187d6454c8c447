//! The launcher: the process that the shell started and waits for. It stands for the command towards the shell.
//!
//! Invariants: it returns as soon as the command's end is published. It stops when the command stops. What is sent to it alone is
//! passed on to the command, once.

use crate::control::{Control, DISMISSED, ENDED, NOT_STARTED, SEALED, STARTED};
use crate::fallback_responder::FallbackResponder;
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
use std::time::{Duration, Instant};

/// How long a signal to the whole group may take to reach the keeper, too.
const GROUP_SIGNAL: Duration = Duration::from_millis(3);

/// The launcher's side of a recording.
pub(crate) struct Launcher {
    setting: RunSetup,
    /// Where a copy of the guard's listener lies.
    spare: Option<OwnedFd>,
    keeper: Pid,
    keeper_lives: bool,
    supervisor_lives: bool,
    let_go: bool,
    stops_seen: u32,
    group_signals_seen: [u32; 65],
    /// Signals that the kernel itself sent, one bit each: keys of the terminal, mostly.
    from_kernel: u64,
}

/// How a recording ended, as the launcher sees it.
pub(crate) struct CommandEnd {
    /// The command's end.
    pub end: RunEnd,
    /// The log is finalized already.
    pub finalized: bool,
    /// A key of the terminal ended the command, and was meant for the launcher, too.
    pub by_key: bool,
}

impl Launcher {
    /// After the keeper was forked.
    pub(crate) fn new(mut setting: RunSetup, keeper: Pid) -> Launcher {
        let spare = setting.spare.take().map(|(take, _)| take);
        Launcher {
            spare,
            setting,
            keeper,
            keeper_lives: true,
            supervisor_lives: true,
            let_go: false,
            stops_seen: 0,
            group_signals_seen: [0; 65],
            from_kernel: 0,
        }
    }

    fn control(&self) -> &'static Control {
        self.setting.tools.control
    }

    /// Waits for the command's end. Should this process be the last one left, it starts `after`, too.
    pub(crate) fn wait(mut self, after: &[OsString]) -> Result<CommandEnd, Error> {
        let control = self.control();
        loop {
            self.look_at_children();
            if let Some(end) = control.summary() {
                self.take_signals();
                control.reach(DISMISSED);
                return Ok(CommandEnd {
                    finalized: control.reached(SEALED),
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
            // Interrupted or not, everything is looked at.
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

    /// The command died of a key that the terminal sent to both of us. Whoever waits for us decides by how we end whether that was
    /// meant for it, too: a shell goes on with its loop after a mere exit status.
    fn by_key(&self, end: &RunEnd) -> bool {
        let mut keys = [libc::SIGINT, libc::SIGQUIT].into_iter();
        keys.any(|key| end.signal == Some(key) && self.from_kernel & 1 << key != 0)
    }

    /// Whoever reads our pipes has to see their end when the command closes them, not when we do. Standard error is kept: the one
    /// line that says that something is wrong goes there.
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
            // Its parent's death made it our child, unless it had died before.
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

    /// Both are dead: what is left of the command and the arena is ours.
    fn inherit(self) -> Result<RunEnd, Error> {
        let control = self.control();
        if control.command_or_none().is_none() {
            let gone = io::Error::other("the supervisor and the keeper died before it");
            return Err(Error::system("start the command")(gone));
        }
        let mut answering = self.serve();
        let mut tools = self.setting.tools;
        tools.plan.detach_after = Some(Duration::ZERO); // nobody stays behind for daemons
        let (mut watch, _stock) = tools.into_watch();
        watch.add_reason(&Reason::BothDied {});
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

    /// Answers the guard's calls from now on.
    fn serve(&self) -> Option<FallbackResponder> {
        let (_, listener) = self
            .spare
            .as_ref()
            .and_then(|s| sys::receive_fd(s.as_fd()))?;
        let shared = Arc::clone(self.setting.shared.as_ref()?);
        Some(FallbackResponder::begin(listener?, shared))
    }

    /// The shell looks at us: a stop of the command is a stop of ours.
    fn stop_with_command(&mut self) {
        let stop = self.control().stop.load(Ordering::Acquire);
        if stop != self.stops_seen {
            self.stops_seen = stop;
            let control = self.control();
            control.launcher_stops.store(1, Ordering::SeqCst);
            // Whoever stopped or continued the whole group has done so to the command, too, after this: to stop now, because it
            // had been stopped, would be one stop too many.
            std::thread::sleep(GROUP_SIGNAL);
            if control.command_pid().is_some_and(tree::stopped) {
                sys::act_on_self((stop & 0xff) as i32);
            }
            control.launcher_stops.store(0, Ordering::SeqCst);
        }
    }

    /// A signal that somebody sent to this process alone was meant for the command. What the terminal or somebody sends to the
    /// whole group reaches the command by itself, and the keeper, too, which counts it.
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
        // Errors are the command's: it may have ended, or belong to somebody else by now.
        let _ = if info.ssi_code == libc::SI_QUEUE {
            sys::queue(command, signal as i32, info.ssi_ptr)
        } else {
            sys::kill(command, signal as i32)
        };
    }

    fn sent_to_group(&mut self, signal: usize) -> bool {
        let (control, keeper) = (self.control(), self.keeper);
        let Some(seen) = self.group_signals_seen.get_mut(signal) else {
            return false;
        };
        if !self.keeper_lives {
            return false;
        }
        let until = Instant::now() + GROUP_SIGNAL;
        loop {
            let count = control.group_signals[signal].load(Ordering::Acquire);
            if count != *seen {
                *seen = count;
                return true;
            }
            // All members of a group get a signal at once; the keeper may not have had the time to count it.
            if tree::pending(keeper, signal) {
                *seen = count.wrapping_add(1);
                return true;
            }
            if Instant::now() > until {
                return false;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

/// Leaves a process behind that goes on answering the guard's calls, if there is still somebody to be answered.
fn outlive_us(answering: FallbackResponder) {
    if answering.is_over() {
        return;
    }
    let us = sys::own_pid();
    // Should there be no memory even for this, the daemons' calls fail, which they at least survive. The copy uses nothing
    // that another thread might have locked.
    if let Ok(0) = sys::fork() {
        sys::leave_session();
        sys::nullify(&[0, 1, 2]);
        answering.in_a_copy(|| sys::parent() != Some(us));
        sys::exit_now(0);
    }
}
