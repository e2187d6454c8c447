//! Hands the work of a background process that gets no processor to a command that waits.
//!
//! A background indexer comes last for processors and disks, and holds locks of the store. On a
//! busy machine it may run for a few milliseconds each second. A user's command that waits for such
//! a lock would wait just as long.
//!
//! 1. The command holds `LOCK.wanted` (`flock`) while it waits for `LOCK`.
//! 2. A thread of the background process looks for that, and asks the kernel for an ordinary
//!    priority. Root, `CAP_SYS_NICE` and `ulimit -e 40` get it.
//! 3. If the kernel refuses, and the process does not run half of the time, it starts its successor
//!    and ends. The kernel releases the lock with it. The command does the work.
//! 4. The successor, in the background as well, waits until no command wants the lock.
//!
//! Invariant: the store survives the end of an indexer at any moment. So the thread need not know
//! what the others do.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use backstory_files::regular;
use backstory_sys as sys;
use rustix::time::{ClockId, clock_gettime};

/// How often a background process looks for a command that waits.
const PAUSE: Duration = Duration::from_millis(20);

/// How long the process is observed before it ends.
const OBSERVED: Duration = Duration::from_millis(100);

/// The locks that this process holds.
static HELD: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A lock of the store. It is released at the end of its life.
#[derive(Debug)]
pub struct HeldLock {
    path: PathBuf,
    _file: File,
}

impl HeldLock {
    /// The lock that was just taken on a file.
    pub fn of(file: File, path: PathBuf) -> HeldLock {
        held(|all| all.push(path.clone()));
        HeldLock { path, _file: file }
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        held(|all| {
            if let Some(at) = all.iter().position(|path| *path == self.path) {
                all.swap_remove(at);
            }
        });
    }
}

fn held<T>(with: impl FnOnce(&mut Vec<PathBuf>) -> T) -> T {
    with(&mut HELD.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The file that is locked by those who wait for a lock.
fn wanted(lock: &Path) -> PathBuf {
    let mut path = lock.as_os_str().to_owned();
    path.push(".wanted");
    path.into()
}

/// Says, until the result is dropped, that a user waits for a lock. A background process says
/// nothing: it can wait. In a directory that cannot be written, the command just waits.
pub fn ask(lock: &Path) -> Option<File> {
    if sys::is_last() {
        return None;
    }
    let file = regular::open_private(wanted(lock)).ok()?;
    file.lock_shared().ok()?;
    Some(file)
}

/// Makes a background process wait while commands want a lock.
pub fn let_pass(lock: &Path) {
    if sys::is_last()
        && let Ok(file) = regular::open(wanted(lock))
    {
        let _ = file.lock();
    }
}

fn is_wanted(lock: &Path) -> bool {
    let Ok(file) = regular::open(wanted(lock)) else {
        return false;
    };
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

/// Watches for commands that wait, if this is a background process. `successor` is the command line
/// of the process that continues its work.
pub fn watch(successor: Vec<OsString>) {
    if sys::is_last() {
        std::thread::spawn(move || serve(&successor));
    }
}

fn serve(successor: &[OsString]) {
    let mut since: Option<Observation> = None;
    loop {
        std::thread::sleep(PAUSE);
        if !held(|all| all.iter().any(|lock| is_wanted(lock))) {
            since = None;
            continue;
        }
        let Some(before) = since else {
            // Disks serve the process as any other from here on.
            if sys::come_back() {
                return;
            }
            since = Some(Observation::now());
            continue;
        };
        let now = Observation::now();
        if now.time - before.time < OBSERVED {
            continue;
        }
        if before.shows_starvation(now) {
            start(successor);
            backstory_inspection::end_workers();
            sys::exit_now(0);
        }
        since = Some(now);
    }
}

/// The times of this process at one moment.
#[derive(Debug, Clone, Copy)]
struct Observation {
    time: Instant,
    /// Processor time of its threads.
    used: Duration,
}

impl Observation {
    fn now() -> Observation {
        let used = clock_gettime(ClockId::ProcessCPUTime);
        Observation {
            time: Instant::now(),
            used: Duration::new(used.tv_sec.unsigned_abs(), used.tv_nsec as u32),
        }
    }

    /// True if the process ran for less than half of the time: it waits for processors, for disks,
    /// or for a child that does.
    fn shows_starvation(self, now: Observation) -> bool {
        (now.used - self.used) * 2 < now.time - self.time
    }
}

/// Starts the successor. It inherits the priority. If it cannot be started, the next question does
/// its work.
fn start(command: &[OsString]) {
    let Some((program, arguments)) = command.split_first() else {
        return;
    };
    let mut command = Command::new(program);
    command.args(arguments);
    command.stdin(Stdio::null());
    let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_wanted_while_somebody_waits_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let lock = dir.path().join("index.lock");
        assert!(!is_wanted(&lock));
        let asked = ask(&lock).unwrap();
        let also = ask(&lock).unwrap();
        drop(asked);
        assert!(is_wanted(&lock));
        drop(also);
        assert!(!is_wanted(&lock));
    }

    #[test]
    fn a_lock_is_held_until_it_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index.lock");
        let is_held = || held(|all| all.contains(&path));
        let lock = HeldLock::of(File::create(&path).unwrap(), path.clone());
        assert!(is_held());
        drop(lock);
        assert!(!is_held());
    }

    #[test]
    fn a_process_that_ran_less_than_half_of_the_time_starves() {
        let before = Observation::now();
        let after = |used, passed| Observation {
            time: before.time + Duration::from_millis(passed),
            used: before.used + Duration::from_millis(used),
        };
        assert!(before.shows_starvation(after(3, 1000)));
        assert!(before.shows_starvation(after(49, 100)));
        assert!(!before.shows_starvation(after(51, 100)));
        assert!(!before.shows_starvation(after(200, 100)));
    }
}
