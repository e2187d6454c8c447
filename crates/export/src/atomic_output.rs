//! Writes an export completely or not at all.
//!
//! In: a view, a format and a path. Out: the file or directory. It is written under a temporary
//! name in the same directory, brought to the disk, and then renamed.

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
            // A device or a pipe is opened for writing, not replaced.
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
            // One call syncs all files: after a crash, the name must not exist without its content.
            syncfs(&temporary.open).map_err(|error| failed(error.into()))?;
            // The rename replaces an empty directory.
            fs::rename(temporary.path(), path).map_err(failed)?;
            temporary.keep();
            Ok(())
        }
    }
}

/// Writes `view` to `out` once all of it exists, so that the reader of a pipe gets all or nothing.
pub fn export_to(view: &View, format: &dyn Format, out: &mut dyn Write) -> Result<()> {
    // Most exports are small. The archive of an image does not fit into memory.
    let mut whole = tempfile::SpooledTempFile::new(1 << 24);
    format.write(view, Target::Stream(&mut whole))?;
    whole.seek(SeekFrom::Start(0))?;
    io::copy(&mut whole, out)?;
    out.flush()?;
    Ok(())
}

/// The error of a format, with the path of the target.
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

/// The process's umask, read from `/proc`, since `umask(2)` would change it; 022 if `/proc` does
/// not show it.
fn umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok())
        .unwrap_or(0o022)
}
