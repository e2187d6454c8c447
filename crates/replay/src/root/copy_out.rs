//! Copies files out of a replay. Each file is read once, and its digest is computed on the way.
//!
//! Thousands of small files cost mainly system calls. Files are therefore opened relative to their
//! directories, several threads share the work, and known facts are not looked up again.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use backstory_contents::{WorkMeter, digest_through};
use rustix::fs::{CWD, Mode, OFlags, Stat, fchmod, openat};

use super::replayed_file::{ReplayedFile, TAKE};
use crate::{Error, Result};

/// Files of one directory that one thread copies at once.
pub struct CopyBatch {
    from: PathBuf,
    to: PathBuf,
    files: Vec<(OsString, Stat)>,
}

/// The number of files of a batch.
const LOAD: usize = 64;

/// The limit of threads: more would wait for each other at the file system.
const THREADS: usize = 8;

/// The size of the read buffer.
const CHUNK: usize = 128 << 10;

/// Batches of the files that are copied from directory `from` to directory `to`.
pub fn loads(from: &Path, to: &Path, files: &[(OsString, Stat)]) -> Vec<CopyBatch> {
    let load = |files: &[(OsString, Stat)]| CopyBatch {
        from: from.to_owned(),
        to: to.to_owned(),
        files: files.to_vec(),
    };
    files.chunks(LOAD).map(load).collect()
}

/// Copies all batches. `meter` counts their bytes.
pub fn all(loads: &[CopyBatch], meter: &WorkMeter) -> Result<Vec<ReplayedFile>> {
    let files = loads.iter().flat_map(|load| &load.files);
    let sizes = files.map(|(_, stat)| u64::try_from(stat.st_size).unwrap_or_default());
    meter.expect(sizes.sum());
    let next = AtomicUsize::new(0);
    let work = || -> Result<Vec<ReplayedFile>> {
        let (mut left, mut buffer) = (Vec::new(), vec![0; CHUNK]);
        while let Some(load) = loads.get(next.fetch_add(1, Ordering::Relaxed)) {
            load.carry(&mut buffer, &mut left, meter)?;
        }
        Ok(left)
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = processors.min(THREADS).min(loads.len());
    // The caller's umask must not change the modes of the files.
    let mask = rustix::process::umask(Mode::empty());
    let carried = std::thread::scope(|scope| {
        let begin = |_| std::thread::Builder::new().spawn_scoped(scope, work);
        // If a thread cannot start, fewer threads share the work.
        let others: Vec<_> = (1..threads).flat_map(begin).collect();
        let mut carried = vec![work()];
        for thread in others {
            let done = thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            carried.push(done);
        }
        carried
    });
    rustix::process::umask(mask);
    let mut left = Vec::new();
    for part in carried {
        left.append(&mut part?);
    }
    Ok(left)
}

impl CopyBatch {
    fn carry(
        &self,
        buffer: &mut [u8],
        left: &mut Vec<ReplayedFile>,
        meter: &WorkMeter,
    ) -> Result<()> {
        let directory = |path: &Path| {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            openat(CWD, path, flags, Mode::empty()).map_err(Error::build(TAKE, path))
        };
        let (from, to) = (directory(&self.from)?, directory(&self.to)?);
        for (name, stat) in &self.files {
            let path = self.from.join(name);
            let mut copied = |size| meter.add(size);
            let one = one((&from, &to), name, stat.st_mode, buffer, &mut copied)
                .map_err(Error::io(TAKE, &path))?;
            left.push(ReplayedFile {
                path: path.as_os_str().as_bytes().to_vec(),
                ..one
            });
        }
        Ok(())
    }
}

/// Copies a file from a directory to another. The result has no path. `copied` is called with the
/// size of each part.
fn one(
    (from, to): (&OwnedFd, &OwnedFd),
    name: &OsString,
    mode: u32,
    buffer: &mut [u8],
    copied: &mut dyn FnMut(u64),
) -> io::Result<ReplayedFile> {
    // Opening a file that has become a pipe must not block.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut source = File::from(openat(from, name, flags, Mode::empty())?);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let plain = Mode::from_raw_mode(mode & 0o777);
    let mut copy = File::from(openat(to, name, flags, plain)?);
    let (digest, size) = digest_through(&mut source, buffer, &mut |part| {
        copied(part.len() as u64);
        copy.write_all(part)
    })?;
    // Writing to a file clears these bits.
    if mode & 0o7000 != 0 {
        fchmod(&copy, Mode::from_raw_mode(mode & 0o7777))?;
    }
    Ok(ReplayedFile {
        path: Vec::new(),
        digest: digest.0,
        size,
    })
}

#[cfg(test)]
mod tests {
    use rustix::fs::{AtFlags, statat};

    use super::*;

    #[test]
    fn the_meter_expects_and_counts_the_bytes_of_all_files() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut files = Vec::new();
        for (name, size) in [("a", 0), ("b", 5), ("c", CHUNK + 1)] {
            let path = from.path().join(name);
            std::fs::write(&path, vec![b'x'; size]).unwrap();
            let stat = statat(CWD, &path, AtFlags::empty()).unwrap();
            files.push((OsString::from(name), stat));
        }
        let meter = WorkMeter::default();
        let copied = all(&loads(from.path(), to.path(), &files), &meter).unwrap();
        assert_eq!(copied.len(), 3);
        let bytes = (CHUNK + 6) as u64;
        assert_eq!((meter.expected(), meter.done()), (bytes, bytes));
    }
}
