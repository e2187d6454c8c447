//! The state that launcher, keeper and supervisor share: anonymous pages that all three map, and an
//! eventfd that wakes the launcher.
//!
//! Invariants: everything in it is atomic or guarded by `phase`. It is plain data without
//! addresses, and stays true when its writer dies.
#![allow(unsafe_code)]

use backstory_eventlog::run::RunEnd;
use backstory_sys::Pid;
use std::cell::UnsafeCell;
use std::io;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};

/// The program of the command was started: its `execve` succeeded.
pub(crate) const STARTED: u32 = 1;
/// The command could not be started. `errno` says why.
pub(crate) const NOT_STARTED: u32 = 2;
/// The command has ended, and `status` is valid.
pub(crate) const ENDED: u32 = 4;
/// `summary` is valid.
pub(crate) const SUMMARY: u32 = 8;
/// The log is finalized and needs no more work.
pub(crate) const SEALED: u32 = 16;
/// The launcher has the result it waited for. Its end is no reason to end the command.
pub(crate) const DISMISSED: u32 = 32;
/// `summary` is from before the end of the run: processes of the run went on.
pub(crate) const EARLY: u32 = 64;
/// The log has its end, and `summary` is that end. The deep log is still to be finished, or
/// verdicts of earlier runs to be confirmed. Until then, the log also has the reason that they are
/// not.
pub(crate) const LOGGED: u32 = 128;

/// There is no supervisor, and there will never be one.
const NOBODY: Pid = -1;

const SUMMARY_BYTES: usize = 16 * 1024;
const SIGNALS: usize = 65;

/// The shared state. Zeroed memory is its initial state.
#[repr(C)]
pub(crate) struct Control {
    phase: AtomicU32,
    errno: AtomicI32,
    status: AtomicI32,
    /// Process id of the supervisor. [`NOBODY`] if there will never be one.
    supervisor: AtomicI32,
    /// Process id of the keeper.
    pub keeper: AtomicI32,
    /// Process id of the command.
    pub command: AtomicI32,
    /// End of the command, in ns since 1970.
    ended_at: AtomicU64,
    /// The file systems' clock at the start of the command, in ns since 1970.
    quiet: AtomicI64,
    /// The latest stop of the command: the signal in the low 8 bits, a counter above.
    pub stop: AtomicU32,
    /// Not 0 while the launcher stops because the command has stopped.
    pub launcher_stops: AtomicU32,
    /// Signals sent to the launcher's whole process group, by number. The keeper is a silent member
    /// of the group and counts them.
    pub group_signals: [AtomicU32; SIGNALS],
    /// Odd while the keeper takes signals. It may have taken one that it has not counted yet.
    pub keeper_counts: AtomicU32,
    summary_length: AtomicU32,
    summary: UnsafeCell<[u8; SUMMARY_BYTES]>,
}

// SAFETY: only the process that concludes the run writes `summary`, before it sets `SUMMARY`.
// Everything else is atomic.
unsafe impl Sync for Control {}

impl Control {
    /// Maps a new shared state. It is shared with every process forked from now on and never
    /// unmapped.
    pub(crate) fn map() -> io::Result<&'static Control> {
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
        // SAFETY: new memory that is never freed. All zero bytes are a valid Control.
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

    /// Adds to the phases that have been reached.
    pub(crate) fn reach(&self, phase: u32) {
        self.phase.fetch_or(phase, Ordering::AcqRel);
    }

    /// True if this phase has been reached.
    pub(crate) fn reached(&self, phase: u32) -> bool {
        self.phase.load(Ordering::Acquire) & phase != 0
    }

    /// Stores that the command could not be started.
    pub(crate) fn set_not_started(&self, errno: i32) {
        self.errno.store(errno, Ordering::Relaxed);
        self.reach(NOT_STARTED);
    }

    /// The errno of the failed start. `None` if the start did not fail.
    pub(crate) fn not_started(&self) -> Option<i32> {
        self.reached(NOT_STARTED)
            .then(|| self.errno.load(Ordering::Relaxed))
    }

