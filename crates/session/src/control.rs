//! What launcher, keeper and supervisor tell each other: one anonymous page range that all three map, and an eventfd that
//! wakes the launcher.
//!
//! Invariant: everything in it is atomic or guarded by `phase`, is plain data without addresses, and says nothing that
//! becomes false when its writer dies.
#![allow(unsafe_code)]

use backstory_eventlog::run::RunEnd;
use backstory_sys::Pid;
use std::cell::UnsafeCell;
use std::io;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};

/// The command's program was started (its `execve` succeeded).
pub(crate) const STARTED: u32 = 1;
/// It could not be started: `errno` says why.
pub(crate) const NOT_STARTED: u32 = 2;
/// The command has ended: `status` is valid.
pub(crate) const ENDED: u32 = 4;
/// `summary` is valid.
pub(crate) const SUMMARY: u32 = 8;
/// The log is finalized: nothing is left to be done with it.
pub(crate) const SEALED: u32 = 16;
/// The launcher has what it waited for, so its end is no reason to end the command.
pub(crate) const DISMISSED: u32 = 32;

/// There is no supervisor, and will be none.
const NOBODY: Pid = -1;

const SUMMARY_BYTES: usize = 16 * 1024;
const SIGNALS: usize = 65;

/// The shared state. Zeroed memory is its beginning.
#[repr(C)]
pub(crate) struct Control {
    phase: AtomicU32,
    errno: AtomicI32,
    status: AtomicI32,
    /// The supervisor; [`NOBODY`] where there will be none.
    supervisor: AtomicI32,
    /// The keeper.
    pub keeper: AtomicI32,
    /// The command.
    pub command: AtomicI32,
    /// ns since 1970 when the command ended.
    ended_at: AtomicU64,
    /// What file systems' clock said, in ns since 1970, when the command was let go.
    quiet: AtomicI64,
    /// The latest stop of the command: a count above, the signal in the low 8 bits.
    pub stop: AtomicU32,
    /// Not 0 while the launcher stops, because the command has.
    pub launcher_stops: AtomicU32,
    /// Signals sent to the launcher's whole process group, by number: the keeper, a silent member of it, counts them.
    pub group_signals: [AtomicU32; SIGNALS],
    summary_length: AtomicU32,
    summary: UnsafeCell<[u8; SUMMARY_BYTES]>,
}

// SAFETY: `summary` is written before `SUMMARY` is set and only by the one process that concludes the run; everything else is
// atomic.
unsafe impl Sync for Control {}

