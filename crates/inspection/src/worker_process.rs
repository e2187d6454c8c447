//! A worker process: its start, the limits on its time and output, and its end.
//!
//! Invariant: no worker outlives the value that stands for it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use crate::answer;

/// The processor time that the worker may take, in seconds.
pub const PROCESSOR_SECONDS: u64 = 2;

/// A worker is killed after this many seconds in a row in which it was not active.
pub const SECONDS: u64 = 10;

/// The time after which every worker is killed, in seconds. On a busy machine the worker, which has
/// the lowest priority, can wait long for a processor.
pub const MOST_SECONDS: u64 = 120;

/// The longest wait for output before the next look at a worker.
const LOOK: Duration = Duration::from_millis(200);

/// The most bytes of the worker's last words that are read.
const LAST_WORDS: usize = 4096;

/// The input of a worker in a memory file that no process can change.
pub(crate) fn memory_file(parts: &[&[u8]]) -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(memfd_create("inspected", flags)?);
    for part in parts {
        file.write_all(part)?;
    }
    file.seek(SeekFrom::Start(0))?;
    fcntl_add_seals(
        &file,
        SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
    )?;
    Ok(file)
}

/// How a process ended, with the last line that it wrote.
pub(crate) fn how(status: ExitStatus, errors: &[u8]) -> String {
    let how = match (status.signal(), status.code()) {
        (Some(libc::SIGSYS), _) => "it made a system call that it may not make".to_owned(),
        (Some(signal), _) => format!("it was ended by signal {signal}"),
        (None, code) => format!("it exited with {}", code.unwrap_or_default()),
    };
    let text = String::from_utf8_lossy(errors);
    // A worker that has no memory left ends with a note about backtraces.
    let says = |line: &&str| !line.trim().is_empty() && !line.starts_with("note: ");
    match text.lines().rfind(says) {
        Some(last) => format!("{how} ({})", printable(last.trim())),
        None => how,
    }
}

/// A text of foreign origin without characters that a terminal would obey.
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|char| {
            if answer::is_control(char) {
                '\u{fffd}'
            } else {
                char
            }
        })
        .collect()
}

/// The process groups of the workers that run. A worker without a group ends by its own limits.
static GROUPS: Mutex<Vec<u32>> = Mutex::new(Vec::new());

fn groups() -> MutexGuard<'static, Vec<u32>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn kill_group(leader: u32) {
    if let Some(group) = rustix::process::Pid::from_raw(leader as i32) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

/// Kills the workers with their children, because this process is about to end without unwinding.
/// No worker can be started after that.
pub fn end_workers() {
    let groups = groups();
    groups.iter().copied().for_each(kill_group);
    std::mem::forget(groups);
}

/// A worker that is killed when its caller stops waiting for it.
pub(crate) struct WorkerProcess {
    child: Child,
    /// The worker leads a process group, which ends with it.
    leads_group: bool,
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        if self.leads_group {
            let own = self.child.id();
            let mut groups = groups();
            groups.retain(|group| *group != own);
            kill_group(own);
        }
        // A process that has ended is not harmed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How the wait for a worker ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    /// The worker exited, or a signal ended it.
    Ended(ExitStatus),
    /// It took this many seconds.
    Late(u64),
    /// It wrote too much.
    Long,
}

/// The outputs of a worker, and how the wait for it ended.
pub(crate) struct Written {
    pub answer: Vec<u8>,
    pub errors: Vec<u8>,
    pub end: End,
}

impl WorkerProcess {
    /// Starts a worker with this standard input. The children of a worker that leads a group end
    /// with it.
    pub fn start(program: &Path, input: File, leads_group: bool) -> io::Result<WorkerProcess> {
        let mut command = Command::new(program);
        if leads_group {
            command.process_group(0);
        }
        // A worker that starts is in the list before another thread may read it.
        let mut groups = groups();
        let child = command
            .stdin(Stdio::from(input))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .current_dir("/")
            .env_remove("LD_PRELOAD")
            .env_remove("RUST_BACKTRACE")
            .spawn()?;
        groups.extend(leads_group.then(|| child.id()));
        Ok(WorkerProcess { child, leads_group })
    }

    /// True if the worker runs, or waits for a processor or a disk. Both serve it last, so a busy
    /// machine can delay it for long. The limit of processor time ends such a worker.
    fn wants_machine(&self) -> bool {
        let stat = std::fs::read(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let state =
            backstory_sys::process_tree::stat_fields(&stat).and_then(|mut fields| fields.next());
        matches!(state, Some("R" | "D"))
    }

    /// Reads both outputs until the worker has ended, or a limit is reached. The answer may have
    /// `longest` bytes. With a `patience`, a worker that waits for the machine gets no more time.
    pub fn written(&mut self, longest: usize, patience: Option<Duration>) -> io::Result<Written> {
        let mut limit = TimeLimit::new(patience);
        let mut stdout = self.child.stdout.take();
        let mut stderr = self.child.stderr.take();
        let (mut answer, mut errors) = (Vec::new(), Vec::new());
        let end = loop {
            let (ready_out, ready_err) = ready(&stdout, &stderr, limit.left(LOOK))?;
            if ready_out && !more(&mut stdout, &mut answer, usize::MAX)? {
                stdout = None;
            }
            if ready_err && !more(&mut stderr, &mut errors, LAST_WORDS)? {
                stderr = None;
            }
            if answer.len() > longest {
                break End::Long;
            }
            if stdout.is_none() && stderr.is_none() {
                break self.end(&mut limit)?;
            }
            let is_active = || ready_out || ready_err || self.wants_machine();
            if let Some(seconds) = limit.exceeded(is_active) {
                break End::Late(seconds);
            }
        };
        Ok(Written {
            answer,
            errors,
            end,
        })
    }

    /// Waits for the end of a worker that has closed its outputs. That follows at once as a rule.
    fn end(&mut self, limit: &mut TimeLimit) -> io::Result<End> {
        let mut pause = Duration::from_micros(100);
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(End::Ended(status));
            }
            if let Some(seconds) = limit.exceeded(|| self.wants_machine()) {
                return Ok(End::Late(seconds));
            }
            std::thread::sleep(limit.left(pause));
            pause = (pause * 2).min(LOOK);
        }
    }
}

