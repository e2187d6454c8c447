//! Opens regular files at paths where another program may have put a pipe or a device.
//!
//! A plain open of a pipe waits for its other end, and a device may yield bytes without end. Every
//! file that a run names, and every file of a store, is opened by these functions or with the same
//! flags.

use rustix::fs::OFlags;
use rustix::thread::gettid;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a regular file for reading without blocking.
///
/// # Errors
/// Those of `open(2)`, `EWOULDBLOCK` for a lease that another process holds included.
/// `InvalidInput` if the path leads to something else than a regular file.
pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
    open_with(OpenOptions::new().read(true), path)
}

/// Opens a regular file as `options` say. Custom flags in `options` are replaced.
///
/// # Errors
/// As [`open`].
pub fn open_with(options: &mut OpenOptions, path: impl AsRef<Path>) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = options
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        )),
    }
}

/// Opens a regular file for writing, and leaves its content. If it is missing, an empty file is
/// made that only its owner can read. It serves as a lock, or as a mark.
///
/// # Errors
/// As [`open`], and those of creating.
pub fn open_private(path: impl AsRef<Path>) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600);
    open_with(&mut options, path)
}

/// Replaces a file by one that only its owner can read. It is written beside and renamed, so no
/// process ever reads half of it. The name beside has the number of the calling thread, so threads
/// that replace one file at once do not disturb each other. Returns the error of `write`, which
/// writes the content, or of another step. Then the former file stays.
///
/// # Errors
/// Those of creating, of `write` and of renaming.
pub fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", gettid().as_raw_nonzero()));
    let _ = fs::remove_file(&beside);
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)?;
    let written = write(&mut file).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

/// All bytes of a regular file.
///
/// # Errors
/// As [`open`], and those of reading.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    #[test]
    fn a_pipe_or_a_device_at_a_files_path_is_refused_without_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
        for path in [&pipe, Path::new("/dev/zero"), dir.path()] {
            assert_eq!(open(path).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
        assert!(open_with(OpenOptions::new().append(true).create(true), &pipe).is_err());
        let file = dir.path().join("file");
        std::fs::write(&file, "held").unwrap();
        assert_eq!(read(&file).unwrap(), b"held");
    }

    #[test]
    fn a_file_whose_replacement_fails_stays_and_nothing_is_left_beside() {
        use std::io::Write;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        replace(&path, |file| file.write_all(b"first")).unwrap();
        let failed = replace(&path, |file| {
            file.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_two_threads_replace_at_once_has_the_whole_content_of_the_last() {
        use std::io::Write;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let other = || replace(&path, |file| file.write_all(b"other"));
        replace(&path, |file| {
            file.write_all(b"the ")?;
            std::thread::scope(|scope| scope.spawn(other).join().unwrap())?;
            assert_eq!(read(&path)?, b"other");
            file.write_all(b"last")
        })
        .unwrap();
        assert_eq!(read(&path).unwrap(), b"the last");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