impl Control {
    /// Maps a new one, shared with every process forked from now on. It is never unmapped.
    pub(crate) fn map() -> io::Result<&'static Control> {
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
        // SAFETY: new memory, not freed; all zero bytes are a valid Control.
        unsafe {
            let memory = mmap_anonymous(
                std::ptr::null_mut(),
                size_of::<Control>(),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
            )?;
            Ok(&*memory.cast::<Control>())
        }
    }

    /// Adds to what has been reached.
    pub(crate) fn reach(&self, phase: u32) {
        self.phase.fetch_or(phase, Ordering::AcqRel);
    }

    /// True if this has been reached.
    pub(crate) fn reached(&self, phase: u32) -> bool {
        self.phase.load(Ordering::Acquire) & phase != 0
    }

    /// The command could not be started.
    pub(crate) fn set_not_started(&self, errno: i32) {
        self.errno.store(errno, Ordering::Relaxed);
        self.reach(NOT_STARTED);
    }

    /// Why the command could not be started, if so.
    pub(crate) fn not_started(&self) -> Option<i32> {
        self.reached(NOT_STARTED)
            .then(|| self.errno.load(Ordering::Relaxed))
    }

    /// The command has ended. Said before it is reaped, so that a reader who finds neither a child nor this knows it was lost.
    pub(crate) fn set_ended(&self, wait_status: i32, at: i64) {
        self.status.store(wait_status, Ordering::Relaxed);
        self.ended_at.store(at as u64, Ordering::Relaxed);
        self.reach(ENDED);
    }

    /// The command's wait status and when it ended, once it has.
    pub(crate) fn ended(&self) -> Option<(i32, i64)> {
        self.reached(ENDED).then(|| {
            (
                self.status.load(Ordering::Relaxed),
                self.ended_at.load(Ordering::Relaxed) as i64,
            )
        })
    }

    /// The command is let go: what file systems' clock says, in ns since 1970.
    pub(crate) fn set_quiet(&self, at: i64) {
        self.quiet.store(at, Ordering::Release);
    }

    /// What file systems' clock said when the command was let go; 0 before that.
    pub(crate) fn quiet(&self) -> i64 {
        self.quiet.load(Ordering::Acquire)
    }

    /// There is a supervisor, this one. False if the launcher had given it up before: then it must not begin.
    pub(crate) fn has_supervisor(&self, pid: Pid) -> bool {
        let (set, get) = (Ordering::AcqRel, Ordering::Acquire);
        let before = self.supervisor.compare_exchange(0, pid, set, get);
        before.map_or_else(|known| known == pid, |_| true)
    }

    /// The supervisor, once there is one.
    pub(crate) fn supervisor(&self) -> Option<Pid> {
        Some(self.supervisor.load(Ordering::Acquire)).filter(|&pid| pid > 0)
    }

    /// The supervisor. If there is none yet, there will be none any more: who could have made one is dead.
    pub(crate) fn supervisor_or_none(&self) -> Option<Pid> {
        let (set, get) = (Ordering::AcqRel, Ordering::Acquire);
        let before = self.supervisor.compare_exchange(0, NOBODY, set, get);
        before.err().filter(|&pid| pid > 0)
    }

    /// The command's pid, once it exists.
    pub(crate) fn command_pid(&self) -> Option<Pid> {
        Some(self.command.load(Ordering::Acquire)).filter(|&pid| pid > 0)
    }

    /// The command's pid. If there is none yet, there will be none any more: who could have started it is dead, and a child that it has
    /// made finds out by [`Control::is_command`].
    pub(crate) fn command_or_none(&self) -> Option<Pid> {
        let (set, get) = (Ordering::AcqRel, Ordering::Acquire);
        let before = self.command.compare_exchange(0, NOBODY, set, get);
        before.err().filter(|&pid| pid > 0)
    }

    /// The command is this process. False if nobody waits for it any more: it must not run then. Makes no system call.
    pub(crate) fn is_command(&self, pid: Pid) -> bool {
        let (set, get) = (Ordering::AcqRel, Ordering::Acquire);
        let still_wanted = |before| (before != NOBODY).then_some(pid);
        self.command.fetch_update(set, get, still_wanted).is_ok()
    }

    /// Leaves the run's end for the launcher.
    pub(crate) fn set_summary(&self, end: &RunEnd) {
        let mut end = end.clone();
        let mut bytes = serde_json::to_vec(&end).unwrap_or_default();
        while bytes.len() > SUMMARY_BYTES {
            if end.warnings.pop().is_none() && end.incomplete_because.pop().is_none() {
                break;
            }
            bytes = serde_json::to_vec(&end).unwrap_or_default();
        }
        let length = bytes.len().min(SUMMARY_BYTES);
        // SAFETY: see `Sync`: one writer, and no reader before the phase says so.
        unsafe {
            let place = self.summary.get().cast::<u8>();
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, length);
        }
        self.summary_length.store(length as u32, Ordering::Relaxed);
        self.reach(SUMMARY);
    }

    /// The run's end, once it was left here.
    pub(crate) fn summary(&self) -> Option<RunEnd> {
        if !self.reached(SUMMARY) {
            return None;
        }
        let length = (self.summary_length.load(Ordering::Relaxed) as usize).min(SUMMARY_BYTES);
        // SAFETY: the phase says that it was written; it is not written again while the launcher lives.
        let bytes = unsafe { std::slice::from_raw_parts(self.summary.get().cast::<u8>(), length) };
        serde_json::from_slice(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::scope;

    /// One in this process's own memory: threads stand for processes, so that Miri can look on.
    fn control() -> Box<Control> {
        // SAFETY: all zero bytes are a valid Control.
        Box::new(unsafe { std::mem::MaybeUninit::zeroed().assume_init() })
    }

    #[test]
    fn who_sees_that_the_end_was_left_reads_all_of_it() {
        let control = control();
        let left = RunEnd {
            warnings: vec!["w".repeat(100)],
            ..RunEnd::default()
        };
        scope(|scope| {
            scope.spawn(|| control.set_summary(&left));
            let read = loop {
                match control.summary() {
                    Some(end) => break end,
                    None => std::thread::yield_now(),
                }
            };
            assert_eq!(read.warnings, left.warnings);
        });
    }

    #[test]
    fn a_supervisor_that_the_launcher_gave_up_does_not_begin() {
        let control = control();
        let (begins, known) = scope(|scope| {
            let supervisor = scope.spawn(|| control.has_supervisor(7));
            let known = control.supervisor_or_none();
            (supervisor.join().unwrap(), known)
        });
        assert_eq!(known, begins.then_some(7), "both or neither");
    }
}
