//! Who a notification's thread is: its process, its parent, its view of the file system, its rights.
//!
//! What is found is kept for as long as it can't have changed: a number that was seen a moment ago still means the same
//! thread, because pids are handed out in turn. A view is taken again whenever someone may have changed one.

use super::known::ByProcess;
use backstory_sys::kernel::{self as sys, PidfdInfo};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Ticks (0.05 to 0.2 s) for which a thread that was seen is still the same, and a change of view may still be under way.
pub const MOMENT: u64 = 200_000_000;
const SHARDS: usize = 16;
/// Threads remembered per shard.
const PER_SHARD: usize = 256;

/// A root directory or mount namespace that is not ours.
#[derive(Debug)]
pub struct Root {
    /// Its root directory.
    pub fd: OwnedFd,
    /// Where the caller's paths lie in what `/proc` shows of its links: empty, or a directory.
    pub prefix: Vec<u8>,
    /// The prefix is a directory in our own namespace, too: `chroot` without namespaces.
    pub ours: bool,
}

/// The file system as a thread sees it.
#[derive(Debug, Clone)]
pub enum View {
    /// As we do.
    Own,
    /// Otherwise.
    Other(Arc<Root>),
}

/// A thread, as far as it matters here.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Its process.
    pub pid: u32,
    /// Itself.
    pub tid: u32,
    /// Its process's parent.
    pub parent: u32,
    /// Its view of the file system.
    pub view: View,
    /// The process has not been met before.
    pub new: bool,
    /// If so: a pidfd of it, where there is one already.
    pub process: Option<Arc<OwnedFd>>,
}

impl Caller {
    /// A thread of which nothing could be found out.
    pub fn unknown(tid: u32) -> Caller {
        Caller {
            pid: tid,
            tid,
            parent: 0,
            view: View::Own,
            new: false,
            process: None,
        }
    }
}

/// Whose rights a file is accessed with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rights {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Whose they are.
    pub tid: u32,
    /// Further groups, once they were asked for: that takes longer than all the rest, and they rarely matter.
    pub groups: OnceCell<Vec<u32>>,
}

struct Known {
    caller: Caller,
    seen: u64,
    viewed: u64,
    unique: u64,
    marks: u32,
    last: u64,
    rights: Option<(u64, Rights)>,
}

/// All threads met lately.
pub struct Callers {
    proc: OwnedFd,
    shards: [Mutex<HashMap<u32, Known>>; SHARDS],
    /// What makes a process unique: who has been met.
    met: Mutex<ByProcess<u64>>,
    roots: Mutex<HashMap<(u64, u64, u64), Weak<Root>>>,
    own: (u64, u64, u64),
    namespace: Vec<u8>,
    /// Our own pid namespace.
    pids: Vec<u8>,
    changed: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn name(parts: std::fmt::Arguments<'_>) -> CString {
    CString::new(std::fmt::format(parts)).unwrap_or_default()
}

fn root_key(st: &libc::statx) -> (u64, u64, u64) {
    (
        libc::makedev(st.stx_dev_major, st.stx_dev_minor),
        st.stx_ino,
        st.stx_mnt_id,
    )
}

impl Callers {
    /// Nobody met yet.
    pub fn new() -> io::Result<Callers> {
        let proc = sys::openat2(
            libc::AT_FDCWD,
            c"/proc",
            libc::O_PATH | libc::O_DIRECTORY,
            0,
        )?;
        let own = root_key(&sys::statx(libc::AT_FDCWD, c"/", 0)?);
        let own_namespace = |link| {
            let mut text = [0; 64];
            let text = sys::readlink(proc.as_raw_fd(), link, &mut text);
            text.unwrap_or_default().to_vec()
        };
        let (namespace, pids) = (own_namespace(c"self/ns/mnt"), own_namespace(c"self/ns/pid"));
        Ok(Callers {
            proc,
            shards: std::array::from_fn(|_| Mutex::default()),
            met: Mutex::default(),
            roots: Mutex::default(),
            own,
            namespace,
            pids,
            changed: AtomicU64::new(0),
        })
    }

