//! A mount from its beginning to its end.

use crate::Error;
use crate::attachment::{Attachment, DetachFailure, attach};
use crate::inode_table::InodeTable;
use crate::passthrough::{Passthrough, PassthroughRefusal};
use crate::pruning::prune;
use crate::recorded_tree::RecordedTree;
use backstory_callers::{CallerTable, OperationLog, PathShown, raise_descriptor_limit};
use backstory_session::{Options, RecordingResult, SourceRun};
use backstory_sys as sys;
use fuser::{Config, Notifier, Session, SessionACL};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval between two looks for processes that have ended.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// A session that lasts so much longer than its mount point is reported, with the reason.
const LASTS_LONG: Duration = Duration::from_secs(3);
/// Most threads that serve requests.
const MOST_THREADS: usize = 8;
/// Fewest threads of a mount that stores contents. While some of them copy, others serve.
const FEWEST_COPYING: usize = 8;

/// A directory, and where to mount it.
#[derive(Debug, Clone)]
pub struct MountOptions {
    /// The directory behind the mount.
    pub directory: PathBuf,
    /// The mount point. It may be the directory itself.
    pub mountpoint: PathBuf,
    /// The kernel reads and writes without asking, where it can.
    pub passthrough: bool,
    /// An NFS server exports the mount.
    pub nfs: bool,
    /// Most bytes of contents that are preserved while the run lasts, if it stores contents.
    pub kept_limit: Option<u64>,
}

/// Reports of a mount to its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountNews {
    /// The mount point is a dead mount: its server has ended. The new mount hides it.
    HidesDeadMount,
    /// The file system is mounted, and records.
    Mounted,
    /// The kernel shall read and write without asking, but refused that: for all files or one.
    WithoutPassthrough(PassthroughRefusal),
    /// It was asked to end but is in use: it stays mounted and records on.
    Busy,
    /// It was asked to end but could not be unmounted for this reason. It records on.
    NotUnmounted(String),
    /// It was unmounted, but is mounted elsewhere, too: at another place, or in another mount
    /// namespace. Or a process uses a detached mount of it. It records on until the last one ends.
    Elsewhere,
    /// It was unmounted everywhere, and still finishes requests of before, as copies of contents.
    Finishing,
    /// It was unmounted, and a dead mount is at the mount point.
    DeadMountLeft,
}

/// Mounts a directory, records what happens below the mount point until it is unmounted, and ends
/// the run. SIGINT, SIGTERM and SIGHUP unmount. The caller must have one thread.
///
/// # Errors
///
/// The directory cannot be mounted, or the run's log cannot be made or finalized.
pub fn mount(
    what: &MountOptions,
    run: Options,
    news: &mut dyn FnMut(MountNews),
) -> Result<RecordingResult, Error> {
    let directory = real(&what.directory)?;
    let mountpoint = real(&what.mountpoint)?;
    check_places(&directory, &mountpoint)?;
    let root = open_directory(&directory)?;
    if is_dead_mount(&mountpoint) {
        news(MountNews::HidesDeadMount);
    }
    // The table of inodes has a descriptor for each file that the kernel remembers.
    raise_descriptor_limit();
    let signals = sys::signal_fd().map_err(Error::system("make a signal descriptor"))?;
    let old = sys::set_mask(&sys::all_signals());
    let run = SourceRun::begin(run, "mount")?;
    let ended = serve(what, (&directory, &mountpoint), root, &run, &signals, news);
    sys::set_mask(&old);
    if let Err(error) = ended {
        run.abandon();
        return Err(error);
    }
    let recorded = run.end(&[])?;
    if is_dead_mount(&mountpoint) {
        news(MountNews::DeadMountLeft);
    }
    Ok(recorded)
}

/// True for a mount whose server has ended without an unmount. Programs cannot use what is below.
/// The kernel may still know the attributes of its root. So the server is asked for something else.
fn is_dead_mount(mountpoint: &Path) -> bool {
    rustix::fs::statfs(mountpoint).err() == Some(Errno::NOTCONN)
}

fn real(path: &Path) -> Result<PathBuf, Error> {
    path.canonicalize().map_err(|source| Error::Directory {
        path: path.to_owned(),
        source,
    })
}

/// A mount that contains its directory, or the other way round, would wait for itself.
fn check_places(directory: &Path, mountpoint: &Path) -> Result<(), Error> {
    let inside = directory.starts_with(mountpoint) || mountpoint.starts_with(directory);
    if directory != mountpoint && inside {
        return Err(Error::Nested {
            directory: directory.to_owned(),
            mountpoint: mountpoint.to_owned(),
        });
    }
    Ok(())
}

fn open_directory(path: &Path) -> Result<OwnedFd, Error> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|source| Error::Directory {
        path: path.to_owned(),
        source: source.into(),
    })
}

