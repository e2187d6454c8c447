//! The lines of a log in the order of time: of one file, or of the files of `strace -ff`, each of
//! which has one thread.
//!
//! Invariant: memory is bounded by one line for each open file.

use super::CallLines;
use super::line::{Stamp, prefix};
use crate::lines::{LineFile, LogLine, thread_of};
use crate::{Error, LogFiles};
use backstory_eventlog::Reason;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// The order of several files.
enum FileOrder {
    /// One file.
    Single(LineFile),
    /// By the times of their lines. Each waits with its next line.
    ByTime(
        BinaryHeap<Reverse<(i64, usize)>>,
        Vec<Option<(LineFile, LogLine)>>,
    ),
    /// Without times: a file begins where its thread was made, and comes before the rest of its
    /// maker's file.
    ByBirth(Vec<LineFile>, BTreeMap<u32, usize>),
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
            let order = FileOrder::Single(LineFile::open(files, 0)?);
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
}

impl CallLines for LineSource<'_> {
    /// Without times, nothing tells the order of operations of different threads.
    fn gaps(&self) -> Vec<Reason> {
        match self.order {
            FileOrder::ByBirth(..) => vec![super::gaps::without_order()],
            _ => Vec::new(),
        }
    }

    /// Without times, the lines of a new thread come next.
    fn made(&mut self, tid: u32) -> Result<(), Error> {
        if let FileOrder::ByBirth(open, waiting) = &mut self.order
            && let Some(index) = waiting.remove(&tid)
        {
            open.push(LineFile::open(self.files, index)?);
        }
        Ok(())
    }

    fn next(&mut self, line: &mut LogLine) -> Result<u64, Error> {
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
                    open.push(LineFile::open(self.files, index)?);
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
        if LineFile::open(files, index)?.next(&mut line)? == 0 {
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
    waiting: &mut Option<(LineFile, LogLine)>,
    index: usize,
    line: &mut LogLine,
) -> Result<u64, Error> {
    let (mut file, mut next) = match waiting.take() {
        Some(open) => open,
        None => {
            let mut file = LineFile::open(files, index)?;
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