    /// Stores the end of the command. Called before the command is reaped. A reader that finds
    /// neither a child nor this state then knows that the status was lost.
    pub(crate) fn set_ended(&self, wait_status: i32, at: i64) {
        self.status.store(wait_status, Ordering::Relaxed);
        self.ended_at.store(at as u64, Ordering::Relaxed);
        self.reach(ENDED);
    }

    /// The wait status of the command and the time of its end, once it has ended.
    pub(crate) fn ended(&self) -> Option<(i32, i64)> {
        self.reached(ENDED).then(|| {
            (
                self.status.load(Ordering::Relaxed),
                self.ended_at.load(Ordering::Relaxed) as i64,
            )
        })
    }

    /// Stores the file systems' clock at the start of the command, in ns since 1970.
    pub(crate) fn set_quiet(&self, at: i64) {
        self.quiet.store(at, Ordering::Release);
    }

    /// The file systems' clock at the start of the command. 0 before that.
    pub(crate) fn quiet(&self) -> i64 {
        self.quiet.load(Ordering::Acquire)
    }

    /// Stores the process id of the supervisor. Returns false if the launcher had given it up
    /// before. The supervisor must not begin then.
    pub(crate) fn has_supervisor(&self, pid: Pid) -> bool {
        let (set, get) = (Ordering::AcqRel, Ordering::Acquire);
        let before = self.supervisor.compare_exchange(0, pid, set, get);
        before.map_or_else(|known| known == pid, |_| true)
    }

    /// The supervisor's process id, once it exists.
    pub(crate) fn supervisor(&self) -> Option<Pid> {
        Some(self.supervisor.load(Ordering::Acquire)).filter(|&pid| pid > 0)
    }

    /// The supervisor's process id. Without one, declares that there will never be one: the process
    /// that could have forked it is dead.
    pub(crate) fn supervisor_or_none(&self) -> Option<Pid> {
        let (set, get) = (Ordering::AcqRel, Ordering::Acquire);
        let before = self.supervisor.compare_exchange(0, NOBODY, set, get);
        before.err().filter(|&pid| pid > 0)
    }

    /// The command's process id, once it exists.
    pub(crate) fn command_pid(&self) -> Option<Pid> {
        Some(self.command.load(Ordering::Acquire)).filter(|&pid| pid > 0)
    }

    /// The command's process id. Without one, declares that there will never be one: the process
    /// that could have started it is dead. A child that was forked nevertheless learns it from
    /// [`Control::is_command`].
    pub(crate) fn command_or_none(&self) -> Option<Pid> {
        let (set, get) = (Ordering::AcqRel, Ordering::Acquire);
        let before = self.command.compare_exchange(0, NOBODY, set, get);
        before.err().filter(|&pid| pid > 0)
    }

    /// Stores the command's process id. Returns false if no process waits for the command any more.
    /// The command must not run then. Makes no system call.
    pub(crate) fn is_command(&self, pid: Pid) -> bool {
        let (set, get) = (Ordering::AcqRel, Ordering::Acquire);
        let still_wanted = |before| (before != NOBODY).then_some(pid);
        self.command.fetch_update(set, get, still_wanted).is_ok()
    }

    /// Stores the end of the run for the launcher.
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
        // SAFETY: see `Sync`: one writer, and no reader before the phase is set.
        unsafe {
            let place = self.summary.get().cast::<u8>();
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, length);
        }
        self.summary_length.store(length as u32, Ordering::Relaxed);
        self.reach(SUMMARY);
    }

    /// The end of the run, once it is stored.
    pub(crate) fn summary(&self) -> Option<RunEnd> {
        if !self.reached(SUMMARY) {
            return None;
        }
        let length = (self.summary_length.load(Ordering::Relaxed) as usize).min(SUMMARY_BYTES);
        // SAFETY: the phase says that it was written. It is not written again while the launcher
        // lives.
        let bytes = unsafe { std::slice::from_raw_parts(self.summary.get().cast::<u8>(), length) };
        serde_json::from_slice(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::scope;

    /// A state in this process's own memory. Threads stand for processes, so that Miri can check
    /// them.
    fn control() -> Box<Control> {
        // SAFETY: all zero bytes are a valid Control.
        Box::new(unsafe { std::mem::MaybeUninit::zeroed().assume_init() })
    }

    #[test]
    fn a_reader_that_sees_the_phase_reads_the_whole_summary() {
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
