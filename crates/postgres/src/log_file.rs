//! Follows the server's log from file to file.
//!
//! In: the directory of the log. Out: its lines, in order, from the beginning of the watch on. A
//! descriptor becomes readable when there are new ones.
//!
//! The server closes a file and goes on in another one (`log_rotation_age`, `log_rotation_size`).
//! A file is read to its end before the next is begun. If a file was removed before it was read,
//! the numbers of lines show it: the server counts the lines of each session.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use backstory_database::log_lines::LineFile;

use crate::Error;
use crate::log_line::LogLine;

/// The log, from file to file.
#[derive(Debug)]
pub(crate) struct LogFollower {
    directory: PathBuf,
    path: PathBuf,
    file: LineFile,
    numbers: HashMap<String, u64>,
    /// The time of the newest line.
    newest: String,
    /// The number of lines that are missing.
    pub(crate) missing: u64,
    /// The times of the lines before the first gap and after the last one, as the log has them.
    pub(crate) gap: Option<(String, String)>,
    /// Lines that are no JSON.
    pub(crate) unreadable: u64,
}

impl LogFollower {
    /// Begins at the end of the newest file.
    pub(crate) fn begin(directory: &Path) -> Result<LogFollower, Error> {
        let failed = |source| Error::LogFile {
            path: directory.to_owned(),
            source,
        };
        let newest = files(directory).map_err(failed)?.pop();
        let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
        let (_, path) = newest.ok_or_else(|| failed(missing))?;
        let wrong = |source| Error::LogFile {
            path: path.clone(),
            source,
        };
        let file = File::open(&path).and_then(LineFile::from_end);
        Ok(LogFollower {
            directory: directory.to_owned(),
            file: file.map_err(wrong)?,
            path,
            numbers: HashMap::new(),
            newest: String::new(),
            missing: 0,
            gap: None,
            unreadable: 0,
        })
    }

    /// The lines that were written since the last call.
    pub(crate) fn lines(&mut self) -> Result<Vec<LogLine>, Error> {
        let mut lines = Vec::new();
        self.read(&mut lines)?;
        // A newer file begins when the server has closed this one.
        while let Some((path, file)) = self.next_file()? {
            self.read(&mut lines)?;
            (self.path, self.file) = (path, LineFile::whole(file));
            self.read(&mut lines)?;
        }
        Ok(lines)
    }

    fn read(&mut self, lines: &mut Vec<LogLine>) -> Result<(), Error> {
        // If the file was truncated, the numbers of the lines show what is missing.
        let new = self.file.read().map_err(|source| Error::LogFile {
            path: self.path.clone(),
            source,
        })?;
        for text in new.lines() {
            match LogLine::parse(text) {
                Some(line) => {
                    self.count(&line);
                    lines.push(line);
                }
                None => self.unreadable += 1,
            }
        }
        Ok(())
    }

    /// Notes the line's number. The session may have begun before the watch.
    fn count(&mut self, line: &LogLine) {
        if line.session_id.is_empty() {
            return;
        }
        let last = self.numbers.insert(line.session_id.clone(), line.line_num);
        let missing = last.map_or(0, |last| {
            line.line_num.saturating_sub(last.saturating_add(1))
        });
        let before = std::mem::replace(&mut self.newest, line.timestamp.clone());
        if missing > 0 {
            self.missing += missing;
            let begin = self.gap.take().map_or(before, |(begin, _)| begin);
            self.gap = Some((begin, line.timestamp.clone()));
        }
    }

    /// Forgets a session that has ended.
    pub(crate) fn forget(&mut self, session: &str) {
        self.numbers.remove(session);
    }

    /// The oldest file that is newer than the present one.
    fn next_file(&self) -> Result<Option<(PathBuf, File)>, Error> {
        let failed = |source| Error::LogFile {
            path: self.directory.clone(),
            source,
        };
        let present = self.file.changed().map_err(failed)?;
        for (time, path) in files(&self.directory).map_err(failed)? {
            if (time, &path) <= (present, &self.path) {
                continue;
            }
            if let Ok(file) = File::open(&path) {
                let other = file.metadata().map_err(failed)?;
                if self.file.inode().map_err(failed)? != (other.dev(), other.ino()) {
                    return Ok(Some((path, file)));
                }
            }
        }
        Ok(None)
    }
}

/// The log's files by the times of their last changes, the oldest first.
fn files(directory: &Path) -> std::io::Result<Vec<((i64, i64), PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "json")
            && let Ok(meta) = path.metadata()
        {
            found.push(((meta.mtime(), meta.mtime_nsec()), path));
        }
    }
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn line(number: u64) -> String {
        format!(
            "{{\"timestamp\":\"second {number}\",\"session_id\":\"s\",\"line_num\":{number},\"message\":\"m\"}}\n"
        )
    }

    fn numbers(follower: &mut LogFollower) -> Vec<u64> {
        follower
            .lines()
            .unwrap()
            .iter()
            .map(|line| line.line_num)
            .collect()
    }

    #[test]
    fn a_log_is_followed_into_the_next_file_and_a_half_line_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let mut first = File::create(directory.path().join("a.json")).unwrap();
        first.write_all(line(1).as_bytes()).unwrap();
        let mut follower = LogFollower::begin(directory.path()).unwrap();
        let second = line(2);
        first.write_all(&second.as_bytes()[..9]).unwrap();
        assert!(numbers(&mut follower).is_empty());
        first.write_all(&second.as_bytes()[9..]).unwrap();
        assert_eq!(numbers(&mut follower), [2]);
        first.write_all(line(3).as_bytes()).unwrap();
        // Times of files have the granularity of the kernel's clock tick.
        let mut next = File::create(directory.path().join("b.json")).unwrap();
        next.write_all(line(4).as_bytes()).unwrap();
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
        next.set_modified(later).unwrap();
        assert_eq!(numbers(&mut follower), [3, 4]);
        assert_eq!(follower.missing, 0);
    }

    #[test]
    fn lines_that_were_removed_unread_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.json");
        std::fs::write(&path, "").unwrap();
        let mut follower = LogFollower::begin(directory.path()).unwrap();
        std::fs::write(&path, line(7)).unwrap();
        assert_eq!(numbers(&mut follower), [7]);
        std::fs::remove_file(&path).unwrap();
        let next = directory.path().join("b.json");
        std::fs::write(&next, line(10)).unwrap();
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
        File::open(&next).unwrap().set_modified(later).unwrap();
        assert_eq!(numbers(&mut follower), [10]);
        assert_eq!(follower.missing, 2);
        let gap = ("second 7".to_owned(), "second 10".to_owned());
        assert_eq!(follower.gap, Some(gap));
    }

    #[test]
    fn a_line_that_is_no_json_is_counted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.json");
        std::fs::write(&path, "").unwrap();
        let mut follower = LogFollower::begin(directory.path()).unwrap();
        std::fs::write(&path, "{\"broken\n").unwrap();
        assert!(numbers(&mut follower).is_empty());
        assert_eq!(follower.unreadable, 1);
    }
}
