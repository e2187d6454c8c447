//! Temporary files and directories, which do not outlive an interrupted command.
//!
//! They are removed in three ways:
//!
//! 1. Dropping the value removes the file or directory.
//! 2. A process that is asked to end calls [`remove_all`] first.
//! 3. A process that is killed leaves its files. Each is locked while it is written. The next
//!    temporary file in the same directory removes those without a lock.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use tempfile::{NamedTempFile, TempDir};

/// The begin of temporary names.
const PREFIX: &str = ".backstory-export-";

/// The paths that would stay if this process ended now.
static CLEANUP_PATHS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn cleanup_paths() -> MutexGuard<'static, Vec<PathBuf>> {
    CLEANUP_PATHS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A path that [`remove_all`] removes, as long as this value lives.
#[derive(Debug)]
pub struct CleanupPath(PathBuf);

impl CleanupPath {
    /// Registers the file or directory at `path`.
    pub fn at(path: &Path) -> CleanupPath {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        cleanup_paths().push(path.clone());
        CleanupPath(path)
    }
}

/// Makes a file or directory and registers it. The lock keeps [`remove_all`] from running between
/// the two, and no file is made after it.
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

/// The error without the temporary name, which means nothing to the user.
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

/// A file that is removed with its name unless it is given another one.
#[derive(Debug)]
pub struct UnfinishedFile {
    /// The open file, for its owner only.
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
        // Without locks on this file system, an abandoned file stays.
        let _ = flock(file.as_file(), FlockOperation::NonBlockingLockExclusive);
        Ok(UnfinishedFile {
            file,
            _cleanup: cleanup,
        })
    }
}

/// A directory that is removed with its content unless it is renamed.
#[derive(Debug)]
pub struct ScratchDirectory {
    directory: TempDir,
    /// The open directory, which holds the lock.
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

    /// Makes one in the directory for temporary files.
    pub fn anywhere() -> io::Result<ScratchDirectory> {
        ScratchDirectory::make(&std::env::temp_dir())
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Keeps the directory, which has another name now.
    pub fn keep(self) {
        drop(self.directory.keep());
    }
}

/// The number of attempts to remove a directory that may still be written to.
const TRIES: u32 = 100;

/// Removes all registered files, also those that another thread, or a process that is being killed,
/// still writes to.
///
/// While the caller keeps the result, no new file is made.
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

/// Removes a file or directory. False if it does not exist.
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

/// Makes the directories of `path` that are below `root`. `root` itself is not made again if
/// [`remove_all`] has removed it: `create_dir_all` would.
///
/// # Errors
///
/// If `root` is gone, or a directory cannot be made.
pub fn make_below(root: &Path, path: &Path) -> io::Result<()> {
    let mut made = root.to_owned();
    for part in path.strip_prefix(root).unwrap_or(path).components() {
        made.push(part);
        match fs::create_dir(&made) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The age at which a temporary file may count as abandoned: its maker locks it only after making
/// it.
const SETTLED: Duration = Duration::from_secs(10);

/// Removes the files that killed exports left in a directory. A file that cannot be removed stays,
/// and does no harm.
fn sweep(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) && is_abandoned(&entry.path()) {
            let _ = remove(&entry.path());
        }
    }
}

/// True for an old file or directory of this user that no process has locked.
pub fn is_abandoned(path: &Path) -> bool {
    let locked = || -> Option<()> {
        // Opening a pipe of this name would block.
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
    fn a_signal_removes_unfinished_files_and_no_others() {
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

    #[test]
    fn a_directory_that_a_signal_removed_is_not_made_again() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("scratch");
        fs::create_dir(&root).unwrap();
        let blobs = root.join("blobs/sha256");
        make_below(&root, &blobs).unwrap();
        make_below(&root, &blobs).unwrap();
        assert!(blobs.is_dir());
        fs::remove_dir_all(&root).unwrap();
        assert!(make_below(&root, &blobs).is_err() && !root.exists());
    }
}
