//! Follows the log of `server_audit` from file to file.
//!
//! In: the path of the log. Out: its lines with their times, from the beginning of the watch on.
//!
//! The plug-in renames its files when one is full: the log becomes `.1`, that one `.2`, up to
//! `server_audit_file_rotations`. A file is found again by its inode. If it is gone, or became
//! shorter, lines may be missing.
//!
//! A line has its second alone. It was written after the log was last read to its end, and before
//! it was read now. The times of lines have the order of the lines.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use backstory_database::error::Error;
use backstory_database::log_lines::LineFile;
use backstory_eventlog::calendar::utc_second;
use backstory_sys::clock::machine;

use crate::audit_line::AuditLine;

const SECOND: i64 = 1_000_000_000;
/// Lines of one portion are taken to be so many ns apart.
const APART: i64 = 2_000;

/// A line with its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimedLine {
    pub(crate) line: AuditLine,
    /// When it was written, in ns since 1970. Times of lines have the order of the lines.
    pub(crate) time: i64,
    /// It was written after this time.
    pub(crate) after: i64,
}

/// The log, from file to file.
#[derive(Debug)]
pub(crate) struct AuditFile {
    path: PathBuf,
    file: LineFile,
    /// When the log was last read to its end.
    read: i64,
    /// The time of the newest line, and its second, in ns since 1970.
    newest: (i64, Option<i64>),
    /// The last line has this second, in ns since 1970.
    pub(crate) second: i64,
    /// Seconds of the server's time zone east of UTC.
    pub(crate) offset: i64,
    /// Times before and after lines that may be missing, to the second.
    pub(crate) gaps: Vec<(String, String)>,
    /// Lines that have another form.
    pub(crate) unreadable: u64,
    /// A gap is open until its next line.
    lost: bool,
}

impl AuditFile {
    /// Begins at the end of the log.
    pub(crate) fn begin(path: &Path, offset: i64) -> Result<AuditFile, Error> {
        let file = File::open(path).and_then(LineFile::from_end);
        Ok(AuditFile {
            path: path.to_owned(),
            file: file.map_err(|source| unreadable(path, source))?,
            read: machine(),
            newest: (0, None),
            second: 0,
            offset,
            gaps: Vec::new(),
            unreadable: 0,
            lost: false,
        })
    }

    /// The lines that were written since the last call, or the first part of them.
    pub(crate) fn lines(&mut self) -> Result<Vec<TimedLine>, Error> {
        let now = machine();
        let texts = self.texts();
        let texts = texts.map_err(|source| unreadable(&self.path, source))?;
        let mut lines = Vec::new();
        let count = texts.len() as i64;
        for (at, text) in texts.iter().enumerate() {
            let Some(line) = AuditLine::parse(text) else {
                self.unreadable += 1;
                continue;
            };
            self.second = line.second(self.offset).unwrap_or(self.second);
            let before = now - (count - 1 - at as i64).saturating_mul(APART);
            lines.push(self.timed(line, before, now));
        }
        self.read = now;
        Ok(lines)
    }

    fn timed(&mut self, line: AuditLine, time: i64, now: i64) -> TimedLine {
        let (mut low, mut high) = (self.read, now);
        let second = line.second(self.offset);
        // The line's second says more, if the log was not read for a while.
        if let Some(second) = second
            && second < high
            && second + SECOND > low
        {
            (low, high) = (low.max(second), high.min(second + SECOND));
        }
        let time = time.clamp(low, high).max(self.newest.0 + 1);
        if std::mem::take(&mut self.lost) {
            let told = |second: Option<i64>, unknown: &str| {
                second.map_or_else(|| unknown.to_owned(), utc_second)
            };
            let before = told(self.newest.1, "its beginning");
            self.gaps.push((before, told(second, "an unknown time")));
        }
        self.newest = (time, second);
        TimedLine {
            line,
            time,
            after: low.min(time),
        }
    }

    /// True if the last call left a part of the log unread.
    pub(crate) fn is_behind(&self) -> bool {
        self.file.is_behind()
    }

    /// The new lines of all files, the oldest first, or the first part of them.
    fn texts(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let mut texts = Vec::new();
        self.read_file(&mut texts)?;
        while !self.is_behind()
            && let Some(next) = self.next_file()?
        {
            // Lines may have come between the look at the file and its renaming.
            self.read_file(&mut texts)?;
            if self.is_behind() {
                break;
            }
            self.file = LineFile::whole(next);
            self.read_file(&mut texts)?;
        }
        Ok(texts)
    }

