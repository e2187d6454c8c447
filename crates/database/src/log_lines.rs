//! Reads a log that a server writes, line by line.
//!
//! In: an open file. Out: its whole lines, from a position on, in bounded portions. A line without
//! its end is waited for.
//!
//! Absent: which file comes next, which depends on the server.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

/// Most bytes that one call reads.
const PORTION: u64 = 1 << 22;
/// Longest line that is waited for. A statement of a server has at most a gibibyte.
const LONGEST: usize = if cfg!(test) { 1 << 23 } else { 1 << 31 };

/// A file of a log, and how much of it was read.
#[derive(Debug)]
pub struct LineFile {
    file: File,
    /// How much of the file has been read.
    offset: u64,
    /// A line whose end has not been written.
    partial: Vec<u8>,
    /// The last call left a part of the file unread.
    is_behind: bool,
}

/// The bytes of a file since it was read last.
#[derive(Debug, Default)]
pub struct NewLines {
    /// Whole lines, each with its end.
    pub text: Vec<u8>,
    /// The file became shorter than what was read of it, or a line was too long to be kept.
    pub truncated: bool,
}

impl NewLines {
    /// The lines, without their ends.
    pub fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let lines = self.text.split(|byte| *byte == b'\n');
        lines.filter(|line| !line.is_empty())
    }
}

impl LineFile {
    /// A file that is read from its beginning.
    pub fn whole(file: File) -> LineFile {
        LineFile {
            file,
            offset: 0,
            partial: Vec::new(),
            is_behind: false,
        }
    }

    /// A file of which only the lines that end from now on are read.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn from_end(file: File) -> io::Result<LineFile> {
        let mut offset = file.metadata()?.len();
        let mut portion = vec![0; 1 << 12];
        // The last line may be half written: it is read from its begin.
        while offset > 0 {
            let begin = offset.saturating_sub(portion.len() as u64);
            let read = &mut portion[..(offset - begin) as usize];
            file.read_exact_at(read, begin)?;
            if let Some(last) = read.iter().rposition(|byte| *byte == b'\n') {
                offset = begin + last as u64 + 1;
                break;
            }
            offset = begin;
        }
        let whole = LineFile::whole(file);
        Ok(LineFile { offset, ..whole })
    }

    /// The lines that were written since the last call, or the first part of them.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn read(&mut self) -> io::Result<NewLines> {
        let mut new = NewLines::default();
        let size = self.file.metadata()?.len();
        if size < self.offset {
            new.truncated = true;
            self.offset = 0;
            self.partial.clear();
        }
        let most = (size - self.offset).min(PORTION) as usize;
        let begin = self.partial.len();
        self.partial.resize(begin + most, 0);
        let count = match most {
            0 => 0,
            _ => self.file.read_at(&mut self.partial[begin..], self.offset)?,
        };
        self.partial.truncate(begin + count);
        self.offset += count as u64;
        self.is_behind = count > 0 && self.offset < size;
        // The bytes from before have no end of a line.
        let end = self.partial[begin..]
            .iter()
            .rposition(|byte| *byte == b'\n');
        if let Some(end) = end {
            let rest = self.partial.split_off(begin + end + 1);
            new.text = std::mem::replace(&mut self.partial, rest);
        }
        if self.partial.len() > LONGEST {
            new.truncated = true;
            self.partial = Vec::new();
        }
        Ok(new)
    }

    /// True if the last call left a part of the file unread.
    pub fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// How much of the file has been read, in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The time of the last change, in s and ns since 1970.
    ///
    /// # Errors
    ///
    /// The file cannot be examined.
    pub fn changed(&self) -> io::Result<(i64, i64)> {
        let meta = self.file.metadata()?;
        Ok((meta.mtime(), meta.mtime_nsec()))
    }

    /// Device and inode.
    ///
    /// # Errors
    ///
    /// The file cannot be examined.
    pub fn inode(&self) -> io::Result<(u64, u64)> {
        let meta = self.file.metadata()?;
        Ok((meta.dev(), meta.ino()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn texts(file: &mut LineFile) -> (Vec<String>, bool) {
        let new = file.read().unwrap();
        let text = |line: &[u8]| String::from_utf8_lossy(line).into_owned();
        (new.lines().map(text).collect(), new.truncated)
    }

    #[test]
    fn a_line_that_is_half_written_at_first_is_read_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let long = "x".repeat(10_000);
        std::fs::write(&path, format!("old\n{long}")).unwrap();
        let mut file = LineFile::from_end(File::open(&path).unwrap()).unwrap();
        assert_eq!(file.offset(), 4);
        let mut writer = File::options().append(true).open(&path).unwrap();
        writer.write_all(b"end\nnew\n").unwrap();
        let wanted = vec![format!("{long}end"), "new".to_owned()];
        assert_eq!(texts(&mut file), (wanted, false));
    }

    #[test]
    fn a_half_line_is_waited_for_and_a_truncation_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        std::fs::write(&path, "old\n").unwrap();
        let mut file = LineFile::from_end(File::open(&path).unwrap()).unwrap();
        let mut writer = File::options().append(true).open(&path).unwrap();
        writer.write_all(b"one\ntw").unwrap();
        assert_eq!(texts(&mut file), (vec!["one".to_owned()], false));
        writer.write_all(b"o\n").unwrap();
        assert_eq!(texts(&mut file), (vec!["two".to_owned()], false));
        std::fs::write(&path, "new\n").unwrap();
        assert_eq!(texts(&mut file), (vec!["new".to_owned()], true));
    }

    #[test]
    fn a_line_without_an_end_takes_bounded_memory_and_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        std::fs::write(&path, "").unwrap();
        let mut file = LineFile::from_end(File::open(&path).unwrap()).unwrap();
        std::fs::write(&path, "x".repeat(LONGEST + 2 * PORTION as usize)).unwrap();
        let mut truncated = false;
        while !truncated || file.is_behind() {
            truncated |= texts(&mut file).1;
            assert!(file.partial.len() <= LONGEST);
        }
        let mut writer = File::options().append(true).open(&path).unwrap();
        writer.write_all(b"end\nnew\n").unwrap();
        let (lines, _) = texts(&mut file);
        assert_eq!(lines.last().map(String::as_str), Some("new"));
    }

    #[test]
    fn a_long_file_is_read_in_portions_without_loss() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        std::fs::write(&path, "").unwrap();
        let mut file = LineFile::from_end(File::open(&path).unwrap()).unwrap();
        let line = format!("{}\n", "x".repeat(999));
        let count = PORTION as usize * 5 / 2 / line.len();
        std::fs::write(&path, line.repeat(count)).unwrap();
        let mut portions = Vec::new();
        while portions.is_empty() || file.is_behind() {
            portions.push(texts(&mut file).0.len());
        }
        assert_eq!((portions.len(), portions.iter().sum::<usize>()), (3, count));
        assert!(texts(&mut file).0.is_empty());
    }
}
