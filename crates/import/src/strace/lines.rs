//! The lines of a log in the order of time: of one file, or of the files of `strace -ff`, each of
//! which has one thread.
//!
//! Invariant: memory is bounded by the longest line that is taken, and by one line for each open
//! file. A longer line is passed over.

use super::line::{Stamp, prefix};
use crate::{Error, LogFiles};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The longest line that is taken, in bytes. strace prints one of this length only if
/// its options print all data.
const LONGEST: u64 = 16 << 20;

/// A line and its position.
#[derive(Debug, Default)]
pub(super) struct LogLine {
    /// Its bytes, without the newline.
    pub(super) bytes: Vec<u8>,
    /// Its number in the file, from 1.
    pub(super) number: u64,
    /// The index of its file.
    pub(super) file: usize,
    /// The thread of the file, if its name tells it.
    pub(super) tid: Option<u32>,
    /// It was longer than [`LONGEST`], and only its beginning is there.
    pub(super) is_cut: bool,
    /// No newline ends it: the file may have been cut.
    pub(super) is_last: bool,
}

/// A file that is read line by line.
struct OpenFile {
    index: usize,
    path: PathBuf,
    tid: Option<u32>,
    reader: BufReader<File>,
    number: u64,
}

impl OpenFile {
    fn open(files: &LogFiles, index: usize) -> Result<OpenFile, Error> {
        let path = &files.files[index].path;
        Ok(OpenFile {
            index,
            path: path.clone(),
            tid: thread_of(path),
            reader: BufReader::with_capacity(1 << 16, crate::inputs::open(path)?),
            number: 0,
        })
    }

    /// Reads the next line into `line`. Returns the number of bytes, 0 at the end.
    fn next(&mut self, line: &mut LogLine) -> Result<u64, Error> {
        line.bytes.clear();
        let fail = |source| Error::Read {
            path: self.path.clone(),
            source,
        };
        let mut limited = (&mut self.reader).take(LONGEST);
        let mut read = limited.read_until(b'\n', &mut line.bytes).map_err(fail)? as u64;
        if read == 0 {
            return Ok(0);
        }
        self.number += 1;
        line.is_last = line.bytes.last() != Some(&b'\n');
        line.is_cut = line.is_last && read == LONGEST;
        if line.is_cut {
            read += self.skip_line()?;
        }
        if !line.is_last {
            line.bytes.pop();
        }
        line.is_last &= !line.is_cut;
        (line.number, line.file, line.tid) = (self.number, self.index, self.tid);
        Ok(read)
    }

    /// Passes over the rest of a line.
    fn skip_line(&mut self) -> Result<u64, Error> {
        let mut skipped = 0;
        loop {
            let piece = self.reader.fill_buf().map_err(Error::read(&self.path))?;
            let end = memchr::memchr(b'\n', piece);
            let taken = end.map_or(piece.len(), |end| end + 1);
            let over = taken == 0 || end.is_some();
            self.reader.consume(taken);
            skipped += taken as u64;
            if over {
                return Ok(skipped);
            }
        }
    }
}

/// The thread of a file of `strace -ff`: `NAME.1234`.
pub(super) fn thread_of(path: &Path) -> Option<u32> {
    let digits = path.extension()?.to_str()?;
    digits.parse().ok().filter(|tid| *tid > 0)
}

/// The order of several files.
enum FileOrder {
    /// One file.
    Single(OpenFile),
    /// By the times of their lines. Each waits with its next line.
    ByTime(
        BinaryHeap<Reverse<(i64, usize)>>,
        Vec<Option<(OpenFile, LogLine)>>,
    ),
    /// Without times: a file begins where its thread was made, and comes before the rest of its
    /// maker's file.
    ByBirth(Vec<OpenFile>, BTreeMap<u32, usize>),
}

/// Reads lines.
pub(super) struct LineSource<'a> {
    files: &'a LogFiles,
    order: FileOrder,
}

