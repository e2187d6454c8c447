//! Watches over a run until it ends, and ends its log: what the supervisor does, and whoever inherits from it.
//!
//! Invariants: the command's status is published before it is reaped. A run has ended when the watcher, a subreaper, has no child
//! left: no descendant can leave it. The launcher never waits for more than the command, but for a moment's grace.

use crate::clock;
use crate::control::{Control, DISMISSED, SEALED};
use crate::drain::{ChunkSelection, Drainer};
use crate::guarding::GuardReport;
use crate::report::Reporter;
use backstory_arena::ChunkSupply;
use backstory_eventlog::Reason;
use backstory_eventlog::run::RunEnd;
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

/// How long the launcher waits for processes that are just ending.
const GRACE: Duration = Duration::from_millis(5);

fn clock_set() -> Vec<String> {
    clock::was_set().iter().map(Reason::to_string).collect()
}

/// Where a run's log is and what happens after it.
#[derive(Clone)]
pub(crate) struct WatchPlan {
    /// The log while recording.
    pub part: PathBuf,
    /// The log once finalized.
    pub log: PathBuf,
    /// How long daemons are recorded.
    pub detach_after: Option<Duration>,
    /// What the descriptors that the command inherits lead to.
    pub inherited: Vec<Vec<u8>>,
    /// Says that somebody records, as long as one of the copies lives.
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
    /// Others that write into the arena; they end before it is drained for the last time, and say what is missing.
    at_end: Option<Box<dyn FnOnce() -> GuardReport>>,
    warnings: Vec<String>,
    /// The command is still being started, so that no child means nothing yet.
    starting: bool,
    command_stopped: bool,
    /// The launcher was told, and daemons are still there since then.
    told: Option<Instant>,
    command_ended: Option<Instant>,
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
            starting: false,
            command_stopped: false,
            told: None,
            command_ended: None,
        }
    }

    /// The drainer, for its thread.
    pub(crate) fn drainer(&self) -> Arc<Mutex<Drainer>> {
        Arc::clone(&self.drainer)
    }

    /// Records of the watcher's own.
    pub(crate) fn reporter(&mut self) -> &mut Reporter {
        &mut self.reporter
    }

    /// Something that makes the run incomplete.
    pub(crate) fn add_reason(&mut self, reason: &Reason) {
        self.add_sentence(reason.to_string());
    }

    fn add_sentence(&mut self, reason: String) {
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// Says whether the command is still being started.
    pub(crate) fn set_starting(&mut self, starting: bool) {
        self.starting = starting;
    }

    /// Who else has to end before the log does.
    pub(crate) fn at_end(&mut self, end: Box<dyn FnOnce() -> GuardReport>) {
        self.at_end = Some(end);
    }

    /// What wakes the launcher, for others.
    pub(crate) fn bell(&self) -> io::Result<OwnedFd> {
        self.bell.try_clone()
    }

    /// Wakes the launcher so that it looks at the shared state.
    pub(crate) fn ring(&self) {
        // A full counter has woken it already.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    /// Waits until a child changes, one of `others` is readable, or something is due. Returns which of the others are.
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
        // Interrupted or not: the caller looks at everything in any case.
        let _ = poll(&mut fds, timeout.as_ref());
        while sys::read_signal(self.signals.as_fd()).is_some() {}
        fds[1..].iter().map(|fd| !fd.revents().is_empty()).collect()
    }

    fn next_due(&self) -> Option<Instant> {
        if self.launcher_must_go_on() {
            return Some(Instant::now() + GRACE);
        }
        // A command may have ended before it is heard that it was started. That is to come, and then there may be nobody left to wait for.
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

    /// Looks after the children. True once the log is finalized and there is nothing left to watch.
    pub(crate) fn step(&mut self) -> bool {
        let alone = self.reap() && !self.starting;
        if self.command_ended.is_none() {
            if !alone {
                return false;
            }
            // No child and no status: it ended while nobody who lives now watched.
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

    /// Takes note of every change among the children. True if there are none left.
    fn reap(&mut self) -> bool {
        let command = self.control.command_pid();
        if let Some(pid) = command {
            self.mirror_stops(pid);
        }
        loop {
            match sys::child_change(None, libc::WEXITED | libc::WNOWAIT) {
                Ok(Some(change)) => {
                    self.reporter.gone(change.pid, change.wait_status());
                    if Some(change.pid) == command && self.control.ended().is_none() {
                        self.control.set_ended(change.wait_status(), clock::now());
                    }
                    sys::reap(change.pid);
                }
                Ok(None) => break,
                Err(_) => {
                    self.notice_end();
                    return true;
                }
            }
        }
        self.notice_end();
        false
    }

    /// Nobody is there, and nobody has said how the command ended.
    fn lost_command(&mut self) {
        self.add_reason(&Reason::EndUnseen {});
        if self.control.command_pid().is_none() {
            // Whoever was to start it was killed before.
            self.control.set_not_started(libc::ENOSYS);
        }
    }

    fn notice_end(&mut self) {
        if self.command_ended.is_none() && self.control.ended().is_some() {
            self.command_ended = Some(Instant::now());
        }
    }

    /// When the command stops, the launcher stops likewise, because the shell looks at the launcher.
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
        // Whoever continued the command alone could not know of the launcher.
        if self.launcher_must_go_on() && tree::stopped(self.launcher) {
            let _ = sys::kill(self.launcher, libc::SIGCONT); // it may have gone
        }
    }

    /// The launcher is about to stop, or has, because of a stop that is over.
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
            warnings: [drainer.privileges_lost(), &self.warnings, &clock_set()].concat(),
            not_started: self.control.not_started(),
            descriptor_files: crate::header::files_now(&self.plan.inherited),
            // By a clock that was set meanwhile it would say nothing.
            quiet: if clock::was_set().is_some() {
                0
            } else {
                self.control.quiet()
            },
        };
        if end.not_started.is_some() {
            end.exit = None;
        }
        if let Some(failure) = drainer.failure() {
            let error = failure.to_owned();
            end.incomplete_because
                .push(Reason::LogFailed { error }.to_string());
        }
        if self.stock.arena.is_cut_short() {
            end.incomplete_because.push(Reason::CutShort {}.to_string());
        }
        end.incomplete_because.extend(drainer.unwatched());
        for reason in drainer.undecoded() {
            if !end.incomplete_because.contains(&reason) {
                end.incomplete_because.push(reason);
            }
        }
        if end.lost > 0 {
            let operations = end.lost;
            end.incomplete_because
                .push(Reason::Lost { operations }.to_string());
        }
        end
    }

    /// Tells the launcher how the command ended, while daemons go on.
    fn tell(&mut self) {
        self.look_for_keeper();
        let end = self.end(&self.lock());
        // Who asks at once may wait for what is about to end, and can tell it by that from a daemon.
        let _ = utimensat(CWD, &self.plan.part, &NOW, AtFlags::empty());
        self.control.set_summary(&end);
        self.ring();
    }

    /// Stops recording although processes are still there.
    fn detach(&mut self) {
        self.stock.arena.close();
        self.add_reason(&Reason::detached(tree::descendants()));
        self.conclude();
    }

    /// Whether the supervisor's keeper lives: then it is its parent. Asked when it matters, so that no death is overlooked on a busy machine.
    fn look_for_keeper(&mut self) {
        let supervises = self.control.supervisor() == Some(sys::own_pid());
        if supervises && sys::parent() != Some(self.control.keeper.load(Ordering::Acquire)) {
            self.add_reason(&Reason::KeeperDied {});
        }
    }

    /// Drains what is left, ends the log, finalizes it and tells the launcher.
    fn conclude(&mut self) {
        self.look_for_keeper();
        let told = self
            .at_end
            .take()
            .map_or_else(GuardReport::default, |end| end());
        for reason in told.reasons {
            self.add_sentence(reason);
        }
        self.warnings = told.warnings;
        self.stock.stop();
        self.reporter.finish();
        let drainer = self.drainer();
        let mut drainer = drainer.lock().unwrap_or_else(PoisonError::into_inner);
        drainer.pass(ChunkSelection::All);
        let mut end = drainer.finish(|drainer| self.end(drainer));
        if let Err(error) = std::fs::rename(&self.plan.part, &self.plan.log) {
            let path = self.plan.log.display().to_string();
            let error = error.to_string();
            end.warnings
                .push(Reason::NotFinalized { path, error }.to_string());
        }
        self.control.reach(SEALED);
        if self.told.is_none() {
            self.control.set_summary(&end);
        }
        self.ring();
        // Not sooner: it would wait for the drainer's thread, should that just be adding chunks.
        self.stock.arena.remove();
    }

    /// Makes the log durable. The launcher's last steps should not have to wait for the disk because of it.
    pub(crate) fn sync(&self) {
        self.lock().sync();
    }

    /// The launcher needs nothing any more: it was told, or it has ended.
    pub(crate) fn dismissed(&self) -> bool {
        self.control.reached(DISMISSED)
    }
}
