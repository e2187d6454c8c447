//! Watches a run until it ends, and ends its log. The supervisor does this, or the process that
//! takes over from it.
//!
//! Invariants:
//!
//! - The status of the command is published before the command is reaped.
//! - A run has ended when the watcher has no child left. The watcher is a subreaper, so no
//!   descendant can escape it.
//! - The launcher waits for the command only, and for a short grace period.

mod conclusion;

use crate::clock;
use crate::control::{Control, DISMISSED, EARLY};
use crate::drain::{self, Asking, Drainer};
use crate::guarding::GuardReport;
use crate::late_stop;
use crate::plain_programs::KnownPrograms;
use crate::report::Reporter;
use backstory_arena::ChunkSupply;
use backstory_eventlog::Reason;
use backstory_eventlog::run::{ResourceUsage, RunEnd};
use backstory_functions::UnmatchedPattern;
use backstory_sys::process_tree as tree;
use backstory_sys::{self as sys, Pid};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, utimensat};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Sets both times of a file to the present.
const NOW: Timestamps = Timestamps {
    last_access: Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    },
    last_modification: Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    },
};

/// How long the launcher waits for processes that are about to end.
const GRACE: Duration = Duration::from_millis(5);

fn clock_set() -> Vec<String> {
    clock::was_set().iter().map(Reason::to_string).collect()
}

/// The files of a run, and the actions after its end.
#[derive(Clone)]
pub(crate) struct WatchPlan {
    /// The path of the log while recording.
    pub part: PathBuf,
    /// The path of the finalized log.
    pub log: PathBuf,
    /// How long daemons are recorded.
    pub detach_after: Option<Duration>,
    /// The launcher waits for the deep log, and for the confirmation of earlier verdicts, too.
    pub waits_for_deep_log: bool,
    /// Targets of the descriptors that the command inherits.
    pub inherited: Vec<Vec<u8>>,
    /// The lock that marks the log as being recorded, as long as one of its copies lives.
    pub _claim: Arc<File>,
}

/// The watch over one run.
pub(crate) struct CommandWatch {
    control: &'static Control,
    /// Wakes the launcher.
    bell: OwnedFd,
    signals: OwnedFd,
    stock: Arc<ChunkSupply>,
    drainer: Arc<Mutex<Drainer>>,
    reporter: Reporter,
    plan: WatchPlan,
    launcher: Pid,
    reasons: Vec<String>,
    /// Ends the other writers of the arena before the last drain, and returns their report.
    at_end: Option<Box<dyn FnOnce() -> GuardReport>>,
    warnings: Vec<String>,
    /// Patterns for which no compiled function was recorded.
    unmatched: Vec<UnmatchedPattern>,
    /// The command is still being started, so that the absence of children means nothing.
    starting: bool,
    command_stopped: bool,
    /// The time since which the launcher knows the result while daemons go on.
    told: Option<Instant>,
    command_ended: Option<Instant>,
    /// The programs of a run that starts without a filter (`--guard=auto`).
    programs: Option<KnownPrograms>,
}

impl CommandWatch {
    /// Begins a watch.
    pub(crate) fn new(
        control: &'static Control,
        bell: OwnedFd,
        signals: OwnedFd,
        stock: Arc<ChunkSupply>,
        drainer: Drainer,
        plan: WatchPlan,
        launcher: Pid,
    ) -> CommandWatch {
        CommandWatch {
            control,
            bell,
            signals,
            reporter: Reporter::new(Arc::clone(&stock)),
            stock,
            drainer: Arc::new(Mutex::new(drainer)),
            plan,
            launcher,
            reasons: Vec::new(),
            at_end: None,
            warnings: Vec::new(),
            unmatched: Vec::new(),
            starting: false,
            command_stopped: false,
            told: None,
            command_ended: None,
            programs: None,
        }
    }

    /// The drainer, for its thread.
    pub(crate) fn drainer(&self) -> Arc<Mutex<Drainer>> {
        Arc::clone(&self.drainer)
    }

    /// Drains the arena in a thread of its own until the log ends. Without it, recorders have no
    /// memory for records once the free chunks are full.
    pub(crate) fn start_draining(&mut self, stock: &Arc<ChunkSupply>, asking: Asking) {
        let mine = Arc::clone(stock);
        let drainer = self.drainer();
        // Memory may be limited, and this thread needs a smaller stack than the default.
        let started = std::thread::Builder::new()
            .name("drain".into())
            .stack_size(512 << 10)
            .spawn(move || drain::run(&mine, &drainer, asking));
        if let Err(error) = started {
            stock.stop();
            let error = error.to_string();
            self.add_reason(&Reason::NotDrained { error });
        }
    }

    /// Appends unfinished chunks to the log piece by piece, because the log is to be durable before
    /// the results.
    pub(crate) fn append_pieces(&self) {
        self.lock().append_pieces();
    }

    /// Appends unfinished chunks piece by piece a moment after each operation, because another
    /// process follows the log.
    pub(crate) fn follow(&self) {
        self.lock().follow();
    }

