//! The files of a log that is imported: their sizes, times and digests.

use crate::Error;
use backstory_eventlog::run::{ImportedFile, ImportedLog};
use backstory_files::regular;
use rustix::fs::{AtFlags, StatxFlags, statx};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// A file of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    /// The file that is read.
    pub path: PathBuf,
    /// The pipe through which the log came. The file is then a copy.
    pub pipe: Option<PathBuf>,
    /// Its size in bytes.
    pub bytes: u64,
    /// The log goes on after these bytes.
    pub is_part: bool,
    /// The BLAKE3 digest of its content.
    pub digest: blake3::Hash,
    /// Its birth on this file system, in ns since 1970, if the file system knows it.
    pub born: Option<i64>,
    /// Its last change, in ns since 1970.
    pub changed: i64,
    /// Its owner's user id.
    pub owner: u32,
}

/// The files of a log, each of which was read once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFiles {
    /// The files, in the order in which the user gave them.
    pub files: Vec<LogFile>,
}

/// Bytes that are read at once.
const PIECE: usize = 1 << 16;

impl LogFiles {
    /// Reads the files once, and passes the number of bytes of each piece to `done`.
    ///
    /// # Errors
    ///
    /// A file is no regular file, or cannot be read.
    pub fn read(paths: &[PathBuf], done: &dyn Fn(u64)) -> Result<LogFiles, Error> {
        let files = paths.iter().map(|path| LogFile::read(path, u64::MAX, done));
        Ok(LogFiles {
            files: files.collect::<Result<_, _>>()?,
        })
    }

    /// Reads the copy of a log that came through a pipe. `part` is how many bytes of it are read
    /// while more come.
    ///
    /// # Errors
    ///
    /// The copy cannot be read.
    pub fn of_pipe(pipe: &Path, copy: &Path, part: Option<u64>) -> Result<LogFiles, Error> {
        let mut file = LogFile::read(copy, part.unwrap_or(u64::MAX), &|_| ())?;
        file.pipe = Some(pipe.to_owned());
        file.is_part = part.is_some();
        Ok(LogFiles { files: vec![file] })
    }

    /// The pipe that a program still has open, if this is only a part of a log.
    pub(crate) fn open_pipe(&self) -> Option<&Path> {
        let file = self.files.iter().find(|file| file.is_part)?;
        file.pipe.as_deref()
    }

    /// The number that the format, the contents of the files and the options have together. Equal
    /// imports have equal numbers.
    pub fn number(&self, format: &str, options: &[u8]) -> blake3::Hash {
        let mut all = blake3::Hasher::new();
        for part in [format.as_bytes(), options] {
            all.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        for file in &self.files {
            all.update(file.digest.as_bytes());
            // The run of a part says that it is one.
            if file.is_part {
                all.update(b"part");
            }
        }
        all.finalize()
    }

    /// The files, as the header of the run names them.
    pub fn imported(&self, format: &str) -> ImportedLog {
        let file = |file: &LogFile| {
            let path = file.origin();
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            ImportedFile {
                path: path.as_os_str().as_bytes().to_vec(),
                digest: file.digest.to_hex().to_string(),
                bytes: file.bytes,
            }
        };
        ImportedLog {
            format: format.to_owned(),
            files: self.files.iter().map(file).collect(),
        }
    }

    /// Checks that no file changed since it was read first.
    ///
    /// # Errors
    ///
    /// One did: a tool may still be writing it.
    pub fn unchanged(&self) -> Result<(), Error> {
        for file in self.files.iter().filter(|file| !file.is_part) {
            let now = std::fs::metadata(&file.path).map_err(Error::read(&file.path))?;
            use std::os::unix::fs::MetadataExt;
            let changed = now.mtime() * 1_000_000_000 + now.mtime_nsec();
            if (now.len(), changed) != (file.bytes, file.changed) {
                return Err(Error::NotOfOneRun {
                    path: file.path.clone(),
                    why: "the file changed while it was read; import it when its tool has ended",
                });
            }
        }
        Ok(())
    }

    /// The directory of the first file, or of the pipe through which it came.
    pub(crate) fn directory(&self) -> PathBuf {
        let first = self.files.first().map(LogFile::origin);
        let first = first.and_then(|path| std::path::absolute(path).ok());
        let parent = first.as_deref().and_then(Path::parent);
        parent.unwrap_or(Path::new("/")).to_owned()
    }

    /// The size of all files together, in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// The last change of any of the files, in ns since 1970.
    pub fn changed(&self) -> i64 {
        let all = self.files.iter().map(|file| file.changed);
        all.max().unwrap_or_default()
    }

    /// The first birth of any of the files, in ns since 1970, if that of all is known.
    pub fn born(&self) -> Option<i64> {
        let all: Option<Vec<i64>> = self.files.iter().map(|file| file.born).collect();
        all?.into_iter().min()
    }
}

impl LogFile {
    /// The path that the user gave.
    fn origin(&self) -> &Path {
        self.pipe.as_deref().unwrap_or(&self.path)
    }

    /// Reads a file once, at most so many bytes of it.
    fn read(path: &Path, most: u64, done: &dyn Fn(u64)) -> Result<LogFile, Error> {
        let file = open(path)?;
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        let stat = statx(&file, "", AtFlags::EMPTY_PATH, wanted)
            .map_err(|error| Error::read(path)(error.into()))?;
        let has_birth = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
        let ns = |seconds: i64, part: u32| seconds * 1_000_000_000 + i64::from(part);
        let mut hasher = blake3::Hasher::new();
        let (mut piece, mut bytes) = (vec![0; PIECE], 0);
        let mut file = file.take(most);
        loop {
            let read = file.read(&mut piece).map_err(Error::read(path))?;
            if read == 0 {
                break;
            }
            hasher.update(&piece[..read]);
            bytes += read as u64;
            done(read as u64);
        }
        Ok(LogFile {
            path: path.to_owned(),
            pipe: None,
            bytes,
            is_part: false,
            digest: hasher.finalize(),
            born: has_birth.then(|| ns(stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec)),
            changed: ns(stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
            owner: stat.stx_uid,
        })
    }
}

/// Opens a file of a log. Only a regular file is opened, so that this never waits.
pub(crate) fn open(path: &Path) -> Result<File, Error> {
    regular::open(path).map_err(|error| {
        let kind = std::fs::metadata(path).map(|meta| meta.file_type()).ok();
        let path = path.to_owned();
        match kind {
            Some(kind) if kind.is_dir() => Error::Directory { path },
            Some(kind) if kind.is_fifo() => Error::Pipe { path },
            // The usual name of standard input.
            None if path == Path::new("-") => Error::Pipe { path },
            _ => Error::Read {
                path,
                source: error,
            },
        }
    })
}
