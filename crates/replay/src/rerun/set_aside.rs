//! Puts the outputs of a step aside before it runs, and restores them if it does not succeed.
//!
//! In: a directory for what is put aside, and the paths of the outputs. Out: a [`SetAside`], which
//! is discarded or restored. [`restore_all`] restores what is aside when a signal ends the process,
//! and [`restore_left`] what a killed process left.
//!
//! An output stays where it is, because a step such as `make` may look at it. The directory gets a
//! copy with holes, extended attributes, mode and times. A file that the step wrote into gets its
//! content and times back. It keeps its inode, so it is still the version that was recorded. A file
//! that the step replaced gets its inode back if it has another name, else it has a new one, which
//! [`restored_files`](super::restored_files) notes.
//!
//! After a success, [`SetAside::archive`] keeps the former files that the store of contents does
//! not have, so that `undo` can bring them back.
//!
//! There is no hard link to the output: a link changes its status-change time, and the version that
//! the step makes could not be identified.
//!
//! Invariant: a directory with a complete manifest is restored or removed, and each only by the
//! process that holds its lock.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use backstory_files::regular;
use rustix::fs::{FlockOperation, flock};

use manifest::{Entry, FormerInodes};

mod manifest;
mod worker;

/// The directories of this process.
static OWN: Mutex<Vec<(PathBuf, FormerInodes)>> = Mutex::new(Vec::new());

fn own() -> MutexGuard<'static, Vec<(PathBuf, FormerInodes)>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The outputs of one step.
#[derive(Debug)]
pub struct SetAside {
    directory: PathBuf,
    _lock: File,
}

impl SetAside {
    /// Puts the files at these paths aside, in a new directory below `root`.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or the directory cannot be written.
    pub fn take<'p>(root: &Path, paths: impl Iterator<Item = &'p [u8]>) -> io::Result<SetAside> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(root)?;
        let mut own = own();
        let (directory, lock) = {
            // `restore_left` would take the new directory for an abandoned one.
            let _making = locked(&root.join("lock"))?;
            let directory = unused(root)?;
            fs::DirBuilder::new().mode(0o700).create(&directory)?;
            let lock = locked(&directory.join("lock"))?;
            (directory, lock)
        };
        let aside = SetAside {
            directory,
            _lock: lock,
        };
        let mut inodes = FormerInodes::default();
        let entries = paths
            .enumerate()
            .map(|(number, path)| Entry::take(&aside.directory, number, path, &mut inodes));
        match entries
            .collect::<io::Result<Vec<_>>>()
            .and_then(|entries| manifest::write(&aside.directory, &entries))
        {
            Ok(()) => own.push((aside.directory.clone(), inodes)),
            Err(error) => {
                let _ = fs::remove_dir_all(&aside.directory);
                return Err(error);
            }
        }
        Ok(aside)
    }

    /// Notes the process that ends when the step has ended.
    pub fn worked_on_by(&self, process: u32) {
        // Without the note, `restore_left` does not wait for a step that outlives its `rerun`.
        let _ = worker::note(&self.directory, process);
    }

    /// Removes what is aside: the step succeeded.
    pub fn discard(self) {
        let mut own = own();
        if forget(&mut own, &self.directory).is_some() {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }

    /// Keeps the former files that the step changed below `root` for `undo`, and removes the rest.
    /// `is_stored`: true if the bytes of a file are available elsewhere.
    ///
    /// # Errors
    ///
    /// If a file cannot be kept. The former files then stay aside.
    pub fn archive(self, root: &Path, is_stored: &dyn Fn(&Path) -> bool) -> io::Result<()> {
        for entry in manifest::read(&self.directory)? {
            entry.archive(&self.directory, root, is_stored)?;
        }
        self.discard();
        Ok(())
    }

    /// Restores the outputs: the step failed.
    ///
    /// # Errors
    ///
    /// If an output cannot be written. The copies then stay.
    pub fn restore(self) -> io::Result<()> {
        let mut own = own();
        match forget(&mut own, &self.directory) {
            Some(mut inodes) => restore(&self.directory, &mut inodes).map(drop),
            // `restore_all` was first.
            None => Ok(()),
        }
    }

    /// Restores these outputs, and leaves the others as the step made them.
    ///
    /// # Errors
    ///
    /// If an output cannot be written. The copies then stay.
    pub fn restore_only(&self, paths: &[Vec<u8>]) -> io::Result<()> {
        let mut inodes = FormerInodes::default();
        let entries = manifest::read(&self.directory)?.into_iter();
        let mut wanted = entries.filter(|entry| paths.iter().any(|path| path == entry.path()));
        wanted.try_for_each(|entry| entry.restore(&self.directory, &mut inodes).map(drop))
    }
}