    /// The watcher's own records.
    pub(crate) fn reporter(&mut self) -> &mut Reporter {
        &mut self.reporter
    }

    /// Adds a reason why the run is incomplete.
    pub(crate) fn add_reason(&mut self, reason: &Reason) {
        self.add_sentence(reason.to_string());
    }

    fn add_sentence(&mut self, reason: String) {
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// Sets whether the command is still being started.
    pub(crate) fn set_starting(&mut self, starting: bool) {
        self.starting = starting;
    }

    /// Sets the function that ends the other writers before the log ends.
    pub(crate) fn at_end(&mut self, end: Box<dyn FnOnce() -> GuardReport>) {
        self.at_end = Some(end);
    }

    /// A copy of the descriptor that wakes the launcher.
    pub(crate) fn bell(&self) -> io::Result<OwnedFd> {
        self.bell.try_clone()
    }

    /// Wakes the launcher so that it examines the shared state.
    pub(crate) fn ring(&self) {
        // If the counter is full, it has woken the launcher already.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    /// Waits until a child changes, one of `others` is readable, or a timeout is due. Returns which
    /// of the others are readable.
    pub(crate) fn wait(&self, others: &[BorrowedFd<'_>]) -> Vec<bool> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut fds: Vec<PollFd<'_>> = std::iter::once(PollFd::new(&self.signals, PollFlags::IN))
            .chain(
                others
                    .iter()
                    .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)),
            )
            .collect();
        let timeout = self.next_due().map(|due| {
            let left = due.saturating_duration_since(Instant::now());
            Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: i64::from(left.subsec_nanos()),
            }
        });
        // Interrupted or not, the caller examines everything.
        let _ = poll(&mut fds, timeout.as_ref());
        while sys::read_signal(self.signals.as_fd()).is_some() {}
        fds[1..].iter().map(|fd| !fd.revents().is_empty()).collect()
    }

    fn next_due(&self) -> Option<Instant> {
        if self.launcher_must_go_on() {
            return Some(Instant::now() + GRACE);
        }
        // A command may end before the message about its start arrives. Reaping its last child now
        // would end the watch too early.
        if self.starting {
            return None;
        }
        match (self.command_ended, self.told) {
            (Some(_), Some(told)) => self
                .plan
                .detach_after
                .and_then(|after| told.checked_add(after)),
            (Some(ended), None) => Some(ended + GRACE),
            (None, _) => None,
        }
    }

    /// Examines the children. Returns true once the log is finalized and no child is left.
    pub(crate) fn step(&mut self) -> bool {
        let alone = self.reap() && !self.starting;
        if self.command_ended.is_none() {
            if !alone {
                return false;
            }
            // No child and no status: it ended while no living process watched it.
            if self.control.ended().is_none() && self.control.not_started().is_none() {
                self.lost_command();
            }
            self.command_ended = Some(Instant::now());
        }
        if alone {
            self.conclude();
            return true;
        }
        let due = self.next_due().is_some_and(|due| due <= Instant::now());
        if due && self.told.is_none() {
            self.tell();
            self.told = Some(Instant::now());
        } else if due {
            self.detach();
            return true;
        }
        false
    }

    /// Processes every change among the children. Returns true if no child is left.
    fn reap(&mut self) -> bool {
        let command = self.control.command_pid();
        if let Some(pid) = command {
            self.mirror_stops(pid);
        }
        let none_left = loop {
            match sys::child_change(None, libc::WEXITED | libc::WNOWAIT) {
                Ok(Some(change)) => {
                    self.reporter.gone(change.pid, change.wait_status());
                    if Some(change.pid) == command {
                        // The kernel reports no continuation of a process that has ended.
                        self.command_stopped = false;
                        if self.control.ended().is_none() {
                            self.control.set_ended(change.wait_status(), clock::now());
                        }
                    }
                    sys::reap(change.pid);
                }
                Ok(None) => break false,
                Err(_) => break true,
            }
        };
        self.notice_end();
        self.continue_launcher();
        none_left
    }

    /// Records that the command is gone and its status unknown.
    fn lost_command(&mut self) {
        self.add_reason(&Reason::EndUnseen {});
        if self.control.command_pid().is_none() {
            // The process that should have started it was killed before.
            self.control.set_not_started(libc::ENOSYS);
        }
    }

    fn notice_end(&mut self) {
        if self.command_ended.is_none() && self.control.ended().is_some() {
            self.command_ended = Some(Instant::now());
        }
    }

    /// Stops the launcher when the command stops, because the shell watches the launcher.
    fn mirror_stops(&mut self, command: Pid) {
        let kinds = libc::WSTOPPED | libc::WCONTINUED;
        while let Ok(Some(change)) = sys::child_change(Some(command), kinds) {
            self.command_stopped = change.code == libc::CLD_STOPPED;
            if self.command_stopped {
                let count = self.control.stop.load(Ordering::Relaxed) >> 8;
                let signal = change.status as u32 & 0xff;
                self.control
                    .stop
                    .store(((count + 1) << 8) | signal, Ordering::Release);
                self.ring();
            }
        }
    }

