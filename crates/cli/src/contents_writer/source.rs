//! A file that should still be a certain version. The file is opened once, and its status is read
//! before and after its content.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_contents as contents;
use backstory_eventlog::event::PreserveMethod;
use backstory_files::{Ident, NearDirectories};
use backstory_store::same_version;
use rustix::fd::BorrowedFd;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use super::allowance::Denial;
use super::wanted::Preserved;
use super::{LARGE, differs};

/// A clock tick of file systems. A status change this shortly after the end of a run was made
/// before the end.
const TICK: i64 = 10_000_000;

/// Why the content of a file is not the version, or could not be stored.
#[derive(Debug)]
pub enum Changed {
    /// The file changed while it was read.
    Meanwhile,
    /// The file could not be read.
    Unreadable(io::Error),
    /// The content takes more than half of the free space.
    NoRoom,
    /// The content could not be stored.
    Failed(contents::Error),
    /// A limit forbids it.
    Denied(Denial),
}

impl From<Denial> for Changed {
    fn from(denial: Denial) -> Changed {
        Changed::Denied(denial)
    }
}

/// An open file, and its identity when it was opened.
pub struct Source {
    file: File,
    before: Ident,
    /// The path's last name is a symbolic link.
    is_behind_link: bool,
}

/// Opens the file at `path` if it still is this version, of a run that ended at `ended`. The error
/// says why not.
pub fn open(
    near: &mut NearDirectories,
    path: &Path,
    wanted: &Ident,
    ended: i64,
) -> Result<Source, String> {
    let is_wanted = |now: &Ident| {
        // The log of the run has the links and modes that changed within the run, as it has changes
        // of the content.
        let explained = now.ctime == wanted.ctime || now.ctime <= ended + TICK;
        same_version(now, wanted) && explained
    };
    let source = open_any(near, path, is_wanted).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            "it was removed or replaced after the run, before its content could be taken".to_owned()
        }
        _ => format!("it cannot be opened: {error}"),
    })?;
    match is_wanted(&source.before) {
        true => Ok(source),
        false => Err(differs(&source.before, wanted).to_owned()),
    }
}

/// Opens the preserved file of a version.
pub fn open_preserved(path: &Path, kept: &Preserved) -> Result<Source, String> {
    let source = open_any(&mut NearDirectories::default(), path, |_| true)
        .map_err(|error| format!("its preserved copy cannot be opened: {error}"))?;
    let now = &source.before;
    let same = match kept.how {
        Some(PreserveMethod::Link | PreserveMethod::OwnLink) => same_version(now, &kept.ident),
        _ => now.size == kept.ident.size,
    };
    match same {
        true => Ok(source),
        false => Err("it was changed in place after a link to it had been preserved".to_owned()),
    }
}

/// Opens the file at a path. The directory that it led to before is looked at first.
fn open_any(
    near: &mut NearDirectories,
    path: &Path,
    is_wanted: impl Fn(&Ident) -> bool,
) -> io::Result<Source> {
    let path = path.as_os_str().as_bytes();
    let (directory, name) = near.locate(path);
    let found = open_at(directory, name);
    match &found {
        Ok(source) if is_wanted(&source.before) => found,
        // The path may lead to another directory by now, which has the file.
        _ if name.len() < path.len() => open_at(CWD, path).or(found),
        _ => found,
    }
}

fn open_at(directory: BorrowedFd<'_>, name: &[u8]) -> io::Result<Source> {
    // A pipe may lie at the path now. The open must not wait for its other end.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    // Where the kernel allows it, the access time does not change.
    let open = |flags| {
        let open = |flags| rustix::fs::openat(directory, name, flags, Mode::empty());
        open(flags | OFlags::NOATIME).or_else(|error| match error {
            Errno::NOENT | Errno::LOOP => Err(error),
            _ => open(flags),
        })
    };
    let (opened, is_behind_link) = match open(flags | OFlags::NOFOLLOW) {
        Err(Errno::LOOP) => (open(flags)?, true),
        opened => (opened?, false),
    };
    let file = File::from(opened);
    let before = look(&file)?;
    match FileType::from_raw_mode(before.mode) {
        FileType::RegularFile => Ok(Source {
            file,
            before,
            is_behind_link,
        }),
        _ => Err(io::Error::new(
            io::ErrorKind::NotFound,
            "it is not a regular file now",
        )),
    }
}

