//! Fills an empty root with the entries of a plan.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;

use backstory_contents::{Contents, WorkMeter};
use backstory_files::Digest;
use backstory_files::regular;
use backstory_workflow::paths::to_path;
use rustix::fs::{AtFlags, CWD, Mode, Timespec, Timestamps, futimens, utimensat};

use super::{host_files, listing_order, on_host, show};
use crate::plan::{EntrySource, Plan, PlanEntry};
use crate::{Error, Result};

/// Fills the root. Directories get their times and modes last: adding an entry changes the time,
/// and some modes forbid their owner to add one. `meter` counts the entries.
pub fn fill(plan: &Plan, meter: &WorkMeter) -> Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let dir = on_host(plan.contents.as_os_str().as_bytes());
    let kept = plan.entries.iter().any(|entry| {
        matches!(
            entry.what,
            EntrySource::Stored(_) | EntrySource::StoredPart(..)
        )
    });
    let contents = match kept {
        true => Some(Contents::open(&dir)?),
        false => None,
    };
    let mut filling = RootFiller {
        contents,
        there: HashSet::new(),
    };
    // Each file is made with its full mode.
    let mask = rustix::process::umask(Mode::empty());
    let entries = in_order(plan)?;
    meter.expect(entries.len() as u64);
    let put = entries.into_iter().try_for_each(|entry| {
        meter.add(1);
        filling.put(entry).map_err(|problem| problem.of(entry))
    });
    rustix::process::umask(mask);
    put?;
    let shown: HashSet<&[u8]> = plan
        .entries
        .iter()
        .filter(|entry| matches!(entry.what, EntrySource::Mounted(_)))
        .map(|entry| &*entry.path)
        .collect();
    further_names(plan, |of| !shown.contains(of))?;
    // A mount point cannot be renamed afterwards.
    listing_order::put(plan)?;
    for entry in &plan.entries {
        if let EntrySource::Mounted(from) = &entry.what {
            show(&on_host(from), to_path(&entry.path))?;
        }
    }
    further_names(plan, |of| shown.contains(of))?;
    if plan.allow_host {
        host_files::rest(plan)?;
    }
    for entry in plan.entries.iter().rev() {
        let own = to_path(&entry.path);
        if entry.what == EntrySource::Directory && !is_ours(own) {
            dated(own, entry.mtime).map_err(Error::io("set the times of", own))?;
            fs::set_permissions(own, Permissions::from_mode(entry.mode))
                .map_err(Error::io("set the mode of", own))?;
        }
    }
    Ok(())
}

/// Makes the hard links to the wanted files.
fn further_names(plan: &Plan, wanted: impl Fn(&[u8]) -> bool) -> Result<()> {
    for entry in &plan.entries {
        if let EntrySource::HardLink(of) = &entry.what
            && wanted(of)
        {
            let to = to_path(&entry.path);
            another_name(to_path(of), to).map_err(Error::io("make", to))?;
        }
    }
    Ok(())
}

/// True for directories that exist in every root with fixed modes.
fn is_ours(path: &Path) -> bool {
    ["/", "/dev", "/proc", "/sys", "/tmp"]
        .iter()
        .any(|own| path == Path::new(own))
}

enum FillError {
    Ours(Error),
    Io(io::Error),
}

impl FillError {
    fn of(self, entry: &PlanEntry) -> Error {
        let source = match self {
            FillError::Ours(Error::Contents(error)) => io::Error::other(error.to_string()),
            FillError::Ours(error) => return error,
            FillError::Io(source) => source,
        };
        Error::Build {
            doing: "make",
            path: to_path(&entry.path).to_owned(),
            source: outside(source),
        }
    }
}

/// The error with the machine's paths as they are outside.
fn outside(error: io::Error) -> io::Error {
    let text = error.to_string();
    let inside = format!("{}/", super::HOST);
    match text.contains(&inside) {
        true => io::Error::new(error.kind(), text.replace(&inside, "/")),
        false => error,
    }
}

impl From<io::Error> for FillError {
    fn from(error: io::Error) -> FillError {
        FillError::Io(error)
    }
}

impl From<Error> for FillError {
    fn from(error: Error) -> FillError {
        FillError::Ours(error)
    }
}

/// A root while it is filled.
struct RootFiller<'p> {
    contents: Option<Contents>,
    /// Directories that exist already.
    there: HashSet<&'p Path>,
}

