//! The lines of a file.
//!
//! Invariant: memory is bounded by the longest line that is taken. A longer line is passed over.

use crate::{Error, LogFiles};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Take};
use std::path::{Path, PathBuf};

/// The longest line that is taken, in bytes. strace prints one of this length only if its options
/// print all data. No other tool prints such a line.
const LONGEST: u64 = 16 << 20;

/// A line and its position.
#[derive(Debug, Default)]
pub(crate) struct LogLine {
    /// Its bytes, without the newline and a carriage return before it.
    pub(crate) bytes: Vec<u8>,
    /// Its number in the file, from 1.
    pub(crate) number: u64,
    /// The index of its file.
    pub(crate) file: usize,
    /// The thread of the file, if its name tells it.
    pub(crate) tid: Option<u32>,
    /// It was longer than [`LONGEST`], and only its beginning is there.
    pub(crate) is_cut: bool,
    /// No newline ends it: the file may have been cut.
    pub(crate) is_last: bool,
}

/// A file that is read line by line.
pub(crate) struct LineFile {
    index: usize,
    path: PathBuf,
    tid: Option<u32>,
    reader: BufReader<Take<File>>,
    number: u64,
    /// The byte after each line.
    end: u8,
}

impl LineFile {
    /// The file at an index.
    pub(crate) fn open(files: &LogFiles, index: usize) -> Result<LineFile, Error> {
        let file = &files.files[index];
        let path = &file.path;
        let most = if file.is_part { file.bytes } else { u64::MAX };
        let source = crate::inputs::open(path)?.take(most);
        Ok(LineFile {
            index,
            path: path.clone(),
            tid: thread_of(path),
            reader: BufReader::with_capacity(1 << 16, source),
            number: 0,
            end: b'\n',
        })
    }

    /// The same, with another byte after each line.
    pub(crate) fn ended_by(self, end: u8) -> LineFile {
        LineFile { end, ..self }
    }

    /// Reads the next line into `line`. Returns the number of bytes, 0 at the end.
    pub(crate) fn next(&mut self, line: &mut LogLine) -> Result<u64, Error> {
        line.bytes.clear();
        let fail = |source| Error::Read {
            path: self.path.clone(),
            source,
        };
        let mut limited = (&mut self.reader).take(LONGEST);
        let mut read = limited
            .read_until(self.end, &mut line.bytes)
            .map_err(fail)? as u64;
        if read == 0 {
            return Ok(0);
        }
        self.number += 1;
        line.is_last = line.bytes.last() != Some(&self.end);
        line.is_cut = line.is_last && read == LONGEST;
        if line.is_cut {
            read += self.skip_line()?;
        }
        if !line.is_last {
            line.bytes.pop();
            // A log may have the line ends of Windows.
            if self.end == b'\n' && line.bytes.last() == Some(&b'\r') {
                line.bytes.pop();
            }
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
            let end = memchr::memchr(self.end, piece);
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

/// The number at the end of a file's name: the thread of a file of `strace -ff` (`NAME.1234`).
pub(crate) fn thread_of(path: &Path) -> Option<u32> {
    let digits = path.extension()?.to_str()?;
    digits.parse().ok().filter(|tid| *tid > 0)
}
