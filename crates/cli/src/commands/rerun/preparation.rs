//! Brings the files that a step changes to their state before the recorded step.
//!
//! A file that was not there is removed, and a file that the step edits gets its earlier content.
//! Both are put aside before, and restored if the step fails.

use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use backstory_contents::Contents;
use backstory_eventlog::event::Bytes;
use backstory_files::{Digest, Ident};
use backstory_ordering::SmallSort;
use backstory_replay::rerun::PlannedStep;
use backstory_replay::rerun::refusals::{FormerContent, former_content};
use backstory_replay::rerun::unit_files::{ChangedFile, FileOrigin};

use crate::commands::near;

/// Brings one file to its state before the recorded step. `contents`: the directory of the store of
/// contents.
pub fn bring_back(file: &ChangedFile, contents: &Path) -> io::Result<()> {
    let path = Path::new(OsStr::from_bytes(&file.path));
    let version = match &file.origin {
        FileOrigin::Replaced => return Ok(()),
        FileOrigin::Absent => return remove(path),
        FileOrigin::Empty => return empty(path),
        FileOrigin::Edited(version) => version,
    };
    let contents = Contents::open(contents).ok();
    let former = former_content(&file.path, version, contents.as_ref());
    match (former, &contents) {
        (Some(FormerContent::Prefix(size)), _) => {
            File::options().write(true).open(path)?.set_len(size)?;
        }
        (Some(FormerContent::Stored(digest)), Some(contents)) => write(path, contents, &digest)?,
        _ => {
            return Err(io::Error::other(format!(
                "it edits {}, and the version with which it began is not kept",
                near(&file.path)
            )));
        }
    }
    version
        .ident
        .map_or(Ok(()), |ident| set_attributes(path, &ident))
}

fn empty(path: &Path) -> io::Result<()> {
    match path.is_file() {
        true => File::options().write(true).open(path)?.set_len(0),
        false => Ok(()),
    }
}

fn write(path: &Path, contents: &Contents, digest: &Digest) -> io::Result<()> {
    let mut former = contents.read(digest).map_err(io::Error::other)?;
    let mut options = File::options();
    let mut file = options.write(true).create(true).truncate(true).open(path)?;
    io::copy(&mut former, &mut file).map(drop)
}

fn set_attributes(path: &Path, ident: &Ident) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    file.set_permissions(Permissions::from_mode(ident.mode & 0o7777))?;
    let since = Duration::from_nanos(u64::try_from(ident.mtime).unwrap_or(0));
    file.set_times(FileTimes::new().set_modified(SystemTime::UNIX_EPOCH + since))
}

/// Makes the directories that the step needs. `own`: directories that it makes itself. They are
/// removed if they are empty, so that it can make them.
pub fn directories(step: &PlannedStep, own: &[Bytes]) -> io::Result<()> {
    let mut empty: Vec<&Bytes> = own.iter().collect();
    // Those below others come first.
    empty.sort_small_by(|one, other| other.cmp(one));
    for directory in empty {
        // A directory with files stays.
        let _ = fs::remove_dir(OsStr::from_bytes(directory));
    }
    for directory in step.directories.iter().filter(|path| !own.contains(path)) {
        fs::create_dir_all(OsStr::from_bytes(directory))?;
    }
    Ok(())
}

/// Removes a file or link. A directory stays.
pub fn remove(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(found) if !found.is_dir() => fs::remove_file(path),
        _ => Ok(()),
    }
}