fn look(file: &File) -> io::Result<Ident> {
    let mask = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let found = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, mask)?;
    Ok(Ident::from(&found))
}

impl Source {
    /// Checks that the file has not changed since it was opened.
    pub fn check(&self) -> Result<(), Changed> {
        let after = look(&self.file).map_err(Changed::Unreadable)?;
        let (a, b) = (&self.before, &after);
        match (a.size, a.mtime) == (b.size, b.mtime) {
            true => Ok(()),
            false => Err(Changed::Meanwhile),
        }
    }

    /// True if the last name of its path is a symbolic link.
    pub fn is_behind_link(&self) -> bool {
        self.is_behind_link
    }

    /// Reads a file of few bytes into `buffer` and checks that it has not changed meanwhile. `None`
    /// if the file is not small, or has another size than it says, as those of some file systems.
    /// The source then is at its beginning.
    pub fn read_small<'b>(&mut self, buffer: &'b mut Vec<u8>) -> Result<Option<&'b [u8]>, Changed> {
        let size = self.size() as usize;
        if size == 0 || size as u64 >= LARGE {
            return Ok(None);
        }
        if buffer.len() <= size {
            buffer.resize(size + 1, 0);
        }
        // Room for a further byte shows the end of the file without another call.
        let read = match self.file.read(&mut buffer[..=size]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            read => read.map_err(Changed::Unreadable)?,
        };
        if read != size {
            self.rewind().map_err(Changed::Unreadable)?;
            return Ok(None);
        }
        self.check()?;
        Ok(Some(&buffer[..size]))
    }

    /// Bytes of the file when it was opened.
    pub fn size(&self) -> u64 {
        self.before.size.max(0) as u64
    }

    /// Seeks to the beginning.
    pub fn rewind(&mut self) -> io::Result<()> {
        self.file.rewind()
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;

    #[test]
    fn a_file_is_found_in_the_directory_that_replaced_the_one_that_was_opened() {
        let tmp = tempfile::tempdir().unwrap();
        let (directory, former) = (tmp.path().join("d"), tmp.path().join("former"));
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("x"), "x").unwrap();
        fs::write(directory.join("y"), "y").unwrap();
        let mut near = NearDirectories::default();
        for _ in 0..2 {
            open_any(&mut near, &directory.join("x"), |_| true).unwrap();
        }
        fs::rename(&directory, &former).unwrap();
        fs::create_dir(&directory).unwrap();
        fs::rename(former.join("y"), directory.join("y")).unwrap();
        let mut found = open_any(&mut near, &directory.join("y"), |_| true).unwrap();
        assert_eq!(found.read_small(&mut Vec::new()).unwrap().unwrap(), b"y");
        // The former directory has another file of this name.
        fs::write(former.join("y"), "other").unwrap();
        let wanted = found.before;
        let mut found = open(&mut near, &directory.join("y"), &wanted, i64::MAX - TICK).unwrap();
        assert_eq!(found.read_small(&mut Vec::new()).unwrap().unwrap(), b"y");
    }

    #[test]
    fn a_small_file_is_read_at_once_only_if_it_has_the_size_that_it_says() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("file");
        let (mut near, mut buffer) = (NearDirectories::default(), vec![b'?'; 9]);
        for (then, read) in [
            ("four", Some(&b"four"[..])),
            ("fo", None),
            ("four five", None),
        ] {
            fs::write(&path, "four").unwrap();
            let mut source = open_any(&mut near, &path, |_| true).unwrap();
            let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
            file.write_all(then.as_bytes()).unwrap();
            file.set_len(then.len() as u64).unwrap();
            // A write with the same bytes would change the time.
            source.before = look(&source.file).unwrap();
            source.before.size = 4;
            assert_eq!(source.read_small(&mut buffer).unwrap(), read);
            if read.is_none() {
                let mut all = String::new();
                source.read_to_string(&mut all).unwrap();
                assert_eq!(all, then);
                assert!(matches!(source.check(), Err(Changed::Meanwhile)));
            }
        }
    }
}
