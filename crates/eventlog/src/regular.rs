//! Opening files in whose place somebody else may have put something else.
//!
//! On a pipe a plain open waits for its other end, a device may have bytes without end. Whatever a run names, and whatever lies in a
//! store, is opened here or with the same care.

use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a regular file for reading, and waits for nothing.
///
/// # Errors
/// Those of opening, a lease that somebody holds included; `InvalidInput` for what is no regular file.
pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
    open_with(OpenOptions::new().read(true), path)
}

/// As [`open`], in another way. Flags of the caller's own in `options` are replaced.
pub fn open_with(options: &mut OpenOptions, path: impl AsRef<Path>) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = options
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is no regular file",
        )),
    }
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
    fn a_pipe_or_a_device_in_a_files_place_holds_nobody_up() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
        for place in [&pipe, Path::new("/dev/zero"), dir.path()] {
            assert_eq!(open(place).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
        assert!(open_with(OpenOptions::new().append(true).create(true), &pipe).is_err());
        let file = dir.path().join("file");
        std::fs::write(&file, "held").unwrap();
        assert_eq!(read(&file).unwrap(), b"held");
    }
}
