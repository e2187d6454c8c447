//! Facts about a process, from `/proc`.
//!
//! The kernel may make a reader of these files wait for a process that waits for this file system:
//!
//! - `stat`, `exe` and `cwd` take the lock of an exec (Linux 6.18). The exec closes files, and the
//!   kernel sends a request for each.
//! - `cmdline` takes the lock of a memory. An unmapping holds it while the kernel writes pages.
//! - `stat` holds a memory. If the process ends meanwhile, the reader itself writes its pages.
//!
//! So only the threads of [`observers`](crate::observers) call the functions here.

use backstory_sys as sys;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;

/// The process that has the threads of the kernel as its children.
const KTHREADD: u32 = 2;
/// Most bytes of arguments that are read.
const ARGUMENTS: u64 = 1 << 20;
/// Most threads whose `stat` one observer keeps open.
const KEPT: usize = 256;

/// The program image of a process: the addresses of its parts. Every exec changes them, because the
/// kernel chooses them at random; a fork copies them; all threads share them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProgramImage([u64; 10]);

impl ProgramImage {
    /// True if nothing tells this image from another one. The process is then a thread of the
    /// kernel, belongs to another user, or executes or ends at this moment.
    pub(crate) fn is_hidden(&self) -> bool {
        self.0.iter().all(|address| *address <= 1)
    }
}

/// The facts of `/proc/TID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadStat {
    /// Parent of the process.
    pub(crate) parent: u32,
    /// Start in clock ticks since boot. With the id, it identifies the thread.
    pub(crate) born: u64,
    /// The program.
    pub(crate) image: ProgramImage,
}

/// A thread, and the process that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeenThread {
    /// The process.
    pub(crate) pid: u32,
    /// Start of the process's first thread.
    pub(crate) born: u64,
    /// The program.
    pub(crate) image: ProgramImage,
}

/// A process and its program.
#[derive(Debug)]
pub(crate) struct ProcessFacts {
    pub(crate) pid: u32,
    /// The facts of the first thread.
    pub(crate) stat: ThreadStat,
    /// Readable once the process has ended. None if no descriptor is left.
    pub(crate) descriptor: Option<OwnedFd>,
    /// The current directory, as the process sees it.
    pub(crate) directory: Option<Vec<u8>>,
    /// The path of the program. None for a thread of the kernel.
    pub(crate) program: Option<Vec<u8>>,
    /// The name of a thread of the kernel.
    pub(crate) kernel_thread: Option<Vec<u8>>,
    /// The arguments, the name of the program first.
    pub(crate) arguments: Vec<Vec<u8>>,
}

/// The facts about a process that is met for the first time.
#[derive(Debug)]
pub(crate) struct Introduction {
    pub(crate) process: ProcessFacts,
    /// The parent, if both run one program: the process is then a fork of it.
    pub(crate) forked_from: Option<ProcessFacts>,
}

/// Opens the `stat` of a process or thread.
fn open_stat(id: u32) -> io::Result<File> {
    File::open(format!("/proc/{id}/stat"))
}

/// Reads a `stat` again. `None` if the thread has ended.
fn read_stat(file: &File) -> Option<ThreadStat> {
    let mut text = [0; 1024];
    let length = file.read_at(&mut text, 0).ok()?;
    parse_stat(text.get(..length)?)
}

fn stat_of(id: u32) -> Option<ThreadStat> {
    read_stat(&open_stat(id).ok()?)
}

fn parse_stat(text: &[u8]) -> Option<ThreadStat> {
    // The first is number 3 in proc_pid_stat(5).
    let fields: Vec<&str> = sys::process_tree::stat_fields(text)?.collect();
    let number = |of: usize| {
        fields
            .get(of - 3)
            .and_then(|field| field.parse::<u64>().ok())
    };
    let parts = [26, 27, 28, 45, 46, 47, 48, 49, 50, 51];
    Some(ThreadStat {
        parent: u32::try_from(number(4)?).ok()?,
        born: number(22)?,
        image: ProgramImage(parts.map(|field| number(field).unwrap_or(0))),
    })
}

