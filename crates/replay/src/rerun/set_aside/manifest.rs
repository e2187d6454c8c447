//! The list of the outputs that are aside, and each output in it.

use std::fs::{self, File, FileTimes, Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use backstory_workflow::paths::to_path;

use crate::rerun::inode_state::InodeState;

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

impl Entry {
    /// Puts the file at `path` aside.
    pub fn take(directory: &Path, number: usize, path: &[u8]) -> io::Result<Entry> {
        let at = to_path(path);
        let former = match at.symlink_metadata() {
            Err(error) if is_absence(&error) => Former::Absent,
            Err(error) => return Err(error),
            Ok(found) if found.is_symlink() => {
                Former::Link(fs::read_link(at)?.into_os_string().into_vec())
            }
            Ok(found) if found.is_file() => {
                let copy = copy_path(directory, number);
                fs::copy(at, &copy)?;
                set_times(&OpenOptions::new().read(true).open(&copy)?, &found)?;
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
    pub fn restore(&self, directory: &Path) -> io::Result<bool> {
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
                self.restore_file(&copy_path(directory, *number), state, now.as_ref())
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
        copy: &Path,
        former: &InodeState,
        now: Option<&Metadata>,
    ) -> io::Result<bool> {
        let now = now.filter(|now| now.is_file()).map(InodeState::of);
        if now.as_ref() == Some(former) {
            return Ok(false);
        }
        let found = copy.metadata()?;
        if now.is_some_and(|now| now.is_same_inode(former)) {
            // The step may have written into the file. With its inode and times it stays the
            // version that was recorded.
            let written = OpenOptions::new()
                .write(true)
                .truncate(true)
                .open(self.at());
            if let Ok(mut file) = written {
                io::copy(&mut File::open(copy)?, &mut file)?;
                file.set_permissions(found.permissions())?;
                return set_times(&file, &found).map(|()| true);
            }
        }
        if let Some(parent) = self.at().parent() {
            fs::create_dir_all(parent)?;
        }
        let new = beside(self.at());
        fs::copy(copy, &new)?;
        set_times(&File::open(&new)?, &found)?;
        fs::rename(new, self.at()).map(|()| true)
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

fn set_times(file: &File, like: &Metadata) -> io::Result<()> {
    let times = FileTimes::new()
        .set_accessed(like.accessed()?)
        .set_modified(like.modified()?);
    file.set_times(times)
}
