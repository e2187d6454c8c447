//! The logs of threads in an archive: `pids/PID/EPOCH/TID`, each an array of MessagePack.
//!
//! An archive that is cut, or that has a log which cannot be decoded, is read as far as it goes.
//!
//! Invariant: memory is bounded by one operation.

use super::operation::{Operation, OperationList};
use crate::tar::{BLOCK, is_file, is_header, name, padded, size};
use crate::{Error, LogFile};
use flate2::read::MultiGzDecoder;
use serde::de::DeserializeSeed;
use std::cell::Cell;
use std::io::{self, BufReader, Read};

/// The most bytes of an operation. Linux takes 6 MiB of arguments and environment at most.
const LONGEST: u64 = 16 << 20;
/// The deepest nesting of an operation. PROBE has 5 levels.
const DEEPEST: usize = 24;

/// A program of a process: the process, and how many programs it executed before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ExecEpoch {
    pub(super) pid: u32,
    pub(super) number: u32,
}

/// The parts of an archive that could not be read.
#[derive(Debug, Default)]
pub(super) struct ArchiveDamage {
    /// The archive ends early, or its compression is broken.
    pub(super) is_cut: bool,
    /// Logs of threads that cannot be decoded to their ends.
    pub(super) undecoded: usize,
}

/// True if a file begins as an archive with logs of threads.
pub(super) fn is_like(beginning: &[u8]) -> bool {
    let mut source = MultiGzDecoder::new(beginning);
    let mut block = [0; BLOCK];
    // Directories come first. They have no content.
    (0..4).any(|_| {
        source.read_exact(&mut block).is_ok()
            && is_header(&block)
            && name(&block).starts_with(b"pids")
    })
}

/// Passes all operations to `take`, until it returns false.
///
/// # Errors
///
/// The file cannot be opened, or is no archive.
pub(super) fn read_operations(
    file: &LogFile,
    mut take: impl FnMut(ExecEpoch, Operation) -> bool,
) -> Result<ArchiveDamage, Error> {
    let opened = crate::inputs::open(&file.path)?;
    let mut source = BufReader::new(MultiGzDecoder::new(BufReader::new(opened)));
    let mut damage = ArchiveDamage::default();
    let mut is_first = true;
    loop {
        let mut block = [0; BLOCK];
        let read = source.read_exact(&mut block);
        if std::mem::take(&mut is_first) && (read.is_err() || !is_header(&block)) {
            let why = "it is no tar archive that gzip compressed".to_owned();
            return Err(Error::not_of_format(&file.path, super::FORMAT, why));
        }
        if read.is_err() {
            damage.is_cut = true;
            return Ok(damage);
        }
        let Some(size) = size(&block) else {
            // The end is blocks of zeros.
            damage.is_cut |= block.iter().any(|byte| *byte != 0);
            return Ok(damage);
        };
        let mut member = (&mut source).take(padded(size));
        let mut goes_on = true;
        if let Some(epoch) = epoch(name(&block)).filter(|_| is_file(&block)) {
            let decoded = read_thread((&mut member).take(size), |operation| {
                goes_on = take(epoch, operation);
                goes_on
            });
            damage.undecoded += usize::from(goes_on && !decoded);
        }
        if !goes_on {
            return Ok(damage);
        }
        let rest = member.limit();
        if !io::copy(&mut member, &mut io::sink()).is_ok_and(|passed| passed == rest) {
            damage.is_cut = true;
            return Ok(damage);
        }
    }
}

/// The process and the program that a log is of.
fn epoch(name: &[u8]) -> Option<ExecEpoch> {
    let name = std::str::from_utf8(name).ok()?;
    let mut words = name.strip_prefix("pids/")?.split('/');
    let mut number = || words.next()?.parse().ok();
    let (pid, epoch, _thread): (_, _, u32) = (number()?, number()?, number()?);
    let number = epoch;
    words.next().is_none().then_some(ExecEpoch { pid, number })
}

/// Reads the log of a thread. False if it cannot be decoded to its end.
fn read_thread(source: impl Read, mut take: impl FnMut(Operation) -> bool) -> bool {
    let left = Cell::new(LONGEST);
    let limited = OperationBytes {
        source,
        left: &left,
    };
    let mut decoder = rmp_serde::Deserializer::new(limited);
    decoder.set_max_depth(DEEPEST);
    let list = OperationList(|operation| {
        left.set(LONGEST);
        take(operation)
    });
    list.deserialize(&mut decoder).is_ok()
}

/// Fails after the bytes of the longest operation.
struct OperationBytes<'a, R> {
    source: R,
    left: &'a Cell<u64>,
}

impl<R: Read> Read for OperationBytes<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left.get() == 0 {
            return Err(io::Error::other("an operation is too long"));
        }
        let most = usize::try_from(self.left.get()).unwrap_or(usize::MAX);
        let most = most.min(buffer.len());
        let read = self.source.read(&mut buffer[..most])?;
        self.left.set(self.left.get() - read as u64);
        Ok(read)
    }
}
