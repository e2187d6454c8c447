//! The list of the outputs that are aside, and each output in it.

use std::collections::HashMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use backstory_files::regular;
use backstory_workflow::paths::to_path;
use rustix::fs::{AtFlags, CWD, linkat};

use crate::rerun::faithful_copy::{self, has_more_than_bytes};
use crate::rerun::inode_state::InodeState;
use crate::rerun::overwritten_files;
use crate::rerun::restored_files;

/// The file with the list: fields of all entries, each ended by a NUL.
const MANIFEST: &str = "manifest";

/// The number of fields of an entry.
const FIELDS: usize = 4;

/// The former state of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Former {
    /// There was no file.
    Absent,
    /// A regular file, whose copy has this number.
    Regular { number: usize, state: InodeState },
    /// A symbolic link with this text.
    Link(Vec<u8>),
    /// A directory or a device, which is left alone.
    Other,
}

/// An output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    path: Vec<u8>,
    former: Former,
}

/// The inodes of the former files, as far as a restoration knows them.
#[derive(Debug, Default)]
pub struct FormerInodes {
    /// Files with several hard links, by the number of the entry. They are open, so that a file can
    /// get its name back as long as another name of it exists.
    pub open: HashMap<usize, File>,
    /// Where files are that were restored as new files: device, inode, and the path.
    anew: HashMap<(u64, u64), PathBuf>,
}

impl Entry {
    /// Puts the file at `path` aside.
    pub fn take(
        directory: &Path,
        number: usize,
        path: &[u8],
        inodes: &mut FormerInodes,
    ) -> io::Result<Entry> {
        let at = to_path(path);
        let former = match at.symlink_metadata() {
            Err(error) if is_absence(&error) => Former::Absent,
            Err(error) => return Err(error),
            Ok(found) if found.is_symlink() => {
                Former::Link(fs::read_link(at)?.into_os_string().into_vec())
            }
            Ok(found) if found.is_file() => {
                let mut file = regular::open(at)?;
                faithful_copy::copy(&mut file, &mut new_file(&copy_path(directory, number))?)?;
                if found.nlink() > 1 {
                    inodes.open.insert(number, file);
                }
                let state = InodeState::of(&found);
                Former::Regular { number, state }
            }
            Ok(_) => Former::Other,
        };
        Ok(Entry {
            path: path.to_vec(),
            former,
        })
    }

    /// Its path.
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// Its path for a message.
    pub fn shown(&self) -> String {
        self.at().display().to_string()
    }

    fn at(&self) -> &Path {
        to_path(&self.path)
    }

    /// Restores the former state. True if the file was different.
    pub fn restore(&self, directory: &Path, inodes: &mut FormerInodes) -> io::Result<bool> {
        let now = match self.at().symlink_metadata() {
            Err(error) if is_absence(&error) => None,
            found => Some(found?),
        };
        match (&self.former, now) {
            (Former::Other, _) | (Former::Absent, None) => Ok(false),
            (Former::Absent, Some(now)) => match now.is_dir() {
                true => Ok(false),
                false => fs::remove_file(self.at()).map(|()| true),
            },
            (Former::Link(text), now) => self.restore_link(text, now.as_ref()),
            (Former::Regular { number, state }, now) => {
                let copy = copy_path(directory, *number);
                let is_different =
                    self.restore_file(*number, &copy, state, now.as_ref(), inodes)?;
                if is_different {
                    restored_files::note(directory, &self.path);
                }
                Ok(is_different)
            }
        }
    }

    fn restore_link(&self, text: &[u8], now: Option<&Metadata>) -> io::Result<bool> {
        let target = to_path(text);
        if now.is_some_and(Metadata::is_symlink) && fs::read_link(self.at())? == target {
            return Ok(false);
        }
        let new = beside(self.at());
        std::os::unix::fs::symlink(target, &new)?;
        fs::rename(new, self.at()).map(|()| true)
    }

