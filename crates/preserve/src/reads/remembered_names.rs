//! The files that names led to at an earlier examination, so that most names need not be looked up
//! again.
//!
//! Programs that run one after another read the same files: compilers read headers, an archiver
//! reads a tree. As long as the state of a directory is the same, its names are the same, too. So
//! one look at a directory replaces one look at each file in it.
//!
//! A name is remembered under these conditions:
//!
//! - It was looked up relative to a descriptor of the directory, when the directory had this state.
//! - It led to a regular file of the directory's file system, and not by way of a symbolic link.
//! - The directory had not changed for [`REST`]. So its next change has another time.
//! - Its file system gives a directory another time with each change of a name ([`STAMPING`]).
//!
//! A mount over a name does not change the directory. So all names are forgotten when the mounts
//! have changed. One directory may be mounted twice, with another file over a name in one of the
//! mounts. So the state of a directory has the id of the mount that its path leads through.
//!
//! If the clock is set back, a directory can get a time once more that it had before. So all names
//! are forgotten when the clock was set.
//!
//! Invariant: a returned file is the one to which a look-up in this examination leads. The state of
//! a directory is taken after the records were collected. So a change of a name that a reader can
//! have seen is in that state.

use crate::FileKey;
use backstory_files::Ident;
use backstory_sys::clock;
use rustc_hash::FxHashMap;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxFlags};
use rustix::io;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

/// Nanoseconds for which a directory must not have changed. The coarsest times of file systems in
/// [`STAMPING`] are whole seconds (ext2 and ext3). Those of any in Linux are two seconds (FAT).
const REST: i64 = 3_000_000_000;
/// The latest time that ext2, ext3 and XFS may store: in January 2038. Every change from then on
/// has this time.
const LATEST: i64 = i32::MAX as i64 * 1_000_000_000;
/// Most names that are remembered.
const NAMES: usize = 50_000;
/// Most directories that are remembered.
const DIRECTORIES: usize = 20_000;
/// Most devices whose file systems are known to be others.
const OTHERS: usize = 100;

/// File systems that change the times of a directory with each change of a name in it, by their
/// numbers in `statfs`. These are ext2 to ext4, XFS, Btrfs and tmpfs. A network file system may
/// report times that are out of date.
const STAMPING: [i64; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994];

/// The names of directories, and the files that they led to.
#[derive(Debug)]
pub(super) struct RememberedNames {
    directories: FxHashMap<Box<[u8]>, Directory>,
    /// The number of names in all directories.
    names: usize,
    /// The number of this examination.
    examination: u64,
    /// Whether a path was looked for in this examination.
    begun: bool,
    /// The directory in which a name was last looked up in this examination.
    opened: Option<(Box<[u8]>, OwnedFd)>,
    /// Devices whose file systems are not in [`STAMPING`].
    others: Vec<u64>,
    view: ViewWatch,
    /// [`REST`], which tests shorten.
    pub(super) rest: i64,
}

#[derive(Debug, Default)]
struct Directory {
    /// The examination in which it was met. Many directories are met in one examination only, and
    /// these need no further system call.
    met: u64,
    /// The examination in which its state was last compared.
    compared: u64,
    /// Whether its file system is not in [`STAMPING`].
    other: bool,
    /// The state in which its names led to these files. `None`: no name can be remembered.
    state: Option<DirectoryState>,
    /// `None`: the name led to a symbolic link, or to something else than a file.
    names: FxHashMap<Box<[u8]>, Option<FileKey>>,
}

/// The identity of a directory, and the id of the mount that its path leads through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DirectoryState {
    identity: Ident,
    mount: u64,
}

/// Tells whether names may lead elsewhere although their directories have not changed: whether a
/// mount was made, moved or removed, or the clock was set.
#[derive(Debug, Default)]
struct ViewWatch(Option<[OwnedFd; 2]>);

impl Default for RememberedNames {
    fn default() -> RememberedNames {
        RememberedNames {
            directories: FxHashMap::default(),
            names: 0,
            examination: 1,
            begun: false,
            opened: None,
            others: Vec::new(),
            view: ViewWatch::default(),
            rest: REST,
        }
    }
}

impl RememberedNames {
    /// Returns the file that an absolute path leads to. `None`: it has to be looked up.
    pub(super) fn file(&mut self, path: &[u8]) -> Option<FileKey> {
        self.begin();
        let slash = path.iter().rposition(|byte| *byte == b'/')?;
        let (place, name) = path.split_at(slash + 1);
        let Some(directory) = self.directories.get_mut(place) else {
            self.meet(place);
            return None;
        };
        if directory.met == self.examination || directory.other {
            return None;
        }
        if directory.compared != self.examination {
            directory.compared = self.examination;
            self.names -= directory.compare(place, self.rest, &self.others);
        }
        let state = directory.state?;
        if let Some(known) = directory.names.get(name) {
            return *known;
        }
        self.look_up(place, name, &state)
    }

    /// Ends an examination.
    pub(super) fn end(&mut self) {
        self.examination += 1;
        self.begun = false;
        self.opened = None;
    }