impl<'a> LineSource<'a> {
    /// The lines of these files.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or several files are not those of `strace -ff`.
    pub(super) fn open(files: &'a LogFiles) -> Result<LineSource<'a>, Error> {
        if files.files.len() == 1 {
            let order = FileOrder::Single(OpenFile::open(files, 0)?);
            return Ok(LineSource { files, order });
        }
        let mut threads = BTreeMap::new();
        for (index, file) in files.files.iter().enumerate() {
            let unique = thread_of(&file.path).map(|tid| threads.insert(tid, index));
            if unique != Some(None) {
                return Err(Error::NotOfOneRun {
                    path: file.path.clone(),
                    why: "several files are one run only if `strace -ff` wrote them, \
                          each with its own process id as the end of its name",
                });
            }
        }
        let order = match by_time(files)? {
            Some(order) => order,
            None => FileOrder::ByBirth(Vec::new(), threads),
        };
        Ok(LineSource { files, order })
    }

    /// True if nothing tells the order of operations of different threads.
    pub(super) fn is_without_order(&self) -> bool {
        matches!(self.order, FileOrder::ByBirth(..))
    }

    /// A thread was made: without times, its lines come next.
    pub(super) fn made(&mut self, tid: u32) -> Result<(), Error> {
        if let FileOrder::ByBirth(open, waiting) = &mut self.order
            && let Some(index) = waiting.remove(&tid)
        {
            open.push(OpenFile::open(self.files, index)?);
        }
        Ok(())
    }

    /// Reads the next line into `line`. Returns the number of bytes, 0 at the end.
    pub(super) fn next(&mut self, line: &mut LogLine) -> Result<u64, Error> {
        match &mut self.order {
            FileOrder::Single(file) => file.next(line),
            FileOrder::ByTime(heap, waiting) => {
                let Some(Reverse((_, index))) = heap.pop() else {
                    return Ok(0);
                };
                next_by_time(self.files, heap, &mut waiting[index], index, line)
            }
            FileOrder::ByBirth(open, waiting) => loop {
                let Some(file) = open.last_mut() else {
                    let Some((_, index)) = waiting.pop_first() else {
                        return Ok(0);
                    };
                    open.push(OpenFile::open(self.files, index)?);
                    continue;
                };
                match file.next(line)? {
                    0 => drop(open.pop()),
                    read => return Ok(read),
                }
            },
        }
    }
}

/// The time of a line, if it can be compared with those of other files.
fn comparable(line: &LogLine) -> Option<i64> {
    match prefix(&line.bytes).stamp? {
        Stamp::Epoch(time) | Stamp::Day(time) => Some(time),
        Stamp::Since(_) => None,
    }
}

/// The files in the order of their first lines. A file is opened when its turn comes, because there
/// may be more files than descriptors.
fn by_time(files: &LogFiles) -> Result<Option<FileOrder>, Error> {
    let mut heap = BinaryHeap::new();
    for index in 0..files.files.len() {
        let mut line = LogLine::default();
        if OpenFile::open(files, index)?.next(&mut line)? == 0 {
            continue;
        }
        match comparable(&line) {
            Some(time) => heap.push(Reverse((time, index))),
            None => return Ok(None),
        }
    }
    let waiting = files.files.iter().map(|_| None).collect();
    Ok(Some(FileOrder::ByTime(heap, waiting)))
}

/// Takes the waiting line of the file whose turn it is, and reads the file's next one.
fn next_by_time(
    files: &LogFiles,
    heap: &mut BinaryHeap<Reverse<(i64, usize)>>,
    waiting: &mut Option<(OpenFile, LogLine)>,
    index: usize,
    line: &mut LogLine,
) -> Result<u64, Error> {
    let (mut file, mut next) = match waiting.take() {
        Some(open) => open,
        None => {
            let mut file = OpenFile::open(files, index)?;
            let mut first = LogLine::default();
            file.next(&mut first)?;
            (file, first)
        }
    };
    std::mem::swap(line, &mut next);
    let before = comparable(line).unwrap_or_default();
    if file.next(&mut next)? > 0 {
        // A line without a time is the rest of the one before.
        let time = comparable(&next).unwrap_or(before);
        heap.push(Reverse((time, index)));
        *waiting = Some((file, next));
    }
    Ok(line.bytes.len() as u64 + 1)
}
