//! Identifies the thread of a notification: its process, its parent, its view of the file system,
//! its rights.
//!
//! A fact is remembered for as long as it cannot have changed. A thread id that was seen a
//! moment ago still means the same thread, because the kernel hands out ids in turn. A view is
//! looked up again whenever a process may have changed one.

use crate::caller::{Caller, FileSystemView, ForeignRoot, MOMENT};
use crate::process_map::ProcessMap;
use crate::rights::AccessRights;
use backstory_sys::{self as sys, PidfdInfo};
use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

const SHARDS: usize = 16;
/// Threads remembered per shard.
const PER_SHARD: usize = 256;

struct ThreadEntry {
    caller: Caller,
    seen: u64,
    viewed: u64,
    unique: u64,
    marks: u32,
    last: u64,
    rights: Option<(u64, AccessRights)>,
}

/// The threads met lately.
pub struct Callers {
    proc: OwnedFd,
    shards: [Mutex<HashMap<u32, ThreadEntry>>; SHARDS],
    /// The processes met so far, each with a number that is unique since boot.
    met: Mutex<ProcessMap<u64>>,
    roots: Mutex<HashMap<(u64, u64, u64), Weak<ForeignRoot>>>,
    own: (u64, u64, u64),
    namespace: Vec<u8>,
    /// The supervisor's pid namespace.
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
    /// Has met no thread yet.
    ///
    /// # Errors
    /// `/proc` cannot be opened.
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