    fn shard(&self, tid: u32) -> MutexGuard<'_, HashMap<u32, Known>> {
        // A thread waits for one answer at a time, so two receivers hardly ever want the same shard.
        lock(&self.shards[tid as usize % SHARDS])
    }

    /// `/proc`.
    pub fn proc(&self) -> RawFd {
        self.proc.as_raw_fd()
    }

    /// Someone is about to change what paths mean, for itself or for others.
    pub fn view_changes(&self, now: u64) {
        self.changed.store(now, Ordering::Release);
    }

    fn view_holds(&self, viewed: u64) -> bool {
        let changed = self.changed.load(Ordering::Acquire);
        changed == 0 || viewed > changed + MOMENT
    }

    /// Who `tid` is. Valid while its notification waits.
    pub fn meet(&self, tid: u32, now: u64) -> io::Result<Caller> {
        if let Some(known) = self.shard(tid).get_mut(&tid)
            && now < known.seen + MOMENT
            && self.view_holds(known.viewed)
        {
            known.seen = now;
            return Ok(known.caller.clone());
        }
        let (info, unique, process) = self.identify_and_hold(tid)?;
        let view = if self.view_holds(0) {
            View::Own
        } else {
            self.view(tid)
        };
        let mut caller = Caller {
            pid: info.tgid,
            tid,
            parent: info.ppid,
            view,
            new: false,
            process: None,
        };
        let mut shard = self.shard(tid);
        if let Some(known) = shard.get_mut(&tid)
            && known.unique == unique
        {
            (known.seen, known.viewed) = (now, now);
            known.caller = caller.clone();
            return Ok(caller);
        }
        if shard.len() >= PER_SHARD {
            let oldest = now.saturating_sub(MOMENT);
            shard.retain(|_, known| known.seen > oldest);
            if shard.len() >= PER_SHARD {
                shard.clear();
            }
        }
        let kept = caller.clone();
        let rights = Some((now, Rights::of(tid, &info)));
        shard.insert(
            tid,
            Known {
                caller: kept,
                seen: now,
                viewed: now,
                unique,
                marks: 0,
                last: 0,
                rights,
            },
        );
        drop(shard);
        let number = if info.tgid == tid {
            unique
        } else {
            self.identify(info.tgid).map_or(unique, |i| i.1)
        };
        caller.new = lock(&self.met).insert(info.tgid, number) != Some(number);
        caller.process = process.filter(|_| caller.new).map(Arc::new);
        Ok(caller)
    }

    /// The parent of a process.
    pub fn parent(&self, pid: u32) -> io::Result<u32> {
        Ok(self.identify(pid)?.0.ppid)
    }

    /// A process that has made no watched call yet is known all the same.
    pub fn introduce(&self, pid: u32) {
        if let Ok((_, unique)) = self.identify(pid) {
            lock(&self.met).insert(pid, unique);
        }
    }

    /// Process and parent of a thread, and a number that no other process of this boot has.
    fn identify(&self, tid: u32) -> io::Result<(PidfdInfo, u64)> {
        self.identify_and_hold(tid)
            .map(|(info, unique, _)| (info, unique))
    }

    /// The same, with the process's pidfd if it was made for this.
    fn identify_and_hold(&self, tid: u32) -> io::Result<(PidfdInfo, u64, Option<OwnedFd>)> {
        // Most threads are the first of their process, and a pidfd of that is of further use.
        let process = sys::pidfd_open(tid, false);
        let first = process.is_ok();
        if let Ok(pidfd) = process.or_else(|_| sys::pidfd_open(tid, true))
            && let Ok(info) = sys::pidfd_info(pidfd.as_fd())
            && let Ok(unique) = sys::inode(pidfd.as_fd())
        {
            return Ok((info, unique, Some(pidfd).filter(|_| first)));
        }
        self.identify_by_status(tid)
            .map(|(info, unique)| (info, unique, None))
    }