impl<'p> RootFiller<'p> {
    fn put(&mut self, entry: &'p PlanEntry) -> std::result::Result<(), FillError> {
        let to = to_path(&entry.path);
        match &entry.what {
            EntrySource::HardLink(_) => return Ok(()),
            EntrySource::Directory => {
                make_directories(to)?;
                self.there.insert(to);
                return Ok(());
            }
            _ => self.parents(to)?,
        }
        match &entry.what {
            EntrySource::Link(target) => match symlink(to_path(target), to) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => {
                    made?;
                    dated(to, entry.mtime)?;
                }
            },
            EntrySource::Stored(digest) => {
                let mut object = self.object(*digest)?;
                let mut file = create(to, entry.mode)?;
                io::copy(&mut object, &mut file)?;
                finish(&file, entry)?;
            }
            EntrySource::StoredPart(digest, size) => {
                let object = self.object(*digest)?;
                let mut file = create(to, entry.mode)?;
                io::copy(&mut object.take(*size), &mut file)?;
                file.set_len(*size)?;
                finish(&file, entry)?;
            }
            EntrySource::Copied(from) => {
                let mut from = regular::open(on_host(from))?;
                let mut file = create(to, entry.mode)?;
                io::copy(&mut from, &mut file)?;
                finish(&file, entry)?;
            }
            EntrySource::Zeros(size) => {
                let file = create(to, entry.mode)?;
                file.set_len(*size)?;
                finish(&file, entry)?;
            }
            // The mounted file has its own mode and times.
            EntrySource::Mounted(_) => drop(create(to, entry.mode)?),
            EntrySource::HardLink(_) | EntrySource::Directory => {}
        }
        Ok(())
    }

    fn object(&self, digest: [u8; 32]) -> std::result::Result<impl Read + use<>, FillError> {
        let digest = Digest(digest);
        let contents = self.contents.as_ref();
        let contents =
            contents.ok_or(Error::Contents(backstory_contents::Error::NotKept(digest)))?;
        Ok(contents.read(&digest).map_err(Error::Contents)?)
    }

    /// Makes the parent directories of a file. Only the first of thousands of files in one
    /// directory looks for it.
    fn parents(&mut self, of: &'p Path) -> io::Result<()> {
        match of.parent() {
            Some(parent) if self.there.insert(parent) => make_directories(parent),
            _ => Ok(()),
        }
    }
}

/// The plan's entries, each after its directory. Entries of one directory are made in the order
/// that reproduces the recorded listing, since each correction later costs two renames.
fn in_order(plan: &Plan) -> Result<Vec<&PlanEntry>> {
    use std::os::unix::ffi::OsStrExt;
    let newest_first = !plan.orders.is_empty() && listing_order::is_newest_first()?;
    let mut ranks: HashMap<(&[u8], &[u8]), usize> = HashMap::new();
    for (directory, names) in &plan.orders {
        for (at, name) in names.iter().enumerate() {
            let rank = if newest_first {
                names.len() - at
            } else {
                at + 1
            };
            ranks.insert((directory, name), rank);
        }
    }
    let mut entries: Vec<&PlanEntry> = plan.entries.iter().collect();
    // The sort is stable, so other entries keep the plan's order.
    entries.sort_by_cached_key(|entry| {
        let (own, parent) = (to_path(&entry.path), to_path(&entry.path).parent());
        let parent = parent.map_or(&b"/"[..], |parent| parent.as_os_str().as_bytes());
        let name = own.file_name().map_or(&b""[..], |name| name.as_bytes());
        (
            own.components().count(),
            parent,
            ranks.get(&(parent, name)).copied(),
        )
    });
    Ok(entries)
}

fn make_directories(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(path)
}

fn create(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create_new(true)
        .mode(mode & 0o777)
        .open(path)
}

/// Sets mode bits and times, which writing changes.
fn finish(file: &File, entry: &PlanEntry) -> io::Result<()> {
    if entry.mode & 0o7000 != 0 {
        file.set_permissions(Permissions::from_mode(entry.mode))?;
    }
    match entry.mtime {
        0 => Ok(()),
        mtime => Ok(futimens(file, &times(mtime))?),
    }
}

/// A name that reaches the file already, through a link, needs no link.
fn another_name(of: &Path, to: &Path) -> io::Result<()> {
    if fs::symlink_metadata(to).is_ok() || fs::symlink_metadata(of).is_err() {
        return Ok(());
    }
    if let Some(parent) = to.parent() {
        make_directories(parent)?;
    }
    match fs::hard_link(of, to) {
        // A mounted file is on another file system: a symbolic link takes the place of the hard
        // link.
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => symlink(of, to),
        made => made,
    }
}

fn dated(path: &Path, mtime: i64) -> io::Result<()> {
    if mtime != 0 {
        utimensat(CWD, path, &times(mtime), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    Ok(())
}

fn times(mtime: i64) -> Timestamps {
    let time = Timespec {
        tv_sec: mtime.div_euclid(1_000_000_000),
        tv_nsec: mtime.rem_euclid(1_000_000_000),
    };
    Timestamps {
        last_access: time,
        last_modification: time,
    }
}