    fn shard(&self, tid: u32) -> MutexGuard<'_, HashMap<u32, ThreadEntry>> {
        // A thread waits for one response at a time, so two receivers rarely use the same shard.
        lock(&self.shards[tid as usize % SHARDS])
    }

    /// A descriptor of `/proc`.
    pub fn proc(&self) -> RawFd {
        self.proc.as_raw_fd()
    }

    /// A process is about to change what paths mean, for itself or for others.
    pub fn view_changes(&self, now: u64) {
        self.changed.store(now, Ordering::Release);
    }

    fn view_holds(&self, viewed: u64) -> bool {
        let changed = self.changed.load(Ordering::Acquire);
        changed == 0 || viewed > changed + MOMENT
    }

    /// Identifies the thread `tid`. Valid while its notification waits.
    pub fn meet(&self, tid: u32, now: u64) -> io::Result<Caller> {
        if let Some(entry) = self.shard(tid).get_mut(&tid)
            && now < entry.seen + MOMENT
            && self.view_holds(entry.viewed)
        {
            entry.seen = now;
            return Ok(entry.caller.clone());
        }
        let (info, unique, process) = self.identify_and_hold(tid)?;
        let view = if self.view_holds(0) {
            FileSystemView::Own
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
        if let Some(entry) = shard.get_mut(&tid)
            && entry.unique == unique
        {
            (entry.seen, entry.viewed) = (now, now);
            entry.caller = caller.clone();
            return Ok(caller);
        }
        if shard.len() >= PER_SHARD {
            let oldest = now.saturating_sub(MOMENT);
            shard.retain(|_, entry| entry.seen > oldest);
            if shard.len() >= PER_SHARD {
                shard.clear();
            }
        }
        let kept = caller.clone();
        let rights = Some((now, AccessRights::of(tid, &info)));
        shard.insert(
            tid,
            ThreadEntry {
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

    /// Remembers a process that has made no watched call yet. Returns its parent, and its pidfd if
    /// that was opened for this. `None`: the process is gone.
    pub fn introduce(&self, pid: u32) -> Option<(u32, Option<OwnedFd>)> {
        let (info, unique, pidfd) = self.identify_and_hold(pid).ok()?;
        lock(&self.met).insert(pid, unique);
        Some((info.ppid, pidfd))
    }

    /// The process and the parent of a thread, and a number that no other process of this boot has.
    fn identify(&self, tid: u32) -> io::Result<(PidfdInfo, u64)> {
        self.identify_and_hold(tid)
            .map(|(info, unique, _)| (info, unique))
    }

    /// As [`Callers::identify`], with the pidfd of the process if it was opened for this.
    fn identify_and_hold(&self, tid: u32) -> io::Result<(PidfdInfo, u64, Option<OwnedFd>)> {
        // Most threads are the first of their process, and the pidfd of the process is used again.
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

    /// As [`Callers::identify`], for kernels without `PIDFD_GET_INFO`.
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

    /// The view of a thread, compared with the supervisor's.
    fn view(&self, tid: u32) -> FileSystemView {
        let root = name(format_args!("{tid}/root"));
        let Ok(st) = sys::statx(self.proc(), &root, 0) else {
            return FileSystemView::Own;
        };
        let key = root_key(&st);
        if key == self.own {
            return FileSystemView::Own;
        }
        if let Some(entry) = lock(&self.roots).get(&key).and_then(Weak::upgrade) {
            return FileSystemView::Other(entry);
        }
        let Ok(fd) = sys::openat2(self.proc(), &root, libc::O_PATH | libc::O_DIRECTORY, 0) else {
            return FileSystemView::Own;
        };
        let mut link = [0; 4096];
        let prefix = match sys::readlink(self.proc(), &root, &mut link) {
            Ok(link) if link != b"/" => link.to_vec(),
            _ => Vec::new(),
        };
        let mut link = [0; 64];
        let namespace = sys::readlink(self.proc(), &name(format_args!("{tid}/ns/mnt")), &mut link);
        let ours = namespace.is_ok_and(|link| link == self.namespace);
        let root = Arc::new(ForeignRoot { fd, prefix, ours });
        let mut roots = lock(&self.roots);
        roots.retain(|_, root| root.strong_count() > 0);
        roots.insert(key, Arc::downgrade(&root));
        FileSystemView::Other(root)
    }

    /// Sets a mark on a thread. False if the mark was set already.
    pub fn mark(&self, tid: u32, mark: u32) -> bool {
        let mut shard = self.shard(tid);
        let Some(entry) = shard.get_mut(&tid) else {
            return true;
        };
        let first = entry.marks & mark == 0;
        entry.marks |= mark;
        first
    }

    /// Remembers the fingerprint of a thread's latest call. True if the call before had the same
    /// one.
    pub fn repeats(&self, tid: u32, call: u64) -> bool {
        let mut shard = self.shard(tid);
        let Some(entry) = shard.get_mut(&tid) else {
            return false;
        };
        std::mem::replace(&mut entry.last, call) == call
    }

    /// The rights of a thread, at most a quarter of [`MOMENT`] old.
    pub fn rights(&self, tid: u32, now: u64) -> AccessRights {
        if let Some(entry) = self.shard(tid).get(&tid)
            && let Some((at, rights)) = &entry.rights
            && now < at + MOMENT / 4
        {
            return rights.clone();
        }
        let Ok((info, _)) = self.identify(tid) else {
            return AccessRights::default();
        };
        let rights = AccessRights::of(tid, &info);
        if let Some(entry) = self.shard(tid).get_mut(&tid) {
            entry.rights = Some((now, rights.clone()));
        }
        rights
    }

    /// True if a thread's process has another pid namespace than the supervisor.
    pub fn has_other_numbers(&self, tid: u32) -> bool {
        let mut its = [0; 64];
        let its = sys::readlink(self.proc(), &name(format_args!("{tid}/ns/pid")), &mut its);
        !self.pids.is_empty() && its.is_ok_and(|its| its != self.pids)
    }

    /// The target of the link `what` in a thread's `/proc` directory, if it is a path that exists.
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

/// The start time: field 22 of `/proc/PID/stat`.
fn start_time(stat: &[u8]) -> Option<u64> {
    sys::process_tree::stat_fields(stat)?
        .nth(22 - 3)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_file_identifies_a_process_as_a_pidfd_does() {
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
    fn a_process_is_new_at_its_first_notification_only() {
        let callers = Arc::new(Callers::new().unwrap());
        let first = callers.meet(sys::gettid(), sys::clock::counter()).unwrap();
        assert_eq!((first.pid, first.new), (std::process::id(), true));
        assert!(
            !callers
                .meet(sys::gettid(), sys::clock::counter())
                .unwrap()
                .new
        );
        let other = callers.clone();
        let second =
            std::thread::spawn(move || other.meet(sys::gettid(), sys::clock::counter()).unwrap())
                .join()
                .unwrap();
        assert_eq!((second.pid, second.new), (first.pid, false));
        assert!(callers.mark(first.tid, 1));
        assert_ne!(second.tid, first.tid);
        assert!(
            !callers
                .meet(sys::gettid(), sys::clock::counter() + 10 * MOMENT)
                .unwrap()
                .new
        );
        assert!(!callers.mark(first.tid, 1), "later, it is still the same");
    }

    #[test]
    fn the_start_time_is_found_behind_any_name() {
        let stat = b"7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 99";
        assert_eq!(start_time(stat), Some(4242));
    }
}
