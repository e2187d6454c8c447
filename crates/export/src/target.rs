//! Writes an export completely or not at all: under a temporary name beside its own, renamed when all of it is there, on the disk, too.
//!
//! Who writes holds a lock on what is under the temporary name. What nobody has locked was left by somebody who was killed, and goes
//! with the next export into the same directory.

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock, syncfs};

use crate::format::{Format, Shape, Target};
use crate::{Error, Result, View};

/// What temporary names begin with.
const PREFIX: &str = ".backstory-export-";

/// Writes `view` to `path`.
pub fn export(view: &View, format: &dyn Format, path: &Path) -> Result<()> {
    let failed = |source: io::Error| Error::Write {
        path: path.to_owned(),
        source,
    };
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    match format.shape() {
        Shape::Stream => {
            if path.is_dir() {
                return Err(in_the_way(path, "a directory"));
            }
            // A device or a pipe is written to, not replaced.
            if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
                let mut out = fs::OpenOptions::new().write(true).open(path).map_err(failed)?;
                return export_to(view, format, &mut out);
            }
            sweep(&directory);
            let mut file = tempfile::Builder::new()
                .prefix(PREFIX)
                .tempfile_in(&directory)
                .map_err(failed)?;
            // Where there are no locks, what is left stays.
            let _ = flock(file.as_file(), FlockOperation::NonBlockingLockExclusive);
            let mut out = BufWriter::new(file.as_file_mut());
            named(path, format.write(view, Target::Stream(&mut out)))?;
            out.flush().map_err(failed)?;
            drop(out);
            let mode = 0o666 & !umask();
            file.as_file()
                .set_permissions(fs::Permissions::from_mode(mode))
                .map_err(failed)?;
            file.as_file().sync_all().map_err(failed)?;
            file.persist(path).map_err(|error| failed(error.error))?;
            Ok(())
        }
        Shape::Directory => {
            let empty = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
            if path.exists() && !empty {
                let what = if path.is_dir() { "not empty" } else { "a file" };
                return Err(in_the_way(path, what));
            }
            sweep(&directory);
            let temporary = tempfile::Builder::new()
                .prefix(PREFIX)
                .tempdir_in(&directory)
                .map_err(failed)?;
            let held = File::open(temporary.path()).map_err(failed)?;
            let _ = flock(&held, FlockOperation::NonBlockingLockExclusive);
            named(path, format.write(view, Target::Directory(temporary.path())))?;
            fs::set_permissions(temporary.path(), fs::Permissions::from_mode(0o777 & !umask()))
                .map_err(failed)?;
            // One call for all files: a crash must not leave the name without what it stands for.
            syncfs(&held).map_err(|error| failed(error.into()))?;
            // An empty directory is replaced by a rename.
            fs::rename(temporary.path(), path).map_err(failed)?;
            drop(temporary.keep());
            Ok(())
        }
    }
}

/// How old a temporary name has to be before it is taken for left behind: who has just made one locks it only then.
const SETTLED: Duration = Duration::from_secs(10);

/// Takes away what exports that were killed have left in a directory. What cannot be taken away stays: it is in nobody's way.
fn sweep(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if ours {
            sweep_one(&entry.path());
        }
    }
}

fn sweep_one(path: &Path) -> Option<()> {
    // Whoever waits at a pipe of this name would wait for ever.
    let meta = fs::symlink_metadata(path).ok()?;
    let settled = meta.modified().ok()?.elapsed().ok()? > SETTLED;
    if !settled || !(meta.is_file() || meta.is_dir()) {
        return None;
    }
    let left = File::open(path).ok()?;
    flock(&left, FlockOperation::NonBlockingLockExclusive).ok()?;
    let removed = if meta.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    removed.ok()
}

/// Writes `view` to `out` when all of it could be made: what comes after a pipe gets the whole or nothing.
pub fn export_to(view: &View, format: &dyn Format, out: &mut dyn Write) -> Result<()> {
    // Most exports are small; an image's archive is not for memory.
    let mut whole = tempfile::SpooledTempFile::new(1 << 24);
    format.write(view, Target::Stream(&mut whole))?;
    whole.seek(SeekFrom::Start(0))?;
    io::copy(&mut whole, out)?;
    out.flush()?;
    Ok(())
}

/// What failed while it was written, with the name of what was to be written.
fn named(path: &Path, written: Result<()>) -> Result<()> {
    written.map_err(|error| match error {
        Error::Stream(source) => Error::Write {
            path: path.to_owned(),
            source,
        },
        Error::Table { .. } | Error::Database(_) => Error::Part {
            path: path.to_owned(),
            source: Box::new(error),
        },
        other => other,
    })
}

fn in_the_way(path: &Path, what: &'static str) -> Error {
    Error::InTheWay {
        path: path.to_owned(),
        what,
    }
}

/// The process's umask, read where reading does not change it; the usual one where that is not told.
fn umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok())
        .unwrap_or(0o022)
}
