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
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use backstory_database::error::Error;
use backstory_database::log_lines::LineFile;

use crate::csv_records::{CsvRecords, quotes};
use crate::log_line::{LogFormat, LogLine};

/// The log, from file to file.
#[derive(Debug)]
pub(crate) struct LogFollower {
    directory: PathBuf,
    format: LogFormat,
    path: PathBuf,
    file: LineFile,
    /// The present record, if the format has records of several lines.
    records: CsvRecords,
    numbers: HashMap<String, u64>,
    /// The time of the newest line.
    newest: String,
    /// The number of lines that are missing.
    pub(crate) missing: u64,
    /// The times of the lines before the first gap and after the last one, as the log has them.
    pub(crate) gap: Option<(String, String)>,
    /// Lines that have another form.
    pub(crate) unreadable: u64,
}

impl LogFollower {
    /// Begins at the end of the newest file.
    pub(crate) fn begin(directory: &Path, format: LogFormat) -> Result<LogFollower, Error> {
        let failed = unreadable(directory);
        let newest = files(directory, format).map_err(failed)?.pop();
        let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
        let (_, path) = newest.ok_or_else(|| failed(missing))?;
        let failed = unreadable(&path);
        let file = File::open(&path)
            .and_then(LineFile::from_end)
            .map_err(failed)?;
        Ok(LogFollower {
            directory: directory.to_owned(),
            format,
            records: match format {
                LogFormat::Json => CsvRecords::default(),
                // A record may be half written, or have text that looks like another one.
                LogFormat::Csv => {
                    CsvRecords::behind(quotes_in(&path, file.offset()).map_err(failed)?)
                }
            },
            file,
            path: path.clone(),
            numbers: HashMap::new(),
            newest: String::new(),
            missing: 0,
            gap: None,
            unreadable: 0,
        })
    }

    /// The lines that were written since the last call. Those of the next file are returned by a
    /// later call.
    pub(crate) fn lines(&mut self) -> Result<Vec<LogLine>, Error> {
        let mut lines = Vec::new();
        self.read(&mut lines)?;
        // The server writes one file at a time. The next call returns lines of another file.
        if !lines.is_empty() {
            return Ok(lines);
        }
        // A newer file begins when the server has closed this one.
        while let Some((path, file)) = self.next_file()? {
            self.read(&mut lines)?;
            (self.path, self.file) = (path, LineFile::whole(file));
            self.records = CsvRecords::default();
            self.read(&mut lines)?;
        }
        Ok(lines)
    }

    fn read(&mut self, lines: &mut Vec<LogLine>) -> Result<(), Error> {
        // If the file was truncated, the numbers of the lines show what is missing.
        let new = self.file.read().map_err(unreadable(&self.path))?;
        let records = match self.format {
            LogFormat::Json => new.lines().map(<[u8]>::to_vec).collect(),
            LogFormat::Csv => {
                if new.truncated {
                    self.records = CsvRecords::default();
                }
                self.records.take(&new.text)
            }
        };
        for text in &records {
            match LogLine::parse(text, self.format) {
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

    /// Forgets the sessions that are not kept, such as those of other databases that have ended.
    pub(crate) fn keep(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.numbers.retain(|session, _| is_kept(session));
    }

    /// Forgets a session that has ended.
    pub(crate) fn forget(&mut self, session: &str) {
        self.numbers.remove(session);
    }

    /// The oldest file that is newer than the present one.
    fn next_file(&self) -> Result<Option<(PathBuf, File)>, Error> {
        let failed = unreadable(&self.directory);
        let present = self.file.changed().map_err(failed)?;
        for (time, path) in files(&self.directory, self.format).map_err(failed)? {
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

/// The number of quotes in the first so many bytes of a file.
fn quotes_in(path: &Path, length: u64) -> std::io::Result<u64> {
    let mut rest = File::open(path)?.take(length);
    let mut portion = vec![0; 1 << 16];
    let mut count = 0;
    loop {
        match rest.read(&mut portion)? {
            0 => return Ok(count),
            length => count += quotes(&portion[..length]),
        }
    }
}

fn unreadable(path: &Path) -> impl Fn(std::io::Error) -> Error + Copy {
    move |source| Error::LogFile {
        log: "the server's log",
        path: path.to_owned(),
        source,
    }
}

/// The log's files by the times of their last changes, the oldest first.
fn files(directory: &Path, format: LogFormat) -> std::io::Result<Vec<((i64, i64), PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == format.ending())
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
        let mut follower = LogFollower::begin(directory.path(), LogFormat::Json).unwrap();
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
        assert_eq!(numbers(&mut follower), [3]);
        assert_eq!(numbers(&mut follower), [4]);
        assert_eq!(follower.missing, 0);
    }

    #[test]
    fn lines_that_were_removed_unread_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.json");
        std::fs::write(&path, "").unwrap();
        let mut follower = LogFollower::begin(directory.path(), LogFormat::Json).unwrap();
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
    fn a_line_of_another_form_is_counted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.json");
        std::fs::write(&path, "").unwrap();
        let mut follower = LogFollower::begin(directory.path(), LogFormat::Json).unwrap();
        std::fs::write(&path, "{\"broken\n").unwrap();
        assert!(numbers(&mut follower).is_empty());
        assert_eq!(follower.unreadable, 1);
    }

    #[test]
    fn records_of_several_lines_are_read_from_the_end_of_the_log_on() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.csv");
        let record = |number: u64, text: &str| {
            format!(
                "time,\"ann\",\"bank\",7,,s,{number},,,3/5,0,LOG,,\"{text}\",,,,,,,,,,\"client backend\"\n"
            )
        };
        let whole = record(1, "one\n\nmore");
        // The watch begins while the server writes.
        std::fs::write(&path, &whole[..whole.len() - 30]).unwrap();
        let mut follower = LogFollower::begin(directory.path(), LogFormat::Csv).unwrap();
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(&whole.as_bytes()[whole.len() - 30..])
            .unwrap();
        file.write_all(record(2, "two\n\nmore").as_bytes()).unwrap();
        assert_eq!(numbers(&mut follower), [2]);
        file.write_all(record(3, "three").as_bytes()).unwrap();
        assert_eq!(numbers(&mut follower), [3]);
    }
}