    fn read_file(&mut self, texts: &mut Vec<Vec<u8>>) -> io::Result<()> {
        let new = self.file.read()?;
        self.lost |= new.truncated;
        texts.extend(new.lines().map(<[u8]>::to_vec));
        Ok(())
    }

    /// The file that is next to the present one, if the log was renamed since.
    fn next_file(&mut self) -> io::Result<Option<File>> {
        let own = self.file.inode()?;
        let inode = |path: &Path| {
            let meta = path.metadata().ok()?;
            Some((meta.dev(), meta.ino()))
        };
        // The server makes the log again at once.
        match inode(&self.path) {
            None => return Ok(None),
            Some(inode) if inode == own => return Ok(None),
            Some(_) => (),
        }
        let numbered = |number: u32| {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        };
        let old: Vec<PathBuf> = (1..)
            .map(numbered)
            .take_while(|path| path.exists())
            .collect();
        let at = old.iter().position(|path| inode(path) == Some(own));
        let next = match at {
            Some(0) => self.path.clone(),
            Some(at) => old[at - 1].clone(),
            None => {
                self.lost = true;
                let newer = self.file.changed()?;
                let mut later = old.iter().rev().filter(|path| {
                    let meta = path.metadata();
                    meta.is_ok_and(|meta| (meta.mtime(), meta.mtime_nsec()) > newer)
                });
                later.next().unwrap_or(&self.path).clone()
            }
        };
        // It may be renamed at this moment: the next look finds it.
        match File::open(next) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn unreadable(path: &Path, source: io::Error) -> Error {
    Error::LogFile {
        log: "the log of server_audit",
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn line(query: u64) -> String {
        format!("20261122 18:55:{query:02},vm,root,localhost,8,{query},QUERY,bank,'SELECT 1',0\n")
    }

    fn queries(file: &mut AuditFile) -> Vec<u64> {
        file.lines()
            .unwrap()
            .iter()
            .map(|one| one.line.query)
            .collect()
    }

    fn log() -> (tempfile::TempDir, PathBuf, AuditFile) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        fs::write(&path, line(1)).unwrap();
        let file = AuditFile::begin(&path, 0).unwrap();
        (directory, path, file)
    }

    fn append(path: &Path, query: u64) {
        use std::io::Write;
        let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(line(query).as_bytes()).unwrap();
    }

    fn rotate(path: &Path) {
        for number in (0..9).rev() {
            let from = match number {
                0 => path.to_owned(),
                _ => PathBuf::from(format!("{}.{number}", path.display())),
            };
            let _ = fs::rename(from, format!("{}.{}", path.display(), number + 1));
        }
        fs::write(path, "").unwrap();
    }

    #[test]
    fn a_log_is_followed_through_two_renamings() {
        let (_directory, path, mut file) = log();
        append(&path, 2);
        assert_eq!(queries(&mut file), [2]);
        append(&path, 3);
        rotate(&path);
        append(&path, 4);
        rotate(&path);
        append(&path, 5);
        assert_eq!(queries(&mut file), [3, 4, 5]);
        assert!(file.gaps.is_empty());
    }

    #[test]
    fn a_log_that_was_removed_or_truncated_is_a_gap_between_two_times() {
        let (_directory, path, mut file) = log();
        append(&path, 2);
        assert_eq!(queries(&mut file), [2]);
        fs::remove_file(&path).unwrap();
        fs::write(&path, line(4)).unwrap();
        assert_eq!(queries(&mut file), [4]);
        let gap = |from: u64, to: u64| {
            let second = |query: u64| format!("2026-11-22 18:55:{query:02} UTC");
            (second(from), second(to))
        };
        assert_eq!(file.gaps, [gap(2, 4)]);
        fs::write(&path, "").unwrap();
        assert!(queries(&mut file).is_empty());
        append(&path, 6);
        assert_eq!(queries(&mut file), [6]);
        assert_eq!(file.gaps, [gap(2, 4), gap(4, 6)]);
    }

    #[test]
    fn times_have_the_order_of_the_lines() {
        let (_directory, path, mut file) = log();
        for query in 2..50 {
            append(&path, query);
        }
        let lines = file.lines().unwrap();
        assert!(lines.is_sorted_by(|one, two| one.time < two.time));
        assert!(lines.iter().all(|one| one.after <= one.time));
    }
}