/// The process that a thread belongs to.
fn process_of(thread: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

/// The target of a link of a process, `exe` or `cwd`, if it is a path of the present.
fn link(process: u32, name: &str) -> Option<Vec<u8>> {
    let path = std::fs::read_link(format!("/proc/{process}/{name}")).ok()?;
    let path = path.into_os_string().into_vec();
    let path = path.strip_suffix(b" (deleted)").unwrap_or(&path).to_vec();
    path.starts_with(b"/").then_some(path)
}

fn arguments(process: u32) -> Vec<Vec<u8>> {
    let mut text = Vec::new();
    if let Ok(file) = File::open(format!("/proc/{process}/cmdline")) {
        // An error cuts the arguments off.
        let _ = file.take(ARGUMENTS).read_to_end(&mut text);
    }
    let text = text.strip_suffix(b"\0").unwrap_or(&text);
    match text.is_empty() {
        true => Vec::new(),
        false => text.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect(),
    }
}

/// The name of a process without a program, if it is a thread of the kernel.
fn kernel_thread(process: u32, parent: u32) -> Option<Vec<u8>> {
    if parent != KTHREADD {
        return None;
    }
    let name = std::fs::read(format!("/proc/{process}/comm")).ok()?;
    Some(name.strip_suffix(b"\n").unwrap_or(&name).to_vec())
}

fn facts(pid: u32) -> Option<ProcessFacts> {
    let before = stat_of(pid)?;
    let program = link(pid, "exe");
    let mut facts = ProcessFacts {
        pid,
        stat: before,
        descriptor: sys::pidfd_open(pid, false).ok(),
        directory: link(pid, "cwd"),
        kernel_thread: match program {
            Some(_) => None,
            None => kernel_thread(pid, before.parent),
        },
        program,
        arguments: arguments(pid),
    };
    facts.stat = stat_of(pid)?;
    // All of this was said of one process.
    (facts.stat.born == before.born).then_some(facts)
}

/// A process, and its parent if the process is a fork that runs the parent's program. `None` if the
/// process has ended.
pub(crate) fn introduction(pid: u32) -> Option<Introduction> {
    let process = facts(pid)?;
    let image = process.stat.image;
    let parent = facts(process.stat.parent);
    let forked_from = parent.filter(|above| above.stat.image == image && !image.is_hidden());
    Some(Introduction {
        process,
        forked_from,
    })
}

#[derive(Debug)]
struct KeptThread {
    stat: File,
    pid: u32,
    born: u64,
}

/// Threads that were seen before, with their `stat` open. An open `stat` never shows another thread
/// of the same id.
#[derive(Debug, Default)]
pub(crate) struct SeenThreads(HashMap<u32, KeptThread>);

impl SeenThreads {
    /// Looks at a thread. `None` if it has ended, or is not visible here.
    pub(crate) fn look(&mut self, thread: u32) -> Option<SeenThread> {
        if let Some(kept) = self.0.get(&thread) {
            if let Some(stat) = read_stat(&kept.stat) {
                return Some(SeenThread {
                    pid: kept.pid,
                    born: kept.born,
                    image: stat.image,
                });
            }
            self.0.remove(&thread);
        }
        let file = open_stat(thread).ok()?;
        let pid = process_of(thread)?;
        let born = stat_of(pid)?.born;
        // The thread still lives, so that all of this was said of one process.
        let image = read_stat(&file)?.image;
        if self.0.len() >= KEPT {
            self.0.clear();
        }
        let stat = file;
        self.0.insert(thread, KeptThread { stat, pid, born });
        Some(SeenThread { pid, born, image })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_shifts_no_field() {
        let mut text = b"7 (a) b (c) S 3 ".to_vec();
        text.extend(
            (5..=52)
                .map(|n| format!("{n} "))
                .collect::<String>()
                .bytes(),
        );
        let stat = parse_stat(&text).unwrap();
        assert_eq!((stat.parent, stat.born), (3, 22));
        let parts = [26, 27, 28, 45, 46, 47, 48, 49, 50, 51];
        assert_eq!(stat.image, ProgramImage(parts));
    }

    #[test]
    fn the_own_process_is_as_it_says_itself() {
        let own = std::process::id();
        let facts = introduction(own).unwrap().process;
        let parent = backstory_sys::parent().map(|parent| parent as u32);
        assert_eq!(Some(facts.stat.parent), parent);
        let exe = std::env::current_exe().unwrap();
        assert_eq!(facts.program, Some(exe.into_os_string().into_vec()));
        let given: Vec<Vec<u8>> = std::env::args_os().map(OsStringExt::into_vec).collect();
        assert_eq!(facts.arguments, given);
    }

    #[test]
    fn a_thread_is_seen_as_its_process_whatever_its_name() {
        let own = std::process::id();
        let process = stat_of(own).unwrap();
        let seen = std::thread::Builder::new()
            .name("other name".to_owned())
            .spawn(|| SeenThreads::default().look(backstory_sys::gettid()))
            .unwrap();
        let wanted = SeenThread {
            pid: own,
            born: process.born,
            image: process.image,
        };
        assert_eq!(seen.join().unwrap(), Some(wanted));
    }

    #[test]
    fn a_process_that_has_ended_is_not_seen_again() {
        let mut child = std::process::Command::new("sleep")
            .arg("9")
            .spawn()
            .unwrap();
        let mut threads = SeenThreads::default();
        assert!(threads.look(child.id()).is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(threads.look(child.id()), None);
    }
}
