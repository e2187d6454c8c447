//! The processes that have a socket.
//!
//! In: the inode of a socket. Out: the processes with a descriptor of it, and when each began. A
//! process inherits a socket from its parent. So the others with it are among the ancestors of the
//! one that is found first, and among their descendants. The last ancestor that is examined may
//! have closed the socket. A process that got it in a message (`SCM_RIGHTS`) is not found.
//!
//! A process that starts a program is two for a moment: the child closes the socket when it
//! executes the program. A socket with several processes is looked at again, therefore.
//!
//! Invariant: the facts about a process are those of the process that has the socket. The number of
//! one that has ended belongs to another process later, which does not have the socket.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

use backstory_sys::clock;
use backstory_sys::process_tree;

/// Most bytes of arguments that are read.
const ARGUMENTS: usize = 1 << 14;
/// Times between looks at a socket with several processes, in ms.
const PAUSES: [u64; 5] = [1, 2, 4, 8, 16];
/// Most processes of a family that are examined.
const FAMILY: usize = 1000;
/// The kernel counts the start of a process in these units, in ns (`USER_HZ`).
const TICK: i64 = 10_000_000;

/// A client of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientProcess {
    /// Its id.
    pub pid: u32,
    /// Start in clock ticks since boot. With the id, it identifies the process.
    pub born: u64,
    /// The executed file.
    pub program: Option<Vec<u8>>,
    /// Its arguments.
    pub arguments: Vec<Vec<u8>>,
    /// Its working directory.
    pub directory: Option<Vec<u8>>,
}

impl ClientProcess {
    /// True if the process has not ended.
    pub fn is_alive(&self) -> bool {
        born(self.pid) == Some(self.born)
    }
}

/// A process that has a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SocketHolder {
    pub(crate) process: ClientProcess,
    /// When it began, in ns since 1970.
    pub(crate) birth: i64,
}

/// The processes that have the socket with this inode. `first`: one of them, if it is known.
pub(crate) fn holders(inode: u64, first: Option<u32>) -> Vec<SocketHolder> {
    let mut found = once(inode, first);
    for pause in PAUSES {
        if found.len() < 2 {
            break;
        }
        std::thread::sleep(Duration::from_millis(pause));
        let again = once(inode, first);
        // One that ended in between can have used the socket. One that closed it has executed a
        // program.
        found.retain(|one| !one.process.is_alive());
        found.extend(again);
    }
    found
}

/// One look.
fn once(inode: u64, first: Option<u32>) -> Vec<SocketHolder> {
    let known = first.and_then(|pid| holder(pid, inode));
    let Some(newest) = known.or_else(|| newest(inode)) else {
        return Vec::new();
    };
    let pid = newest.process.pid;
    let mut found = vec![newest];
    let family = family(pid, inode).unwrap_or_else(processes);
    let others = family.into_iter().filter(|other| *other != pid);
    found.extend(others.filter_map(|other| holder(other, inode)));
    found
}

/// The newest process that has the socket with this inode.
fn newest(inode: u64) -> Option<SocketHolder> {
    let mut ids = processes();
    ids.sort_unstable_by(|a, b| b.cmp(a));
    ids.into_iter().find_map(|pid| holder(pid, inode))
}

fn processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// The oldest ancestor in a row that has the socket, its parent, and all their descendants. `None`
/// if the kernel does not list children.
fn family(pid: u32, inode: u64) -> Option<Vec<u32>> {
    let mut top = pid;
    while let Some(parent) = process_tree::parent(top)
        && descriptor(parent, inode).is_some()
    {
        top = parent;
    }
    // The parent may have closed the socket after it gave it to several children. The children of
    // the first process are services that do not share sockets.
    let parent = process_tree::parent(top).filter(|parent| *parent > 1);
    let top = parent.unwrap_or(top);
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut open = vec![top];
    while let Some(next) = open.pop() {
        if seen.insert(next) && found.len() < FAMILY {
            found.push(next);
            open.extend(children(next)?);
        }
    }
    Some(found)
}

/// The children of a process. `None` if the kernel does not list them.
fn children(pid: u32) -> Option<Vec<u32>> {
    let mut found = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let list = match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => list,
            // The thread has ended, or the kernel has no such file.
            Err(_) if !thread.path().exists() => continue,
            Err(_) => return None,
        };
        found.extend(
            list.split_whitespace()
                .filter_map(|one| one.parse::<u32>().ok()),
        );
    }
    Some(found)
}

/// A process, if it has the socket with this inode.
fn holder(pid: u32, inode: u64) -> Option<SocketHolder> {
    let descriptor = descriptor(pid, inode)?;
    let born = born(pid)?;
    let link = |name: &str| {
        let target = fs::read_link(format!("/proc/{pid}/{name}")).ok()?;
        Some(target.into_os_string().into_vec())
    };
    let mut arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    arguments.truncate(ARGUMENTS);
    let arguments = arguments.strip_suffix(&[0]).unwrap_or(&arguments);
    let process = ClientProcess {
        pid,
        born,
        program: link("exe"),
        arguments: arguments
            .split(|byte| *byte == 0)
            .map(<[u8]>::to_vec)
            .collect(),
        directory: link("cwd"),
    };
    let birth = birth_of(born);
    // The process has not ended while it was read.
    (process.is_alive() && is_socket(&descriptor, inode)).then_some(SocketHolder { process, birth })
}

/// The descriptor of a process that is the socket with this inode.
fn descriptor(pid: u32, inode: u64) -> Option<PathBuf> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    descriptors
        .map(|entry| entry.path())
        .find(|path| is_socket(path, inode))
}

fn is_socket(descriptor: &PathBuf, inode: u64) -> bool {
    let wanted = format!("socket:[{inode}]");
    fs::read_link(descriptor).is_ok_and(|target| target.as_os_str() == &*wanted)
}

/// When a process began, in clock ticks since boot. `None` if it has ended.
fn born(pid: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = process_tree::stat_fields(&stat)?;
    let state = fields.next()?;
    let born = fields.nth(18)?.parse().ok()?;
    // Its parent has not waited for it yet.
    (!["Z", "X"].contains(&state)).then_some(born)
}

/// When a process began, in ns since 1970. `None` if it has ended.
pub fn birth(pid: u32) -> Option<i64> {
    born(pid).map(birth_of)
}

fn birth_of(born: u64) -> i64 {
    let boot = clock::machine() - clock::since_boot();
    boot.saturating_add(i64::try_from(born).unwrap_or(i64::MAX).saturating_mul(TICK))
}