/// The limit of a worker's time: a patience, or [`SECONDS`] and [`MOST_SECONDS`].
struct TimeLimit {
    begin: Instant,
    last: Instant,
    taken: TimeTaken,
    patience: Option<Duration>,
}

impl TimeLimit {
    fn new(patience: Option<Duration>) -> TimeLimit {
        let begin = Instant::now();
        TimeLimit {
            begin,
            last: begin,
            taken: TimeTaken::default(),
            patience,
        }
    }

    /// The time to wait before the next look, which is `most` unless the patience ends before.
    fn left(&self, most: Duration) -> Duration {
        match self.patience {
            Some(patience) => patience.saturating_sub(self.begin.elapsed()).min(most),
            None => most,
        }
    }

    /// Looks at the worker. Tells the seconds that it took if that is too long.
    fn exceeded(&mut self, is_active: impl Fn() -> bool) -> Option<u64> {
        let passed = std::mem::replace(&mut self.last, Instant::now()).elapsed();
        match self.patience {
            Some(most) => {
                let took = self.begin.elapsed();
                (took >= most).then_some(took.as_secs())
            }
            None => self.taken.exceeded(passed, is_active),
        }
    }
}

/// The time that a worker took. Of the time between two looks at it, at most [`LOOK`] counts. The
/// rest is time in which the machine was paused, or this process waited for a processor.
#[derive(Default)]
struct TimeTaken {
    all: Duration,
    /// The time since the last look at which the worker was active.
    asleep: Duration,
}

impl TimeTaken {
    /// Adds the time since the last look. Tells the limit that is exceeded, in seconds.
    fn exceeded(&mut self, passed: Duration, is_active: impl Fn() -> bool) -> Option<u64> {
        let passed = passed.min(LOOK);
        self.all += passed;
        self.asleep = if is_active() {
            Duration::ZERO
        } else {
            self.asleep + passed
        };
        if self.asleep.as_secs() >= SECONDS {
            return Some(SECONDS);
        }
        (self.all.as_secs() >= MOST_SECONDS).then_some(MOST_SECONDS)
    }
}

/// Waits until one of the outputs can be read. Tells which.
fn ready(
    stdout: &Option<impl AsFd>,
    stderr: &Option<impl AsFd>,
    left: Duration,
) -> io::Result<(bool, bool)> {
    let mut waited: Vec<PollFd<'_>> = Vec::new();
    if let Some(stdout) = stdout {
        waited.push(PollFd::new(stdout, PollFlags::IN));
    }
    if let Some(stderr) = stderr {
        waited.push(PollFd::new(stderr, PollFlags::IN));
    }
    let left = Timespec {
        tv_sec: left.as_secs() as i64,
        tv_nsec: i64::from(left.subsec_nanos()),
    };
    match poll(&mut waited, Some(&left)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let mut states = waited.iter().map(|fd| !fd.revents().is_empty());
    let first = stdout.is_some() && states.next().unwrap_or(false);
    let second = stderr.is_some() && states.next().unwrap_or(false);
    Ok((first, second))
}

/// Reads what is there. Bytes over `most` are dropped. False at the end.
fn more(from: &mut Option<impl Read>, into: &mut Vec<u8>, most: usize) -> io::Result<bool> {
    let mut part = [0; 16384];
    let Some(from) = from else {
        return Ok(false);
    };
    let read = from.read(&mut part)?;
    let room = most.saturating_sub(into.len()).min(read);
    into.extend_from_slice(&part[..room]);
    Ok(read > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exceeded_after(looks: usize, passed: Duration, is_active: bool) -> Option<u64> {
        let mut time = TimeTaken::default();
        (0..looks)
            .map(|_| time.exceeded(passed, || is_active))
            .find(Option::is_some)
            .flatten()
    }

    #[test]
    fn a_pause_of_the_machine_takes_no_time_from_a_worker() {
        let pause = Duration::from_secs(3600);
        assert_eq!(exceeded_after(49, pause, false), None);
        assert_eq!(exceeded_after(50, pause, false), Some(SECONDS));
        assert_eq!(exceeded_after(599, pause, true), None);
        assert_eq!(exceeded_after(600, pause, true), Some(MOST_SECONDS));
    }

    #[test]
    fn a_worker_that_writes_slowly_is_ended() {
        let step = Duration::from_millis(1);
        assert_eq!(exceeded_after(120_000, step, true), Some(MOST_SECONDS));
    }
}