    /// The same for kernels that tell less of a pidfd.
    fn identify_by_status(&self, tid: u32) -> io::Result<(PidfdInfo, u64)> {
        let status = std::fs::read_to_string(format!("/proc/{tid}/status"))?;
        let field = |name: &str, column: usize| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().nth(column)?.parse().ok()
        };
        let info = PidfdInfo {
            pid: tid,
            tgid: field("Tgid:", 0).unwrap_or(tid),
            ppid: field("PPid:", 0).unwrap_or(0),
            fsuid: field("Uid:", 3).unwrap_or(0),
            fsgid: field("Gid:", 3).unwrap_or(0),
            ..PidfdInfo::default()
        };
        let stat = std::fs::read(format!("/proc/{}/stat", info.tgid))?;
        Ok((info, start_time(&stat).unwrap_or(0)))
    }

    /// The view of a thread, compared with ours.
    fn view(&self, tid: u32) -> View {
        let root = name(format_args!("{tid}/root"));
        let Ok(st) = sys::statx(self.proc(), &root, 0) else {
            return View::Own;
        };
        let key = root_key(&st);
        if key == self.own {
            return View::Own;
        }
        if let Some(known) = lock(&self.roots).get(&key).and_then(Weak::upgrade) {
            return View::Other(known);
        }
        let Ok(fd) = sys::openat2(self.proc(), &root, libc::O_PATH | libc::O_DIRECTORY, 0) else {
            return View::Own;
        };
        let mut link = [0; 4096];
        let prefix = match sys::readlink(self.proc(), &root, &mut link) {
            Ok(link) if link != b"/" => link.to_vec(),
            _ => Vec::new(),
        };
        let mut link = [0; 64];
        let namespace = sys::readlink(self.proc(), &name(format_args!("{tid}/ns/mnt")), &mut link);
        let ours = namespace.is_ok_and(|link| link == self.namespace);
        let root = Arc::new(Root { fd, prefix, ours });
        let mut roots = lock(&self.roots);
        roots.retain(|_, root| root.strong_count() > 0);
        roots.insert(key, Arc::downgrade(&root));
        View::Other(root)
    }

    /// Sets a mark on a thread's process; false if it was there already.
    pub fn mark(&self, tid: u32, mark: u32) -> bool {
        let mut shard = self.shard(tid);
        let Some(known) = shard.get_mut(&tid) else {
            return true;
        };
        let first = known.marks & mark == 0;
        known.marks |= mark;
        first
    }

    /// Remembers a thread's latest call by its fingerprint; true if it is the one before.
    pub fn repeats(&self, tid: u32, call: u64) -> bool {
        let mut shard = self.shard(tid);
        let Some(known) = shard.get_mut(&tid) else {
            return false;
        };
        std::mem::replace(&mut known.last, call) == call
    }

    /// The rights of a thread, at most a moment old.
    pub fn rights(&self, tid: u32, now: u64) -> Rights {
        if let Some(known) = self.shard(tid).get(&tid)
            && let Some((at, rights)) = &known.rights
            && now < at + MOMENT / 4
        {
            return rights.clone();
        }
        let Ok((info, _)) = self.identify(tid) else {
            return Rights::default();
        };
        let rights = Rights::of(tid, &info);
        if let Some(known) = self.shard(tid).get_mut(&tid) {
            known.rights = Some((now, rights.clone()));
        }
        rights
    }

    /// True if a thread's process has numbers of another pid namespace than ours for itself.
    pub fn has_other_numbers(&self, tid: u32) -> bool {
        let mut its = [0; 64];
        let its = sys::readlink(self.proc(), &name(format_args!("{tid}/ns/pid")), &mut its);
        !self.pids.is_empty() && its.is_ok_and(|its| its != self.pids)
    }

    /// What the link `what` of a thread's `/proc` directory says, if that is a path.
    pub fn link(&self, tid: u32, what: std::fmt::Arguments<'_>) -> Option<Vec<u8>> {
        let mut buffer = [0; 4096];
        let path = sys::readlink(
            self.proc(),
            &name(format_args!("{tid}/{what}")),
            &mut buffer,
        )
        .ok()?;
        (path.first() == Some(&b'/') && !path.ends_with(b" (deleted)")).then(|| path.to_vec())
    }
}

fn groups(tid: u32) -> Vec<u32> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Groups:"))
        .unwrap_or_default();
    line.split_whitespace()
        .filter_map(|group| group.parse().ok())
        .collect()
}

