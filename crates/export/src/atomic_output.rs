//! Writes an export completely or not at all: under a temporary name beside its own, renamed when all of it is there, on the disk, too.

use std::fs;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::syncfs;

use crate::format::{Format, Shape, Target};
use crate::unfinished::{ScratchDirectory, UnfinishedFile};
use crate::{Error, Result, View};

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
    if !directory.is_dir() {
        return Err(Error::NoDirectory {
            path: path.to_owned(),
            directory,
        });
    }
    match format.shape() {
        Shape::Stream => {
            if path.is_dir() {
                return Err(in_the_way(path, "a directory"));
            }
            // A device or a pipe is written to, not replaced.
            if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
                let mut out = fs::OpenOptions::new()
                    .write(true)
                    .open(path)
                    .map_err(failed)?;
                return export_to(view, format, &mut out);
            }
            let mut unfinished = UnfinishedFile::make(&directory).map_err(failed)?;
            let file = &mut unfinished.file;
            let mut out = BufWriter::new(file.as_file_mut());
            named(path, format.write(view, Target::Stream(&mut out)))?;
            out.flush().map_err(failed)?;
            drop(out);
            let mode = 0o666 & !umask();
            file.as_file()
                .set_permissions(fs::Permissions::from_mode(mode))
                .map_err(failed)?;
            file.as_file().sync_all().map_err(failed)?;
            unfinished
                .file
                .persist(path)
                .map_err(|error| failed(error.error))?;
            Ok(())
        }
        Shape::Directory => {
            let empty = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
            if path.exists() && !empty {
                let what = if path.is_dir() { "not empty" } else { "a file" };
                return Err(in_the_way(path, what));
            }
            let temporary = ScratchDirectory::make(&directory).map_err(failed)?;
            named(
                path,
                format.write(view, Target::Directory(temporary.path())),
            )?;
            fs::set_permissions(
                temporary.path(),
                fs::Permissions::from_mode(0o777 & !umask()),
            )
            .map_err(failed)?;
            // One call for all files: a crash must not leave the name without what it stands for.
            syncfs(&temporary.open).map_err(|error| failed(error.into()))?;
            // An empty directory is replaced by a rename.
            fs::rename(temporary.path(), path).map_err(failed)?;
            temporary.keep();
            Ok(())
        }
    }
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