/// Serves the mount until it is unmounted.
fn serve(
    what: &MountOptions,
    (directory, mountpoint): (&Path, &Path),
    root: OwnedFd,
    run: &SourceRun,
    signals: &OwnedFd,
    news: &mut dyn FnMut(MountNews),
) -> Result<(), Error> {
    let log = OperationLog::new(run.supply());
    let shown = PathShown {
        directory: directory.as_os_str().as_bytes().to_vec(),
        mountpoint: mountpoint.as_os_str().as_bytes().to_vec(),
    };
    let callers = Arc::new(CallerTable::new(log.clone(), shown));
    if what.nfs {
        callers.serve_nfs(rustix::process::geteuid().as_raw());
    }
    let inodes = InodeTable::new(root, what.nfs).map_err(Error::system("read the directory"))?;
    let inodes = Arc::new(inodes);
    let (own, table) = (Arc::clone(&inodes), Arc::clone(&callers));
    // Its directory is made now: the mount may hide the path.
    let contents = run.preserver(what.kept_limit);
    let fewest = contents.as_ref().map_or(2, |_| FEWEST_COPYING);
    let passthrough = Arc::new(Passthrough::new(what.passthrough));
    let tree = RecordedTree::new(own, log, contents, table, Arc::clone(&passthrough));
    let attachment = attach(directory, mountpoint)?;
    let device = attachment.device();
    let served = device.and_then(|device| start_session(tree, device, fewest));
    let session = served.inspect_err(|_| drop(attachment.detach()))?;
    news(MountNews::Mounted);
    let parts = (&*callers, &*passthrough, &*inodes);
    watch(&attachment, &session, signals, parts, news)?;
    match session.thread.join() {
        Ok(Err(error)) => Err(Error::system("serve the mount")(error)),
        _ => Ok(()),
    }
}

/// A session with the kernel.
struct RunningSession {
    thread: JoinHandle<std::io::Result<()>>,
    /// The thread makes it readable when it ends.
    over: Arc<OwnedFd>,
    notifier: Notifier,
}

/// Begins to serve, by at least `fewest` threads.
fn start_session(
    tree: RecordedTree,
    device: OwnedFd,
    fewest: usize,
) -> Result<RunningSession, Error> {
    let mut config = Config::default();
    config.n_threads = Some((2 * sys::processors()).clamp(fewest, MOST_THREADS));
    let acl = match rustix::process::geteuid().is_root() {
        true => SessionACL::All,
        false => SessionACL::Owner,
    };
    config.acl = acl;
    let session = Session::from_fd(tree, device, acl, config)
        .map_err(Error::system("begin the session with the kernel"))?;
    let over = eventfd(0, EventfdFlags::CLOEXEC).map_err(Error::system("make a descriptor"))?;
    let over = Arc::new(over);
    let notifier = session.notifier();
    let bell = Arc::clone(&over);
    let thread = std::thread::Builder::new()
        .name("session".to_owned())
        .spawn(move || {
            let served = session.run();
            // The counter of the descriptor cannot overflow.
            let _ = rustix::io::write(&*bell, &1_u64.to_ne_bytes());
            served
        })
        .map_err(Error::system("start a thread"))?;
    Ok(RunningSession {
        thread,
        over,
        notifier,
    })
}

/// Waits until the session ends. Signals unmount; processes that have ended are recorded. While
/// descriptors are scarce, the kernel is asked to forget files. If the kernel shall read and write
/// without asking, each program that a known process executes is looked at.
fn watch(
    attachment: &Attachment,
    session: &RunningSession,
    signals: &OwnedFd,
    (callers, passthrough, inodes): (&CallerTable, &Passthrough, &InodeTable),
    news: &mut dyn FnMut(MountNews),
) -> Result<(), Error> {
    let mut swept = Instant::now();
    let mut detached: Option<Instant> = None;
    let interval = Timespec::try_from(SWEEP_INTERVAL).unwrap_or_default();
    let mut rest = interval;
    loop {
        report_refusal(passthrough, news);
        let mut waited = vec![
            PollFd::new(&*session.over, PollFlags::IN),
            PollFd::new(signals, PollFlags::IN),
            PollFd::from_borrowed_fd(inodes.descriptors.bell(), PollFlags::IN),
        ];
        let told = callers.news().filter(|_| passthrough.is_wanted());
        waited.extend(told.map(|news| PollFd::new(news, PollFlags::IN)));
        match poll(&mut waited, Some(&rest)) {
            Ok(_) | Err(Errno::INTR) => (),
            Err(error) => return Err(Error::system("wait for the session")(error)),
        }
        let ready = |at: usize| waited.get(at).is_some_and(|of| !of.revents().is_empty());
        let (ended, signalled) = (ready(0), ready(1));
        if ended {
            report_refusal(passthrough, news);
            return Ok(());
        }
        if signalled && sys::read_end_signal(signals.as_fd()) {
            detached = detach(attachment, news).then(Instant::now);
        }
        if detached.is_some_and(|at| at.elapsed() >= LASTS_LONG) {
            detached = None;
            news(match attachment.is_mounted_anywhere() {
                true => MountNews::Elsewhere,
                false => MountNews::Finishing,
            });
        }
        callers.look_again();
        rest = match prune(inodes, &session.notifier) {
            true => Timespec::default(),
            false => interval,
        };
        if swept.elapsed() >= SWEEP_INTERVAL {
            swept = Instant::now();
            callers.sweep();
        }
    }
}

/// Reports once that the kernel refused to read and write without asking.
fn report_refusal(passthrough: &Passthrough, news: &mut dyn FnMut(MountNews)) {
    if let Some(refusal) = passthrough.news() {
        news(MountNews::WithoutPassthrough(refusal));
    }
}

/// Unmounts. True if the mount is no longer at its mount point.
fn detach(attachment: &Attachment, news: &mut dyn FnMut(MountNews)) -> bool {
    match attachment.detach() {
        Ok(()) => return true,
        Err(DetachFailure::Busy) => news(MountNews::Busy),
        Err(DetachFailure::Other(reason)) => news(MountNews::NotUnmounted(reason)),
    }
    false
}
