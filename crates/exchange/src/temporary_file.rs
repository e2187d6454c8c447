//! Files that are being received. They are beside the logs, and get the name of a log when they
//! are complete and checked.
//!
//! Invariant: a file in use is locked (`flock`). Its process removes it, also after a failure. One
//! that a killed process left is not locked, and the next exchange or `store gc` removes it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use backstory_files::regular;
use backstory_store::Home;

use crate::{Error, Result};

const PREFIX: &str = "incoming.";

/// A file that is removed unless it gets another name.
#[derive(Debug)]
pub struct TemporaryFile {
    pub path: PathBuf,
    pub file: File,
    renamed: bool,
}

impl TemporaryFile {
    /// A new file for its owner only. A file or link at its name is an error.
    pub fn new(home: &Home) -> Result<TemporaryFile> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}.{number}", std::process::id());
        let path = home.runs_dir().join(name);
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(Error::io("create", &path))?;
        let temporary = TemporaryFile {
            path,
            file,
            renamed: false,
        };
        let locked = temporary.file.lock();
        locked.map_err(Error::io("lock", &temporary.path))?;
        Ok(temporary)
    }

    /// Makes the bytes durable, then gives the file its name. A file or link of this name is
    /// replaced.
    pub fn rename(mut self, to: &Path) -> Result<()> {
        let fail = Error::io("write", to);
        self.file
            .sync_all()
            .and_then(|()| fs::rename(&self.path, to))
            .map_err(fail)?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !self.renamed {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes files that killed exchanges and imports left, and signatures and deep logs of runs that
/// are gone.
/// Returns how many were removed.
pub fn remove_left_files(home: &Home) -> u64 {
    let mut removed = 0;
    for entry in fs::read_dir(home.runs_dir())
        .into_iter()
        .flatten()
        .flatten()
    {
        let (name, path) = (entry.file_name(), entry.path());
        let Some(name) = name.to_str() else { continue };
        let of_run = name.strip_suffix(".sig").or(name.strip_suffix(".deep"));
        let left = match of_run {
            Some(run) => !home.log_path(run).exists() && !home.part_path(run).exists(),
            None => is_temporary(name) && is_unused(&path),
        };
        if left && fs::remove_file(&path).is_ok() {
            removed += 1;
        }
    }
    removed
}

/// True for a name that only files of an exchange or an import have.
fn is_temporary(name: &str) -> bool {
    let begins = [PREFIX, "import."]
        .iter()
        .any(|begin| name.starts_with(begin));
    begins
        || [".import", ".import.lock"]
            .iter()
            .any(|end| name.ends_with(end))
}

/// True if no process has the lock of the file. The log of an import has a lock file beside it.
fn is_unused(path: &Path) -> bool {
    let lock = match path.extension() {
        Some(end) if end == "import" => &path.with_extension("import.lock"),
        _ => path,
    };
    match regular::open(lock) {
        Ok(file) => !matches!(file.try_lock(), Err(TryLockError::WouldBlock)),
        Err(error) => lock != path && error.kind() == io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_a_killed_exchange_left_is_removed_and_one_in_use_stays() {
        let tmp = tempfile::tempdir().unwrap();
        let home = Home::open(tmp.path()).unwrap();
        fs::write(home.runs_dir().join("incoming.1.0"), "left").unwrap();
        fs::write(home.runs_dir().join("aaaa0000.sig"), "of no run").unwrap();
        fs::write(home.deep_log_path("aaaa0000"), "of no run").unwrap();
        fs::write(home.log_path("bbbb0000"), "a log").unwrap();
        fs::write(home.deep_log_path("bbbb0000"), "its deep log").unwrap();
        fs::write(home.runs_dir().join("bbbb0000.sig"), "its signature").unwrap();
        let used = TemporaryFile::new(&home).unwrap();
        assert_eq!(remove_left_files(&home), 3);
        assert!(used.path.exists());
        assert!(home.runs_dir().join("bbbb0000.sig").exists());
        assert!(home.deep_log_path("bbbb0000").exists());
        assert!(!home.deep_log_path("aaaa0000").exists());
        let path = used.path.clone();
        drop(used);
        assert!(!path.exists());
    }
}
