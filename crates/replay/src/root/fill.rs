//! Puts into an empty root what a plan says was there.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;

use backstory_contents::{Contents, Digest};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

use super::{host, on_host, order, path, show};
use crate::plan::{Entry, Plan, What};
use crate::{Error, Result};

/// Fills the root. Directories get their times and modes last: what is put into them changes the former, and some cannot be written to by
/// their owner.
pub fn fill(plan: &Plan) -> Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let dir = on_host(plan.contents.as_os_str().as_bytes());
    let kept = plan
        .entries
        .iter()
        .any(|entry| matches!(entry.what, What::Kept(_) | What::Part(..)));
    let contents = match kept {
        true => Some(Contents::open(&dir)?),
        false => None,
    };
    for entry in &plan.entries {
        put(entry, contents.as_ref()).map_err(|problem| problem.of(entry))?;
    }
    let shown: HashSet<&[u8]> = plan
        .entries
        .iter()
        .filter(|entry| matches!(entry.what, What::Shown(_)))
        .map(|entry| &*entry.path)
        .collect();
    further_names(plan, |of| !shown.contains(of))?;
    // What is shown stays where it is from then on.
    order::put(plan)?;
    for entry in &plan.entries {
        if let What::Shown(from) = &entry.what {
            show(&on_host(from), path(&entry.path))?;
        }
    }
    further_names(plan, |of| shown.contains(of))?;
    if plan.allow_host {
        host::rest(plan)?;
    }
    for entry in plan.entries.iter().rev() {
        let own = path(&entry.path);
        if entry.what == What::Directory && !is_ours(own) {
            dated(own, entry.mtime).map_err(Error::io("set the times of", own))?;
            fs::set_permissions(own, Permissions::from_mode(entry.mode))
                .map_err(Error::io("set the mode of", own))?;
        }
    }
    Ok(())
}

/// Makes the further names of those files.
fn further_names(plan: &Plan, wanted: impl Fn(&[u8]) -> bool) -> Result<()> {
    for entry in &plan.entries {
        if let What::Also(of) = &entry.what
            && wanted(of)
        {
            let to = path(&entry.path);
            another_name(path(of), to).map_err(Error::io("make", to))?;
        }
    }
    Ok(())
}

/// Directories that are there in any case, as they have to be.
fn is_ours(path: &Path) -> bool {
    ["/", "/dev", "/proc", "/sys", "/tmp"]
        .iter()
        .any(|own| path == Path::new(own))
}

enum Problem {
    Ours(Error),
    Io(io::Error),
}

impl Problem {
    fn of(self, entry: &Entry) -> Error {
        match self {
            Problem::Ours(error) => error,
            Problem::Io(source) => Error::Build {
                doing: "make",
                path: path(&entry.path).to_owned(),
                source,
            },
        }
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Problem {
        Problem::Io(error)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        Problem::Ours(error)
    }
}

fn put(entry: &Entry, contents: Option<&Contents>) -> std::result::Result<(), Problem> {
    let to = path(&entry.path);
    match &entry.what {
        What::Directory => {
            fs::create_dir_all(to)?;
            return Ok(());
        }
        What::Link(target) => {
            parents(to)?;
            match symlink(path(target), to) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
                made => made?,
            }
        }
        What::Also(_) => return Ok(()),
        What::Shown(_) => {
            parents(to)?;
            create(to, entry.mode)?;
            return Ok(());
        }
        What::Kept(digest) => {
            let mut object = object(contents, *digest)?;
            parents(to)?;
            io::copy(&mut object, &mut create(to, entry.mode)?)?;
        }
        What::Part(digest, size) => {
            let object = object(contents, *digest)?;
            parents(to)?;
            let mut file = create(to, entry.mode)?;
            io::copy(&mut object.take(*size), &mut file)?;
            file.set_len(*size)?;
        }
        What::Copied(from) => {
            let mut from = File::open(on_host(from))?;
            parents(to)?;
            io::copy(&mut from, &mut create(to, entry.mode)?)?;
        }
        What::Blank(size) => {
            parents(to)?;
            create(to, entry.mode)?.set_len(*size)?;
        }
    }
    dated(to, entry.mtime)?;
    Ok(())
}

fn object(contents: Option<&Contents>, digest: [u8; 32]) -> std::result::Result<impl Read, Problem> {
    let digest = Digest(digest);
    let contents = contents.ok_or(Error::Contents(backstory_contents::Error::NotKept(digest)))?;
    Ok(contents.read(&digest).map_err(Error::Contents)?)
}

fn parents(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if fs::metadata(parent).is_err() => fs::create_dir_all(parent),
        _ => Ok(()),
    }
}

fn create(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create_new(true)
        .mode(mode | 0o200)
        .open(path)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(file)
}

/// A name that leads to the file already, through a link, needs nothing.
fn another_name(of: &Path, to: &Path) -> io::Result<()> {
    if fs::symlink_metadata(to).is_ok() || fs::symlink_metadata(of).is_err() {
        return Ok(());
    }
    parents(to)?;
    match fs::hard_link(of, to) {
        // What is shown of the machine is of another file system: its name leads there instead.
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => symlink(of, to),
        made => made,
    }
}

fn dated(path: &Path, mtime: i64) -> io::Result<()> {
    if mtime == 0 {
        return Ok(());
    }
    let time = Timespec {
        tv_sec: mtime.div_euclid(1_000_000_000),
        tv_nsec: mtime.rem_euclid(1_000_000_000),
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(())
}