    fn restore_file(
        &self,
        number: usize,
        copy: &Path,
        former: &InodeState,
        now: Option<&Metadata>,
        inodes: &mut FormerInodes,
    ) -> io::Result<bool> {
        let now = now.filter(|now| now.is_file()).map(InodeState::of);
        if now.as_ref() == Some(former) {
            return Ok(false);
        }
        let mut from = File::open(copy)?;
        let is_former = now.is_some_and(|now| now.is_same_inode(former));
        if is_former || self.relink(inodes.open.get(&number)) {
            // The step may have written into the file. With its inode and times it stays the
            // version that was recorded.
            let written = OpenOptions::new().write(true).open(self.at());
            if let Ok(mut file) = written {
                return faithful_copy::copy(&mut from, &mut file).map(|()| true);
            }
        }
        if let Some(parent) = self.at().parent() {
            fs::create_dir_all(parent)?;
        }
        let new = beside(self.at());
        let linked = inodes.anew.get(&former.inode());
        if linked.is_none_or(|linked| fs::hard_link(linked, &new).is_err()) {
            let to = &mut new_file(&new)?;
            faithful_copy::copy(&mut from, to)?;
            inodes.anew.insert(former.inode(), self.at().to_owned());
        }
        fs::rename(new, self.at()).map(|()| true)
    }

    /// Gives an open file its name back. False if it has no other name any more.
    fn relink(&self, former: Option<&File>) -> bool {
        let Some(former) = former else {
            return false;
        };
        let open = format!("/proc/self/fd/{}", former.as_raw_fd());
        let new = beside(self.at());
        linkat(CWD, open, CWD, &new, AtFlags::SYMLINK_FOLLOW).is_ok()
            && fs::rename(&new, self.at()).is_ok()
    }

    /// Keeps the former file for `undo` below `root`, if the step changed the file. `is_stored`:
    /// true if the bytes of a file are available elsewhere.
    pub fn archive(
        &self,
        directory: &Path,
        root: &Path,
        is_stored: &dyn Fn(&Path) -> bool,
    ) -> io::Result<()> {
        let Former::Regular { number, state } = &self.former else {
            return Ok(());
        };
        let now = self.at().symlink_metadata().ok();
        let now = now
            .filter(Metadata::is_file)
            .map(|now| InodeState::of(&now));
        if now.as_ref() == Some(state) {
            return Ok(());
        }
        let copy = copy_path(directory, *number);
        let links = state.links > 1;
        if !links && !has_more_than_bytes(&File::open(&copy)?)? && is_stored(&copy) {
            return Ok(());
        }
        let inode = links.then(|| state.inode());
        fs::rename(copy, overwritten_files::place_for(root, &self.path, inode)?)
    }

    fn fields(&self) -> [Vec<u8>; FIELDS] {
        let text = |text: &str| text.as_bytes().to_vec();
        let (kind, number, detail) = match &self.former {
            Former::Absent => ("absent", 0, Vec::new()),
            Former::Regular { number, state } => ("file", *number, state.text()),
            Former::Link(target) => ("link", 0, target.clone()),
            Former::Other => ("other", 0, Vec::new()),
        };
        [
            text(kind),
            text(&number.to_string()),
            detail,
            self.path.clone(),
        ]
    }

    fn parse(fields: &[&[u8]]) -> Option<Entry> {
        let [kind, number, detail, path] = fields else {
            return None;
        };
        let former = match *kind {
            b"absent" => Former::Absent,
            b"link" => Former::Link(detail.to_vec()),
            b"other" => Former::Other,
            b"file" => Former::Regular {
                number: std::str::from_utf8(number).ok()?.parse().ok()?,
                state: InodeState::parse(detail)?,
            },
            _ => return None,
        };
        Some(Entry {
            path: path.to_vec(),
            former,
        })
    }
}

/// Writes the list. Until then nothing is restored.
pub fn write(directory: &Path, entries: &[Entry]) -> io::Result<()> {
    let mut text = Vec::new();
    for field in entries.iter().flat_map(Entry::fields) {
        text.extend_from_slice(&field);
        text.push(0);
    }
    super::write_whole(&directory.join(MANIFEST), &text)
}

/// Reads the list. It is empty if it was never written.
pub fn read(directory: &Path) -> io::Result<Vec<Entry>> {
    let text = match fs::read(directory.join(MANIFEST)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let fields: Vec<&[u8]> = text
        .strip_suffix(&[0])
        .map_or_else(Vec::new, |text| text.split(|byte| *byte == 0).collect());
    fields
        .chunks(FIELDS)
        .map(|fields| {
            Entry::parse(fields).ok_or_else(|| io::Error::other("its manifest is damaged"))
        })
        .collect()
}

fn copy_path(directory: &Path, number: usize) -> PathBuf {
    directory.join(format!("{number}.copy"))
}

/// A new file that no other user may read until it has its mode.
fn new_file(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    options.mode(0o600).open(path)
}

/// A name for a new file in the same directory.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".backstory-restored");
    path.with_file_name(name)
}

fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
