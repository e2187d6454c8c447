//! Facts about a process, from `/proc`.
//!
//! A process that waits for this file system may hold its own locks. So a request reads only
//! `stat`, `status`, and the links `exe` and `cwd` in `/proc`. These take neither the lock of a
//! process's memory nor that of its exec. The arguments lie in the
//! process's memory: [`ArgumentReader`] reads them in a thread of its own and gives up after a
//! while.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

/// Longest wait for the arguments of a process.
const PATIENCE: Duration = Duration::from_millis(100);
/// Most bytes of arguments that are read.
const ARGUMENTS: u64 = 1 << 20;

/// The program image of a process. Every exec changes the addresses, because the kernel chooses
/// them at random; a fork copies them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProgramImage {
    name: Vec<u8>,
    stack: u64,
    arguments: u64,
}

impl ProgramImage {
    /// True if nothing tells this image from another one of its name. That
    /// holds for threads of the kernel, and for processes in the middle of an exec. It also holds
    /// for processes that this user may not look into.
    pub(crate) fn is_hidden(&self) -> bool {
        self.stack <= 1 && self.arguments <= 1
    }
}

/// The facts of `/proc/TID/stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ThreadStat {
    /// Parent of the process.
    pub(crate) parent: u32,
    /// Start in clock ticks since boot. With the id, it identifies the thread.
    pub(crate) born: u64,
    /// It has ended, or is about to be removed.
    pub(crate) ended: bool,
    /// The program.
    pub(crate) image: ProgramImage,
}

/// Opens the `stat` of a process or thread.
pub(crate) fn open_stat(id: u32) -> io::Result<File> {
    File::open(format!("/proc/{id}/stat"))
}

/// Reads a `stat` again. `None` if the thread has ended.
pub(crate) fn read_stat(file: &File) -> Option<ThreadStat> {
    let mut text = [0; 1024];
    let length = file.read_at(&mut text, 0).ok()?;
    parse_stat(text.get(..length)?)
}

/// The name is in parentheses and may contain any byte, so the fields are counted from its end.
fn parse_stat(text: &[u8]) -> Option<ThreadStat> {
    let open = text.iter().position(|byte| *byte == b'(')?;
    let close = text.iter().rposition(|byte| *byte == b')')?;
    let name = text.get(open + 1..close)?.to_vec();
    let rest = std::str::from_utf8(text.get(close + 1..)?).ok()?;
    // The first field after the name is number 3 in proc(5).
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |of: usize| {
        fields
            .get(of - 3)
            .and_then(|field| field.parse::<u64>().ok())
    };
    Some(ThreadStat {
        parent: u32::try_from(number(4)?).ok()?,
        born: number(22)?,
        ended: matches!(*fields.first()?, "Z" | "X"),
        image: ProgramImage {
            name,
            stack: number(28)?,
            arguments: number(48).unwrap_or(0),
        },
    })
}

/// The process that a thread belongs to.
pub(crate) fn process_of(thread: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

/// The target of a link of a process, `exe` or `cwd`, if it is a path of the present.
pub(crate) fn link(process: u32, name: &str) -> Option<Vec<u8>> {
    let path = std::fs::read_link(format!("/proc/{process}/{name}")).ok()?;
    let path = path.into_os_string().into_vec();
    let path = path.strip_suffix(b" (deleted)").unwrap_or(&path).to_vec();
    path.starts_with(b"/").then_some(path)
}

/// Reads the arguments of processes in a thread of its own.
#[derive(Debug)]
pub(crate) struct ArgumentReader {
    requests: Sender<(u32, SyncSender<Vec<u8>>)>,
}

impl ArgumentReader {
    /// Starts the thread. It ends with the reader.
    pub(crate) fn start() -> io::Result<ArgumentReader> {
        let (requests, jobs): (_, Receiver<(u32, SyncSender<Vec<u8>>)>) = channel();
        std::thread::Builder::new()
            .name("arguments".to_owned())
            .spawn(move || {
                for (process, reply) in jobs {
                    // The request may have given up meanwhile.
                    let _ = reply.try_send(read_arguments(process));
                }
            })?;
        Ok(ArgumentReader { requests })
    }

    /// The arguments of a process. Empty if they cannot be read, or not in time.
    pub(crate) fn arguments(&self, process: u32) -> Vec<Vec<u8>> {
        let (reply, answer) = sync_channel(1);
        if self.requests.send((process, reply)).is_err() {
            return Vec::new();
        }
        let text = answer.recv_timeout(PATIENCE).unwrap_or_default();
        let text = text.strip_suffix(b"\0").unwrap_or(&text);
        match text.is_empty() {
            true => Vec::new(),
            false => text.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect(),
        }
    }
}

fn read_arguments(process: u32) -> Vec<u8> {
    let mut text = Vec::new();
    if let Ok(file) = File::open(format!("/proc/{process}/cmdline")) {
        // Bytes that were read before an error count.
        let _ = file.take(ARGUMENTS).read_to_end(&mut text);
    }
    text
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
        assert_eq!((stat.parent, stat.born, stat.ended), (3, 22, false));
        assert_eq!(stat.image.name, b"a) b (c");
        assert_eq!((stat.image.stack, stat.image.arguments), (28, 48));
    }

    #[test]
    fn the_own_process_is_as_it_says_itself() {
        let own = std::process::id();
        let stat = read_stat(&open_stat(own).unwrap()).unwrap();
        assert_eq!(Some(stat.parent), backstory_sys::parent().map(|p| p as u32));
        assert_eq!(process_of(own), Some(own));
        let exe = std::env::current_exe().unwrap();
        assert_eq!(link(own, "exe"), Some(exe.into_os_string().into_vec()));
        let given: Vec<Vec<u8>> = std::env::args_os().map(OsStringExt::into_vec).collect();
        assert_eq!(ArgumentReader::start().unwrap().arguments(own), given);
    }

    #[test]
    fn a_process_that_has_ended_is_noticed_by_its_open_stat() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let stat = open_stat(child.id()).unwrap();
        child.wait().unwrap();
        assert_eq!(read_stat(&stat), None);
    }
}
