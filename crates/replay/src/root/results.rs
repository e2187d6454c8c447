//! The results of a replay: every file that is new or has changed.

use backstory_ordering::SmallSort;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use backstory_contents::WorkMeter;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat,
};

use super::OWN;
use super::copy_out;
pub use super::replayed_file::ReplayedFile;
use super::replayed_file::TAKE;
use crate::plan::Plan;
use crate::{Error, Result};

/// The files before the command ran, for comparison.
#[derive(Debug)]
pub struct RootSnapshot {
    device: u64,
    files: HashMap<PathBuf, FileStamp>,
}

/// All files and directories that programs can write, with `/dev/shm`, and the objects of
/// sysvipc(7). A change of a file changes its times, and one of a name those of its directory.
///
/// Absent: stores through a mapping of a file, if no call changes the file, and queues of
/// mq_overview(7).
#[derive(Debug, PartialEq, Eq)]
pub struct RootState {
    files: HashMap<PathBuf, (FileStamp, ChangeStamp)>,
    objects: Vec<String>,
}

/// Mode, owners, and the time of the last change, which no program can set.
type ChangeStamp = (u32, u32, u32, i64, i64);

fn changed(stat: &Stat) -> ChangeStamp {
    let (seconds, ns) = (stat.st_ctime, stat.st_ctime_nsec as i64);
    (stat.st_mode, stat.st_uid, stat.st_gid, seconds, ns)
}

impl RootState {
    /// Takes the present state.
    ///
    /// # Errors
    /// A directory cannot be looked at.
    pub fn take() -> Result<RootState> {
        let mut files = HashMap::new();
        let stamps = |stat: &Stat| (seen(stat), changed(stat));
        for top in ["/", "/dev/shm"] {
            let device = fs::metadata(top).map_err(Error::io("look at", top))?.dev();
            walk(Path::new(top), device, &mut |dir, entries| {
                let own = fstat(&dir.open).map_err(Error::build("look at", &dir.path))?;
                files.insert(dir.path.clone(), stamps(&own));
                let entries = entries.iter();
                files.extend(entries.map(|(name, stat)| (dir.path.join(name), stamps(stat))));
                Ok(())
            })?;
        }
        let objects = ["shm", "sem", "msg"].map(|kind| {
            let text = fs::read_to_string(format!("/proc/sysvipc/{kind}"));
            text.unwrap_or_default()
        });
        Ok(RootState {
            files,
            objects: objects.into(),
        })
    }
}

/// The directory of the results below the replay's own directory: files by their absolute paths.
pub const FILES: &str = "files";

impl RootSnapshot {
    /// Takes the state of all planned files.
    pub fn take(plan: &Plan) -> Result<RootSnapshot> {
        let device = fs::metadata("/").map_err(Error::io("look at", "/"))?.dev();
        let mut files = HashMap::with_capacity(plan.entries.len());
        walk(Path::new("/"), device, &mut |dir, entries| {
            for (name, stat) in &entries {
                files.insert(dir.path.join(name), seen(stat));
            }
            Ok(())
        })?;
        debug_assert!(
            files.len() <= plan.entries.len() + 10_000,
            "an empty root holds what was put there"
        );
        Ok(RootSnapshot { device, files })
    }

    /// Copies new and changed files to the replay's directory. `meter` counts their bytes.
    pub fn collect(&self, meter: &WorkMeter) -> Result<Vec<ReplayedFile>> {
        let to = Path::new(OWN).join(FILES);
        let mut loads = Vec::new();
        walk(Path::new("/"), self.device, &mut |dir, mut entries| {
            entries
                .retain(|(name, stat)| self.files.get(&dir.path.join(name)) != Some(&seen(stat)));
            if entries.is_empty() {
                return Ok(());
            }
            let there = to.join(dir.path.strip_prefix("/").unwrap_or(&dir.path));
            let failed = |name: &OsStr| Error::io(TAKE, dir.path.join(name));
            fs::create_dir_all(&there).map_err(failed(OsStr::new("")))?;
            let (links, files): (Vec<_>, Vec<_>) =
                entries.into_iter().partition(|(_, stat)| is_link(stat));
            for (name, _) in links {
                let target = readlinkat(&dir.open, &name, Vec::new())
                    .map_err(Error::build(TAKE, dir.path.join(&name)))?;
                symlink(OsStr::from_bytes(target.as_bytes()), there.join(&name))
                    .map_err(failed(&name))?;
            }
            loads.extend(copy_out::loads(&dir.path, &there, &files));
            Ok(())
        })?;
        let mut left = copy_out::all(&loads, meter)?;
        left.sort_small_by(|a, b| a.path.cmp(&b.path));
        Ok(left)
    }
}

/// Size, times and inode: a change of content changes one of them.
type FileStamp = (i64, i64, i64, u64);

fn seen(stat: &Stat) -> FileStamp {
    (
        stat.st_size,
        stat.st_mtime,
        stat.st_mtime_nsec as i64,
        stat.st_ino,
    )
}

fn is_link(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Symlink
}

/// An open directory.
struct Directory {
    path: PathBuf,
    open: OwnedFd,
}

/// Called with the files and links of each directory.
type Each<'e> = dyn FnMut(&Directory, Vec<(OsString, Stat)>) -> Result<()> + 'e;

/// Visits every directory of one file system from `top` on, with its files and links. A directory
/// that cannot be entered is skipped. Files are looked up relative to their directory, since
/// resolving thousands of whole paths would take longer.
fn walk(top: &Path, device: u64, each: &mut Each<'_>) -> Result<()> {
    let mut waiting = vec![top.to_owned()];
    while let Some(path) = waiting.pop() {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(open) = openat(CWD, &path, flags, Mode::empty()) else {
            continue;
        };
        if fstat(&open).map_err(Error::build("look at", &path))?.st_dev != device {
            continue;
        }
        let Ok(listed) = Dir::read_from(&open) else {
            continue;
        };
        let mut entries = Vec::new();
        for entry in listed.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            match entry.file_type() {
                _ if name == "." || name == ".." => {}
                FileType::Directory if path.join(name) == Path::new(OWN) => {}
                FileType::Directory => waiting.push(path.join(name)),
                FileType::RegularFile | FileType::Symlink => {
                    // Mounted files of the machine belong to other file systems.
                    if let Ok(stat) = statat(&open, name, AtFlags::SYMLINK_NOFOLLOW)
                        && stat.st_dev == device
                    {
                        entries.push((name.to_owned(), stat));
                    }
                }
                _ => {}
            }
        }
        each(&Directory { path, open }, entries)?;
    }
    Ok(())
}