fn forget(own: &mut Vec<(PathBuf, FormerInodes)>, directory: &Path) -> Option<FormerInodes> {
    let at = own.iter().position(|(own, _)| own == directory);
    at.map(|at| own.swap_remove(at).1)
}

/// Restores all that this process has put aside. While the caller keeps the result, nothing more is
/// put aside.
pub fn restore_all() -> impl Sized {
    let mut own = own();
    for (directory, mut inodes) in own.drain(..) {
        // A directory that cannot be restored stays for `restore_left`.
        let _ = restore(&directory, &mut inodes);
    }
    own
}

/// The end of a search for what killed processes left.
#[derive(Debug, Default)]
pub struct Leftovers {
    /// The restored files.
    pub restored: Vec<Vec<u8>>,
    /// Sentences on the directories that could not be restored.
    pub failed: Vec<String>,
}

/// Restores the outputs that a killed process put aside below `root`. Waits a while for a step that
/// outlives it. `is_recording`: true if the processes of the run that this process started are
/// still being recorded.
pub fn restore_left(root: &Path, is_recording: &dyn Fn(u32) -> bool) -> Leftovers {
    let mut left = Leftovers::default();
    let Ok(_making) = existing_lock(&root.join("lock")) else {
        return left;
    };
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let directory = entry.path();
        if !directory.is_dir() {
            continue;
        }
        let Ok(lock) = regular::open_private(directory.join("lock")) else {
            continue;
        };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            // A running process has it.
            continue;
        }
        if let Some(process) = worker::outlives(&directory, is_recording) {
            left.failed.push(format!(
                "process {process} still works on a step of a rerun that was killed: its outputs are restored when it has ended"
            ));
            continue;
        }
        match restore(&directory, &mut FormerInodes::default()) {
            Ok(paths) => left.restored.extend(paths),
            Err(error) => left.failed.push(format!(
                "the outputs in {} cannot be put back: {error}",
                directory.display()
            )),
        }
    }
    left
}

/// Restores the files of a directory and removes it. Without a complete manifest no step has run.
fn restore(directory: &Path, inodes: &mut FormerInodes) -> io::Result<Vec<Vec<u8>>> {
    let entries = manifest::read(directory)?;
    let mut restored = Vec::new();
    for entry in &entries {
        if entry
            .restore(directory, inodes)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", entry.shown())))?
        {
            restored.push(entry.path().to_vec());
        }
    }
    fs::remove_dir_all(directory)?;
    Ok(restored)
}

fn unused(root: &Path) -> io::Result<PathBuf> {
    let process = std::process::id();
    let names = (0..u32::MAX).map(|number| root.join(format!("{process}-{number}")));
    let mut free = names.filter(|path| !path.exists());
    free.next()
        .ok_or_else(|| io::Error::other("no name is left"))
}

fn locked(path: &Path) -> io::Result<File> {
    let file = regular::open_private(path)?;
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

/// The lock of a directory that may not exist.
fn existing_lock(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).open(path)?;
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

/// Writes a whole file under another name and renames it.
fn write_whole(path: &Path, text: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    File::create(&new)?.write_all(text)?;
    fs::rename(new, path)
}

#[cfg(test)]
mod tests;