    /// Continues the launcher after a stop of the command that is over. A process that continued or
    /// killed the command alone could not know of the launcher.
    fn continue_launcher(&self) {
        if self.launcher_must_go_on() && tree::stopped(self.launcher) {
            self.let_launcher_go_on();
        }
    }

    fn let_launcher_go_on(&self) {
        let _ = sys::kill(self.launcher, libc::SIGCONT); // it may be gone
    }

    /// Returns once the launcher does not stop for the command any more, or a debugger holds it.
    /// `lives`: whether the launcher still lives.
    pub(crate) fn leave_launcher_running(&self, mut lives: impl FnMut() -> bool) {
        let is_over = || !self.launcher_must_go_on() || !lives();
        late_stop::continue_until(self.launcher, is_over, || self.let_launcher_go_on());
    }

    /// True if the launcher stops, or is about to, for a stop that is over.
    fn launcher_must_go_on(&self) -> bool {
        !self.command_stopped && self.control.launcher_stops.load(Ordering::SeqCst) != 0
    }

    fn lock(&self) -> MutexGuard<'_, Drainer> {
        self.drainer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, drainer: &Drainer) -> RunEnd {
        let ended = self.control.ended();
        let status = ended.map(|(status, _)| status);
        let mut end = RunEnd {
            exit: status
                .filter(|s| libc::WIFEXITED(*s))
                .map(|s| libc::WEXITSTATUS(s)),
            signal: status
                .filter(|s| libc::WIFSIGNALED(*s))
                .map(|s| libc::WTERMSIG(s)),
            command_ended: ended.map_or_else(clock::now, |(_, at)| at),
            ended: clock::now(),
            lost: drainer.lost(),
            incomplete_because: self.reasons.clone(),
            warnings: [
                drainer.privileges_lost(),
                &self.warnings,
                &clock_set(),
                &drainer.deep_warnings(),
            ]
            .concat(),
            not_started: self.control.not_started(),
            descriptor_files: crate::header::files_now(&self.plan.inherited),
            quiet: clock::valid_reading(self.control.quiet()),
            usage: self.usage(),
            line_text: None,
        };
        if end.not_started.is_some() {
            end.exit = None;
        }
        end.warnings
            .extend(drainer.without_functions(&self.unmatched));
        let broken = drainer.broken().chain(drainer.lines_failure());
        end.incomplete_because
            .extend(broken.map(|reason| reason.to_string()));
        end.incomplete_because.extend(drainer.unwatched());
        for reason in drainer.undecoded() {
            if !end.incomplete_because.contains(&reason) {
                end.incomplete_because.push(reason);
            }
        }
        let loss = drainer.loss().map(|reason| reason.to_string());
        end.incomplete_because.extend(loss);
        end
    }

    /// The status of the command as a shell reports it, if it is known.
    fn command_status(&self) -> Option<i32> {
        let (status, _) = self.control.ended()?;
        Some(match libc::WIFSIGNALED(status) {
            true => 128 + libc::WTERMSIG(status),
            false => libc::WEXITSTATUS(status),
        })
    }

    /// The resources that the processes of the run used. Only the supervisor has them all as
    /// descendants, and is no process of the run.
    fn usage(&self) -> Option<ResourceUsage> {
        let supervises = self.control.supervisor() == Some(sys::own_pid());
        supervises.then(|| {
            let (user, system, peak_memory) = sys::children_usage();
            ResourceUsage {
                user,
                system,
                peak_memory,
            }
        })
    }

    /// Publishes the end of the command to the launcher while daemons go on.
    fn tell(&mut self) {
        self.look_for_keeper();
        let end = self.end(&self.lock());
        // A query right after the prompt uses this time to tell a daemon from a process that is
        // about to end.
        let _ = utimensat(CWD, &self.plan.part, &NOW, AtFlags::empty());
        self.control.reach(EARLY);
        self.control.set_summary(&end);
        self.ring();
    }

    /// Stops recording although processes are left.
    fn detach(&mut self) {
        self.stock.arena.close();
        self.add_reason(&Reason::detached(tree::descendants()));
        self.conclude();
    }

    /// Finds out whether the supervisor's keeper lives: it is then the parent. Checked when it
    /// matters, so that no death is overlooked on a busy machine.
    fn look_for_keeper(&mut self) {
        let supervises = self.control.supervisor() == Some(sys::own_pid());
        if supervises && sys::parent() != Some(self.control.keeper.load(Ordering::Acquire)) {
            self.add_reason(&Reason::KeeperDied {});
        }
    }

    /// Makes the log durable, but does not delay the launcher's last steps by disk writes.
    pub(crate) fn sync(&self) {
        self.lock().sync();
    }

    /// True if the launcher needs nothing any more: it has the result, or it has ended.
    pub(crate) fn dismissed(&self) -> bool {
        self.control.reached(DISMISSED)
    }
}
