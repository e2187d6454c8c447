//! Awaits the exact exit statuses of processes that are not the supervisor's children, by their
//! pidfds.

use crate::record_writer::{RecordWriter, gone};
use backstory_abi::CallerIds;
use backstory_arena::RecordSink;
use backstory_sys as sys;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Processes followed at a time. The exit status of further processes may stay unknown.
const FOLLOWED: usize = 400;
/// The numbers that stand for the listener and the stop signal among the process ids.
const LISTENER: u64 = 1 << 40;
const STOP: u64 = 1 << 41;
/// How long further exits are gathered after some were written. Waking at each exit would cost the
/// programs more than all else that is done for them.
const GATHER: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 10_000_000,
};
/// How long the watcher waits, after the last process has ended, for statuses that its parent has
/// not collected yet.
const GRACE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// The processes whose exit is awaited.
pub struct ExitWatcher {
    epoll: OwnedFd,
    stop: OwnedFd,
    followed: Mutex<HashMap<u32, Arc<OwnedFd>>>,
    hangup_tells: bool,
    any: AtomicBool,
    /// The time of the latest exit that was written. It changes only while `followed` is locked.
    last_end: AtomicU64,
}

impl ExitWatcher {
    /// Follows no process yet.
    pub fn new() -> io::Result<ExitWatcher> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(
            &epoll,
            &stop,
            epoll::EventData::new_u64(STOP),
            epoll::EventFlags::IN,
        )?;
        let own = sys::pidfd_open(std::process::id(), false)?;
        let hangup_tells = sys::pidfd_info(own.as_fd()).is_ok();
        Ok(ExitWatcher {
            epoll,
            stop,
            followed: Mutex::default(),
            hangup_tells,
            any: AtomicBool::new(false),
            last_end: AtomicU64::new(0),
        })
    }

    /// Watches the listener of the filter for its hang-up. To be called before
    /// [`ExitWatcher::watch`].
    pub fn watch_listener(&self, listener: BorrowedFd<'_>) -> io::Result<()> {
        // Errors and hang-ups are always reported. A notification that waits must not wake the
        // watcher.
        Ok(epoll::add(
            &self.epoll,
            listener,
            epoll::EventData::new_u64(LISTENER),
            epoll::EventFlags::empty(),
        )?)
    }

    fn followed(&self) -> MutexGuard<'_, HashMap<u32, Arc<OwnedFd>>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Awaits the exit of a process from now on.
    pub fn follow(&self, pid: u32) {
        if let Ok(pidfd) = sys::pidfd_open(pid, false) {
            self.follow_pidfd(pid, Arc::new(pidfd));
        }
    }

    /// As [`ExitWatcher::follow`], by a pidfd that is open already.
    pub fn follow_pidfd(&self, pid: u32, pidfd: Arc<OwnedFd>) {
        let mut followed = self.followed();
        if followed.contains_key(&pid) || followed.len() >= FOLLOWED {
            return;
        }
        // The hang-up comes when the process has been reaped. Older kernels only report that it has
        // ended.
        let events = if self.hangup_tells {
            epoll::EventFlags::empty()
        } else {
            epoll::EventFlags::IN
        };
        if epoll::add(
            &self.epoll,
            &pidfd,
            epoll::EventData::new_u64(pid.into()),
            events,
        )
        .is_ok()
        {
            followed.insert(pid, pidfd);
            self.any.store(true, Ordering::Relaxed);
        }
    }

    /// True if a process is or was followed: [`ExitWatcher::watch`] has to run.
    pub fn was_used(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Makes [`ExitWatcher::watch`] return.
    pub fn stop(&self) {
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
    }

    /// Writes the exit of every process followed, until no process is left that has the filter, or
    /// until stopped. `ended` is called when no process is left.
    pub fn watch<S: RecordSink>(
        &self,
        listener: BorrowedFd<'_>,
        out: &mut RecordWriter<S>,
        ended: impl FnOnce(),
    ) {
        let mut ended = Some(ended);
        let mut events = Vec::with_capacity(64);
        loop {
            let timeout = if ended.is_none() { Some(&GRACE) } else { None };
            match epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                timeout,
            ) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return,
                Ok(0) if ended.is_none() => return,
                Ok(_) => {}
            }
            for event in events.drain(..) {
                match event.data.u64() {
                    STOP => return,
                    LISTENER => {
                        let _ = epoll::delete(&self.epoll, listener);
                        if let Some(ended) = ended.take() {
                            ended();
                        }
                    }
                    pid => self.write_end(pid as u32, None, out),
                }
            }
            if ended.is_none() && self.followed().is_empty() {
                return;
            }
            if ended.is_some() {
                self.gather(listener);
            }
        }
    }

    /// Writes the exits that have happened and were not written yet. Returns the time of the call:
    /// `time`, or a later one if [`ExitWatcher::watch`] has written an exit since `time`.
    ///
    /// The caller is about to let a call that was received at `time` change a file. A process that
    /// has ended cannot write to the file after this call. If its exit were written later, the
    /// graph would take what it wrote and the change for one version.
    pub fn write_ended<S: RecordSink>(&self, time: u64, out: &mut RecordWriter<S>) -> u64 {
        if !self.was_used() {
            return time;
        }
        let (at_once, mut events) = (Timespec::default(), Vec::with_capacity(64));
        let room = rustix::buffer::spare_capacity(&mut events);
        if epoll::wait(&self.epoll, room, Some(&at_once)).is_ok() {
            for event in events {
                match event.data.u64() {
                    STOP | LISTENER => {}
                    pid => self.write_end(pid as u32, Some(time.saturating_sub(1)), out),
                }
            }
        }
        // The other thread may have taken an exit's time later than `time`. It has released the
        // lock since then, or it is awaited here.
        let _followed = self.followed();
        let last = self.last_end.load(Ordering::Relaxed);
        if last < time { time } else { last + 1 }
    }

    /// Returns after [`GATHER`], or when no process is left, or when stopped.
    fn gather(&self, listener: BorrowedFd<'_>) {
        let mut fds = [
            PollFd::new(&self.stop, PollFlags::IN),
            PollFd::from_borrowed_fd(listener, PollFlags::empty()),
        ];
        // The exits that are there are taken, whether or not the wait was interrupted.
        let _ = poll(&mut fds, Some(&GATHER));
    }

    /// Writes an exit with the given time, or with the present one.
    fn write_end<S: RecordSink>(&self, pid: u32, time: Option<u64>, out: &mut RecordWriter<S>) {
        let mut followed = self.followed();
        let Some(pidfd) = followed.remove(&pid) else {
            return;
        };
        // The lock is still held: a thread that finds the process missing reads this time.
        let time = time.unwrap_or_else(sys::clock::counter);
        self.last_end.fetch_max(time, Ordering::Relaxed);
        drop(followed);
        // Closing the pidfd is not enough while a forked child of the supervisor that has not
        // executed yet has a copy.
        let _ = epoll::delete(&self.epoll, &pidfd);
        let info = sys::pidfd_info(pidfd.as_fd()).ok();
        let status = info
            .filter(|i| i.mask & sys::PIDFD_INFO_EXIT != 0)
            .map(|i| i.exit_code);
        let ids = CallerIds {
            pid,
            tid: pid,
            ..CallerIds::default()
        };
        out.put(time, ids, &gone(pid, status), &[]);
    }
}
