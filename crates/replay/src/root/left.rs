//! What a replay left: every file that was not there before it, or is not as it was.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use backstory_contents::digest_of;
use serde::{Deserialize, Serialize};

use super::OWN;
use crate::plan::Plan;
use crate::{Error, Result};

/// A file that a replay left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// Where, inside.
    pub path: Vec<u8>,
    /// The name of its content.
    pub digest: [u8; 32],
    /// Bytes.
    pub size: u64,
}

/// What was there before the command ran, so that what it left can be told.
#[derive(Debug)]
pub struct Snapshot {
    device: u64,
    files: HashMap<PathBuf, (u64, i64, i64, u64)>,
}

/// Where what was left is put, below the replay's directory: files by their absolute paths.
pub const FILES: &str = "files";

impl Snapshot {
    /// Looks at everything that the plan put there.
    pub fn take(plan: &Plan) -> Result<Snapshot> {
        let device = fs::metadata("/").map_err(Error::io("look at", "/"))?.dev();
        let mut files = HashMap::new();
        walk(Path::new("/"), device, &mut |path, meta| {
            files.insert(path.to_owned(), mark(meta));
            Ok(())
        })?;
        debug_assert!(
            files.len() <= plan.entries.len() + 10_000,
            "an empty root holds what was put there"
        );
        Ok(Snapshot { device, files })
    }

    /// Copies what is not as it was to the replay's directory.
    pub fn collect(&self) -> Result<Vec<Left>> {
        let to = Path::new(OWN).join(FILES);
        let mut left = Vec::new();
        walk(Path::new("/"), self.device, &mut |path, meta| {
            if self.files.get(path) == Some(&mark(meta)) {
                return Ok(());
            }
            let copy = to.join(path.strip_prefix("/").unwrap_or(path));
            if let Some(parent) = copy.parent() {
                fs::create_dir_all(parent)?;
            }
            if meta.is_symlink() {
                return symlink(fs::read_link(path)?, &copy);
            }
            let mut file = fs::File::open(path)?;
            let (digest, size) = digest_of(&mut file)?;
            fs::copy(path, &copy)?;
            left.push(Left {
                path: path.as_os_str().as_bytes().to_vec(),
                digest: digest.0,
                size,
            });
            Ok(())
        })?;
        left.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(left)
    }
}

/// Size, times and inode: what a change of content changes.
fn mark(meta: &fs::Metadata) -> (u64, i64, i64, u64) {
    (meta.len(), meta.mtime(), meta.mtime_nsec(), meta.ino())
}

/// Every file and link of one file system below a directory. What cannot be entered is passed by: its owner cannot either.
fn walk(dir: &Path, device: u64, each: &mut dyn FnMut(&Path, &fs::Metadata) -> io::Result<()>) -> Result<()> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Ok(());
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path == Path::new(OWN) {
            continue;
        }
        let Ok(meta) = fs::symlink_metadata(&path) else {
            continue;
        };
        if meta.dev() != device {
            continue;
        }
        if meta.is_dir() {
            walk(&path, device, each)?;
        } else if meta.is_file() || meta.is_symlink() {
            each(&path, &meta).map_err(Error::io("take what was left at", &path))?;
        }
    }
    Ok(())
}