/// Field 22 of `/proc/PID/stat`; the name in parentheses before it may contain anything.
fn start_time(stat: &[u8]) -> Option<u64> {
    let end = stat.iter().rposition(|b| *b == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

impl Rights {
    fn of(tid: u32, info: &PidfdInfo) -> Rights {
        Rights {
            uid: info.fsuid,
            gid: info.fsgid,
            tid,
            groups: OnceCell::new(),
        }
    }

    /// True if the file's group is one of the further groups.
    fn further(&self, group: u32) -> bool {
        self.groups
            .get_or_init(|| groups(self.tid))
            .contains(&group)
    }

    /// True if a file of this owner and mode gives `wanted` (4 read, 2 write, 1 execute). Root passes, except that a file that
    /// nobody may execute is not executed.
    pub fn permit(&self, st: &libc::statx, wanted: u16) -> bool {
        let directory = st.stx_mode & libc::S_IFMT as u16 == libc::S_IFDIR as u16;
        if self.uid == 0 {
            return wanted & 1 == 0 || directory || st.stx_mode & 0o111 != 0;
        }
        let grants = |shift: u16| st.stx_mode >> shift & wanted == wanted;
        if st.stx_uid == self.uid {
            grants(6)
        } else if st.stx_gid == self.gid || grants(3) != grants(0) && self.further(st.stx_gid) {
            grants(3)
        } else {
            grants(0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_file_tells_what_a_pidfd_tells() {
        let callers = Callers::new().unwrap();
        let tid = sys::gettid();
        let (by_pidfd, _) = callers.identify(tid).unwrap();
        let (by_status, start) = callers.identify_by_status(tid).unwrap();
        assert_eq!(by_status.tgid, std::process::id());
        assert_eq!(
            (by_pidfd.tgid, by_pidfd.ppid),
            (by_status.tgid, by_status.ppid)
        );
        assert_eq!(
            (by_pidfd.fsuid, by_pidfd.fsgid),
            (by_status.fsuid, by_status.fsgid)
        );
        assert!(start > 0);
    }

    #[test]
    fn a_process_is_new_once_whichever_thread_is_met() {
        let callers = Arc::new(Callers::new().unwrap());
        let first = callers.meet(sys::gettid(), sys::now()).unwrap();
        assert_eq!((first.pid, first.new), (std::process::id(), true));
        assert!(!callers.meet(sys::gettid(), sys::now()).unwrap().new);
        let other = callers.clone();
        let second = std::thread::spawn(move || other.meet(sys::gettid(), sys::now()).unwrap())
            .join()
            .unwrap();
        assert_eq!((second.pid, second.new), (first.pid, false));
        assert!(callers.mark(first.tid, 1));
        assert_ne!(second.tid, first.tid);
        assert!(
            !callers
                .meet(sys::gettid(), sys::now() + 10 * MOMENT)
                .unwrap()
                .new
        );
        assert!(!callers.mark(first.tid, 1), "later, it is still the same");
    }

    #[test]
    fn rights_follow_owner_group_and_others() {
        let st = sys::statx(libc::AT_FDCWD, c"/", 0).unwrap();
        let with = |uid, gid, mode| {
            let mut st = st;
            (st.stx_uid, st.stx_gid, st.stx_mode) = (uid, gid, mode);
            st
        };
        let me = Rights {
            uid: 7,
            gid: 8,
            tid: 0,
            groups: OnceCell::from(vec![9]),
        };
        assert!(me.permit(&with(7, 0, 0o100400), 4));
        assert!(
            !me.permit(&with(7, 8, 0o100044), 4),
            "the owner's bits decide for the owner"
        );
        assert!(me.permit(&with(1, 9, 0o100020), 2));
        assert!(!me.permit(&with(1, 9, 0o100002), 2));
        assert!(me.permit(&with(1, 1, 0o100001), 1));
        let root = Rights::default();
        assert!(root.permit(&with(7, 7, 0o100000), 6));
        assert!(!root.permit(&with(7, 7, 0o100666), 1));
    }

    #[test]
    fn the_start_time_is_found_behind_any_name() {
        let stat = b"7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 99";
        assert_eq!(start_time(stat), Some(4242));
    }
}
