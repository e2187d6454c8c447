//! Runs `backstory-session` in a directory of its own and reads its results.
#![allow(dead_code)]

pub mod kept;

use backstory_eventlog::Log;
use backstory_eventlog::event::{Event, Op};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Guard modes.
pub const MODES: [&str; 4] = ["off", "on", "strict", "auto"];

static RUNS: AtomicU32 = AtomicU32::new(0);

/// `contents_auto` has the tests of other programs, for runs that start without the filter.
const STARTS_PLAIN: bool = matches!(env!("CARGO_CRATE_NAME").as_bytes(), b"contents_auto");

/// Guard modes in which a change is seen before it happens.
pub const SEEING: &[&str] = match STARTS_PLAIN {
    true => &["auto"],
    false => &["on", "strict"],
};

/// A directory for one recording.
pub struct Run {
    pub dir: tempfile::TempDir,
    pub id: String,
    options: Vec<String>,
}

impl Run {
    pub fn new(options: &[&str]) -> Run {
        let number = RUNS.fetch_add(1, Ordering::Relaxed);
        let usual: &[&str] = match STARTS_PLAIN && !options.contains(&"--guard") {
            true => &["--guard", "auto"],
            false => &[],
        };
        Run {
            dir: tempfile::tempdir().unwrap(),
            // A program can have this module several times, each with a counter of its own.
            id: format!("t{}x{}x{number}", std::process::id(), module_path!().len()),
            options: options.iter().chain(usual).map(|&o| o.into()).collect(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn log_path(&self) -> PathBuf {
        self.path(&format!("{}.log", self.id))
    }

    pub fn part_path(&self) -> PathBuf {
        self.path(&format!("{}.log.part", self.id))
    }

    pub fn arena_path(&self) -> PathBuf {
        PathBuf::from(format!("/dev/shm/backstory-{}.arena", self.id))
    }

    /// The recording, as a command that can still be changed.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_backstory-session"));
        command
            .arg(self.dir.path())
            .arg(&self.id)
            .args(&self.options)
            .arg("--")
            .args(words)
            .current_dir(self.dir.path());
        if STARTS_PLAIN {
            // cargo sets this one. A program that starts with it needs the filter.
            command.env_remove("LD_LIBRARY_PATH");
        }
        command
    }

    pub fn record(&self, words: &[&str]) -> Output {
        self.command(words).stdin(Stdio::null()).output().unwrap()
    }

    pub fn shell(&self, script: &str) -> Output {
        self.record(&["sh", "-c", script])
    }

    /// The result of `record`, as text.
    pub fn recorded(&self) -> String {
        fs::read_to_string(self.path(&format!("{}.recorded", self.id))).unwrap()
    }

    /// The log, once it is finalized.
    pub fn log(&self) -> Log {
        eventually("the log is finalized", || self.log_path().exists());
        Log::open(self.log_path()).unwrap()
    }

    pub fn events(&self) -> Vec<Event> {
        self.log().events().collect()
    }

    pub fn reasons(&self) -> Vec<String> {
        self.log().end().unwrap().incomplete_because.clone()
    }

    /// Asserts that the run left nothing but its log.
    pub fn assert_tidy(&self) {
        eventually("the arena is gone", || !self.arena_path().exists());
        let socket = backstory_arena::socket_path(&self.arena_path());
        let keepers = backstory_arena::keeper_socket_path(&self.arena_path());
        eventually("the sockets are gone", || {
            !socket.exists() && !keepers.exists()
        });
        assert!(!self.part_path().exists(), "the part log is still there");
    }
}

/// Waits until a condition is true, and fails if that takes too long.
pub fn eventually(what: &str, mut is: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(120);
    while !is() {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Wait statuses of processes whose end the supervisor saw.
pub fn gone(events: &[Event]) -> Vec<i32> {
    let status = |e: &Event| match e.op {
        Op::Gone { status } => status,
        _ => None,
    };
    events.iter().filter_map(status).collect()
}

/// The direct children of a process, whichever of its threads forked them.
pub fn children(parent: u32) -> Vec<u32> {
    let lists = of_threads(parent, "children").collect::<String>();
    let pids = lists.split_ascii_whitespace();
    pids.filter_map(|pid| pid.parse().ok()).collect()
}

/// A file of `/proc` about each thread of a process.
fn of_threads(pid: u32, name: &str) -> impl Iterator<Item = String> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().flatten();
    threads.filter_map(move |thread| fs::read_to_string(thread.path().join(name)).ok())
}

/// A direct child of a process, by name, whichever thread forked it.
pub fn child_named(parent: u32, name: &str) -> Option<u32> {
    let mut children = children(parent).into_iter();
    children.find(|pid| comm(*pid).is_some_and(|c| c == name))
}

/// True if all threads of a process are stopped.
pub fn is_stopped(pid: u32) -> bool {
    of_threads(pid, "stat").all(|stat| {
        let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
        state.is_some_and(|state| state.starts_with('T'))
    })
}

/// True if a process has a seccomp filter.
pub fn has_filter(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status"));
    status.is_ok_and(|status| status.lines().any(|line| line == "Seccomp:\t2"))
}

pub fn comm(pid: u32) -> Option<String> {
    let comm = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(comm.trim_end().to_owned())
}

pub fn alive(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    !stat
        .rsplit_once(')')
        .is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'))
}

/// Keeper and supervisor of a launcher.
pub fn others(launcher: u32) -> (u32, u32) {
    let mut found = (0, 0);
    eventually("keeper and supervisor run", || {
        let keeper = child_named(launcher, "backstory-keep");
        let supervisor = keeper.and_then(|k| child_named(k, "backstory-super"));
        if let (Some(k), Some(s)) = (keeper, supervisor) {
            found = (k, s);
            return true;
        }
        false
    });
    found
}

pub fn kill(pid: u32, signal: i32) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    let signal = rustix::process::Signal::from_named_raw(signal).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

pub fn exists(path: impl AsRef<Path>) -> bool {
    path.as_ref().exists()
}
