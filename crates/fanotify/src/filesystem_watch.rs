//! A watch of a file system from its beginning to its end.

use crate::Error;
use crate::directory_table::DirectoryTable;
use crate::event_batch::EventBatch;
use crate::event_recorder::{EventRecorder, MissingEvents, WANTED};
use backstory_callers::{CallerTable, OperationLog, PathShown, raise_descriptor_limit};
use backstory_eventlog::Reason;
use backstory_eventlog::calendar::utc_second;
use backstory_session::{Options, RecordingResult, SourceRun};
use backstory_sys as sys;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval between two looks for processes that have ended.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// The file system to watch.
#[derive(Debug, Clone)]
pub struct FilesystemTarget {
    /// A directory of it.
    pub directory: PathBuf,
    /// Directories whose files are not recorded: the store.
    pub ignored: Vec<PathBuf>,
}

/// Reports of a watch to its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilesystemNews {
    /// The file system is watched from now on.
    Watching,
}

/// Records what happens in a file system until SIGINT, SIGTERM or SIGHUP, and ends the run. The
/// caller must have one thread.
///
/// # Errors
///
/// The file system cannot be watched, or the run's log cannot be made or finalized.
pub fn watch(
    target: &FilesystemTarget,
    run: Options,
    news: &mut dyn FnMut(FilesystemNews),
) -> Result<RecordingResult, Error> {
    let directory = real(&target.directory)?;
    let table = DirectoryTable::new(&directory).map_err(|source| Error::FileSystem {
        path: directory.clone(),
        source,
    })?;
    raise_descriptor_limit();
    let queue = marked_queue(&directory)?;
    let signals = sys::signal_fd().map_err(Error::system("make a signal descriptor"))?;
    let old = sys::set_mask(&sys::all_signals());
    let run = SourceRun::begin(run, "fanotify")?;
    let log = OperationLog::new(run.supply());
    let shown = PathShown {
        directory: Vec::new(),
        mountpoint: Vec::new(),
    };
    let callers = Arc::new(CallerTable::new(log.clone(), shown));
    callers.serve_past_events();
    let ignored = target.ignored.iter().map(|path| bytes(path)).collect();
    let recorder = EventRecorder::new(log, Arc::clone(&callers), table, ignored);
    news(FilesystemNews::Watching);
    let mut watch = FilesystemWatch {
        queue,
        signals,
        callers,
        recorder,
    };
    let served = watch.serve();
    let missing = watch.recorder.end();
    drop(watch);
    sys::set_mask(&old);
    let mut reasons = reasons(&missing);
    if let Err(error) = served {
        let what = format!("the watch ended, because the program {error}");
        reasons.push(Reason::FileSystemGap { what });
    }
    Ok(run.end(&reasons)?)
}

fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

fn real(path: &Path) -> Result<PathBuf, Error> {
    path.canonicalize().map_err(|source| Error::Directory {
        path: path.to_owned(),
        source,
    })
}

/// A queue of notifications of the whole file system.
fn marked_queue(directory: &Path) -> Result<OwnedFd, Error> {
    let queue = sys::fanotify_group().map_err(|source| Error::Kernel { source })?;
    let refused = |source| Error::FileSystem {
        path: directory.to_owned(),
        source,
    };
    let path = CString::new(bytes(directory)).map_err(|error| refused(error.into()))?;
    sys::mark_file_system(queue.as_fd(), WANTED, &path).map_err(refused)?;
    Ok(queue)
}

/// The sentences about what is missing.
fn reasons(missing: &MissingEvents) -> Vec<Reason> {
    let dropped = missing.dropped.iter().map(|(from, to)| {
        format!(
            "the kernel's queue was full, so operations from {} to {} are unknown",
            utc_second(*from),
            utc_second(*to)
        )
    });
    let unplaced = (missing.unplaced > 0).then(|| {
        format!(
            "{} operations were on files whose directory was removed, or is outside of the mount",
            missing.unplaced
        )
    });
    let all = dropped.chain(unplaced);
    all.map(|what| Reason::FileSystemGap { what }).collect()
}

struct FilesystemWatch {
    queue: OwnedFd,
    signals: OwnedFd,
    callers: Arc<CallerTable>,
    recorder: EventRecorder,
}

impl FilesystemWatch {
    /// Takes notifications until a signal, and those that wait then. The queue of a busy file
    /// system may never be empty.
    fn serve(&mut self) -> Result<(), Error> {
        let (mut swept, mut ended) = (Instant::now(), None);
        while !self.wait()? {
            if ended.is_none() && swept.elapsed() >= SWEEP_INTERVAL {
                ended = Some(self.callers.ended());
            }
            if self.take_batch()?
                && let Some(ended) = ended.take()
            {
                swept = Instant::now();
                self.recorder.forget(ended);
            }
        }
        sys::unmark_file_systems(self.queue.as_fd())
            .map_err(Error::system("end the notifications"))?;
        let ended = self.callers.ended();
        while !self.take_batch()? {}
        self.recorder.forget(ended);
        Ok(())
    }

    /// Waits for notifications, for news of processes, for a signal, or for the next sweep. `true`
    /// if a signal asks to end.
    fn wait(&self) -> Result<bool, Error> {
        let mut waited = vec![
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(&self.queue, PollFlags::IN),
        ];
        let news = self.callers.news();
        waited.extend(news.map(|news| PollFd::new(news, PollFlags::IN)));
        let interval = Timespec::try_from(SWEEP_INTERVAL).unwrap_or_default();
        match poll(&mut waited, Some(&interval)) {
            Ok(_) | Err(Errno::INTR) => (),
            Err(error) => return Err(Error::system("wait for notifications")(error)),
        }
        let signalled = waited.first().is_some_and(|of| !of.revents().is_empty());
        Ok(signalled && sys::read_end_signal(self.signals.as_fd()))
    }

    /// Takes notifications. `true` if the queue was empty after them.
    fn take_batch(&mut self) -> Result<bool, Error> {
        self.callers.look_ahead();
        let now = sys::clock::files();
        let taken = EventBatch::take(&self.queue);
        let (batch, emptied) = taken.map_err(Error::system("read notifications"))?;
        self.recorder.take(&batch, now, emptied);
        Ok(emptied)
    }
}