    /// Begins an examination, with its first path.
    fn begin(&mut self) {
        if self.begun {
            return;
        }
        self.begun = true;
        let full = self.names >= NAMES || self.directories.len() >= DIRECTORIES;
        if self.view.changed() || full {
            self.directories = FxHashMap::default();
            self.names = 0;
        }
    }

    /// Meets a directory for the first time.
    fn meet(&mut self, place: &[u8]) {
        if self.directories.len() < DIRECTORIES {
            let met = Directory {
                met: self.examination,
                ..Directory::default()
            };
            self.directories.insert(place.into(), met);
        }
    }

    /// Looks up a name in a directory with this state, and remembers what it leads to.
    fn look_up(&mut self, place: &[u8], name: &[u8], state: &DirectoryState) -> Option<FileKey> {
        if self.names >= NAMES {
            return None;
        }
        if self.opened.as_ref().is_none_or(|(of, _)| **of != *place) {
            self.opened = self.open(place, state).map(|fd| (place.into(), fd));
        }
        let directory = self.directories.get_mut(place)?;
        let Some((_, opened)) = &self.opened else {
            self.names -= directory.forget(None);
            return None;
        };
        let flags = lookup_flags() | AtFlags::SYMLINK_NOFOLLOW;
        let wanted = StatxFlags::TYPE | StatxFlags::INO;
        let found = rustix::fs::statx(opened, name, flags, wanted).ok()?;
        let is_file = FileType::from_raw_mode(found.stx_mode.into()) == FileType::RegularFile;
        let found = Ident::from(&found);
        // A file of another file system is mounted over the name. Its inode number may change.
        let is_here = found.dev == state.identity.dev;
        let file = (is_file && is_here).then(|| crate::key(&found));
        directory.names.insert(name.into(), file);
        self.names += 1;
        file
    }

    /// Opens a directory, if it still has this state, and its file system is one of [`STAMPING`].
    fn open(&mut self, place: &[u8], state: &DirectoryState) -> Option<OwnedFd> {
        let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(place, how, Mode::empty()).ok()?;
        if look_at(&opened, b"") != Some(*state) {
            return None;
        }
        let file_system = rustix::fs::fstatfs(&opened).ok()?.f_type as i64;
        if !STAMPING.contains(&file_system) {
            if self.others.len() < OTHERS {
                self.others.push(state.identity.dev);
            }
            return None;
        }
        Some(opened)
    }
}

impl Directory {
    /// Compares the state of the directory with the remembered one. Returns the number of names
    /// that are forgotten.
    fn compare(&mut self, place: &[u8], rest: i64, others: &[u64]) -> usize {
        // A change after this moment has this time or a later one.
        let before = clock::files().saturating_sub(rest);
        let found = look_at(CWD, place);
        let other = found.is_some_and(|found| others.contains(&found.identity.dev));
        self.other = other;
        let found = found.filter(|found| !other && will_differ(found.identity.ctime, before));
        match found == self.state {
            true => 0, // without a state it has no names
            false => self.forget(found),
        }
    }

    /// Forgets all names, and takes over the present state. Returns the number of the names.
    fn forget(&mut self, state: Option<DirectoryState>) -> usize {
        self.state = state;
        std::mem::take(&mut self.names).len()
    }
}

impl ViewWatch {
    /// True if names may lead elsewhere since the last call.
    fn changed(&mut self) -> bool {
        if let Some([mounts, clock]) = &self.0 {
            // The kernel reports a change of mounts by an exception (proc_pid_mountinfo(5)).
            let mut polled = [
                PollFd::new(mounts, PollFlags::PRI),
                PollFd::new(clock, PollFlags::IN),
            ];
            if poll(&mut polled, Some(&Timespec::default())) == Ok(0) {
                return false;
            }
        }
        self.0 = ViewWatch::begin().ok();
        true
    }

    /// Opens the table of mounts, and a timer that is cancelled when the clock is set.
    fn begin() -> io::Result<[OwnedFd; 2]> {
        let how = OFlags::RDONLY | OFlags::CLOEXEC;
        let mounts = rustix::fs::open("/proc/thread-self/mountinfo", how, Mode::empty())?;
        let how = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let clock = timerfd_create(TimerfdClockId::Realtime, how)?;
        let never = Timespec {
            tv_sec: i64::MAX,
            tv_nsec: 0,
        };
        let never = Itimerspec {
            it_interval: Timespec::default(),
            it_value: never,
        };
        let how = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        timerfd_settime(&clock, how, &never)?;
        Ok([mounts, clock])
    }
}

/// True if each later change of a directory has another time than `ctime`, when the clock has
/// passed `before`.
fn will_differ(ctime: i64, before: i64) -> bool {
    ctime < before && ctime != LATEST
}

fn lookup_flags() -> AtFlags {
    AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC
}

/// The state of a directory, at a path or, with an empty path, of the descriptor.
fn look_at(directory: impl AsFd, path: &[u8]) -> Option<DirectoryState> {
    let flags = lookup_flags() | AtFlags::EMPTY_PATH;
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME | StatxFlags::MNT_ID;
    let found = rustix::fs::statx(directory, path, flags, wanted).ok()?;
    let has_mount = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
    has_mount.then(|| DirectoryState {
        identity: Ident::from(&found),
        mount: found.stx_mnt_id,
    })
}

#[cfg(test)]
mod tests;
