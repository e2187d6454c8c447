//! What is on the disk only until something is done: it has a temporary name, and goes whatever happens.
//!
//! Who is done, or fails, takes it away by dropping it. Whoever is asked to end takes all of it away first ([`remove_all`]). Who is killed cannot: so
//! who writes holds a lock, and what nobody has locked goes when the next one is made in the same directory.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use tempfile::{NamedTempFile, TempDir};

/// What temporary names begin with.
const PREFIX: &str = ".backstory-export-";

/// What would be left if this process ended now.
static CLEANUP_PATHS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn cleanup_paths() -> MutexGuard<'static, Vec<PathBuf>> {
    CLEANUP_PATHS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A path that is to go if the process is ended; as long as this lives.
#[derive(Debug)]
pub struct CleanupPath(PathBuf);

impl CleanupPath {
    /// The file or directory at `path`.
    pub fn at(path: &Path) -> CleanupPath {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        cleanup_paths().push(path.clone());
        CleanupPath(path)
    }
}

/// Makes something that is to go if the process is ended: not between the two, and not once [`remove_all`] has begun.
fn make<T>(
    make: impl FnOnce() -> io::Result<T>,
    path: impl FnOnce(&T) -> &Path,
) -> io::Result<(T, CleanupPath)> {
    let mut all = cleanup_paths();
    let made = make().map_err(bare)?;
    let path = path(&made);
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    all.push(path.clone());
    Ok((made, CleanupPath(path)))
}

/// The error without the temporary name that it happened to, which says nothing to anybody.
fn bare(error: io::Error) -> io::Error {
    let text = error.to_string();
    match text.split_once(" at path ") {
        Some((why, _)) => io::Error::new(error.kind(), why.to_owned()),
        None => error,
    }
}

impl Drop for CleanupPath {
    fn drop(&mut self) {
        let mut all = cleanup_paths();
        if let Some(at) = all.iter().position(|path| *path == self.0) {
            all.swap_remove(at);
        }
    }
}

/// A file that is taken away with its name unless it is given another.
#[derive(Debug)]
pub struct UnfinishedFile {
    /// Written to, for its owner only.
    pub file: NamedTempFile,
    _cleanup: CleanupPath,
}

impl UnfinishedFile {
    /// Makes one in `directory`.
    pub fn make(directory: &Path) -> io::Result<UnfinishedFile> {
        sweep(directory);
        let file = || {
            tempfile::Builder::new()
                .prefix(PREFIX)
                .tempfile_in(directory)
        };
        let (file, cleanup) = make(file, NamedTempFile::path)?;
        // Where there are no locks, what is left stays.
        let _ = flock(file.as_file(), FlockOperation::NonBlockingLockExclusive);
        Ok(UnfinishedFile {
            file,
            _cleanup: cleanup,
        })
    }
}

/// A directory that is taken away with all that is in it unless it is given another name.
#[derive(Debug)]
pub struct ScratchDirectory {
    directory: TempDir,
    /// Holds the lock.
    pub open: File,
    _cleanup: CleanupPath,
}

impl ScratchDirectory {
    /// Makes one in `directory`.
    pub fn make(directory: &Path) -> io::Result<ScratchDirectory> {
        sweep(directory);
        let directory = || {
            tempfile::Builder::new()
                .prefix(PREFIX)
                .tempdir_in(directory)
        };
        let (made, cleanup) = make(directory, TempDir::path)?;
        let open = File::open(made.path())?;
        let _ = flock(&open, FlockOperation::NonBlockingLockExclusive);
        Ok(ScratchDirectory {
            directory: made,
            open,
            _cleanup: cleanup,
        })
    }

    /// Makes one where temporary files go.
    pub fn anywhere() -> io::Result<ScratchDirectory> {
        ScratchDirectory::make(&std::env::temp_dir())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// It has another name now.
    pub fn keep(self) {
        drop(self.directory.keep());
    }
}

/// So often it is tried to take away what may still be written into.
const TRIES: u32 = 100;

/// Takes away all that would be left, also what others of this process, or processes that are just being killed, are writing into. Until what this
/// returns is dropped nothing more is begun: who ends the process keeps it.
pub fn remove_all() -> MutexGuard<'static, Vec<PathBuf>> {
    let all = cleanup_paths();
    for path in &*all {
        for _ in 0..TRIES {
            if remove(path).is_ok_and(|there| !there) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    all
}

/// False if nothing was there.
fn remove(path: &Path) -> io::Result<bool> {
    let meta = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        looked => looked?,
    };
    match meta.is_dir() {
        true => fs::remove_dir_all(path)?,
        false => fs::remove_file(path)?,
    }
    Ok(true)
}

/// How old a temporary name has to be before it is taken for left behind: who has just made one locks it only then.
const SETTLED: Duration = Duration::from_secs(10);

/// Takes away what exports that were killed have left in a directory. What cannot be taken away stays: it is in nobody's way.
fn sweep(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) && is_abandoned(&entry.path()) {
            let _ = remove(&entry.path());
        }
    }
}

/// True of a file or directory of this user's that is not new and that nobody has locked.
pub fn is_abandoned(path: &Path) -> bool {
    let locked = || -> Option<()> {
        // Whoever waits at a pipe of this name would wait for ever.
        let meta = fs::symlink_metadata(path).ok()?;
        let settled = meta.modified().ok()?.elapsed().ok()? > SETTLED;
        let own = meta.uid() == rustix::process::geteuid().as_raw();
        if !settled || !own || !(meta.is_file() || meta.is_dir()) {
            return None;
        }
        let mut options = OpenOptions::new();
        options
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        flock(
            options.open(path).ok()?,
            FlockOperation::NonBlockingLockExclusive,
        )
        .ok()
    };
    locked().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_asked_to_end_takes_away_what_is_not_finished_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let done = UnfinishedFile::make(place.path()).unwrap();
        done.file.persist(place.path().join("done")).unwrap();
        let (file, scratch) = (
            UnfinishedFile::make(place.path()).unwrap(),
            ScratchDirectory::make(place.path()).unwrap(),
        );
        fs::write(scratch.path().join("part"), "x").unwrap();
        drop(remove_all());
        let left: Vec<_> = fs::read_dir(place.path())
            .unwrap()
            .flatten()
            .map(|e| e.file_name())
            .collect();
        assert_eq!(left, ["done"]);
        drop((file, scratch));
    }
}
