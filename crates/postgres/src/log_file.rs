//! Follows the server's log from file to file.
//!
//! In: the directory of the log. Out: its records, in order, from the beginning of the watch on.
//!
//! The server closes a file and goes on in another one (`log_rotation_age`, `log_rotation_size`).
//! A file is read to its end before the next is begun.
//!
//! Absent: what a record says, and which records are missing: `line_counter`.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use backstory_database::error::Error;
use backstory_database::log_lines::LineFile;

use crate::csv_records::{CsvRecords, quotes};
use crate::log_line::LogFormat;

/// The log, from file to file.
#[derive(Debug)]
pub(crate) struct LogFollower {
    directory: PathBuf,
    pub(crate) format: LogFormat,
    path: PathBuf,
    file: LineFile,
    /// The present record, if the format has records of several lines.
    records: CsvRecords,
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
        })
    }

    /// The records that were written since the last call, or the first part of them. Those of the
    /// next file are returned by a later call.
    pub(crate) fn records(&mut self) -> Result<Vec<Vec<u8>>, Error> {
        let mut records = Vec::new();
        self.read(&mut records)?;
        // The server writes one file at a time. The next call returns records of another file.
        if !records.is_empty() || self.is_behind() {
            return Ok(records);
        }
        // A newer file begins when the server has closed this one.
        while let Some((path, file)) = self.next_file()? {
            self.read(&mut records)?;
            if self.is_behind() {
                break;
            }
            (self.path, self.file) = (path, LineFile::whole(file));
            self.records = CsvRecords::default();
            self.read(&mut records)?;
        }
        Ok(records)
    }

    /// True if the last call left a part of the file unread.
    pub(crate) fn is_behind(&self) -> bool {
        self.file.is_behind()
    }

    fn read(&mut self, records: &mut Vec<Vec<u8>>) -> Result<(), Error> {
        // If the file was truncated, the numbers of the lines show what is missing.
        let new = self.file.read().map_err(unreadable(&self.path))?;
        match self.format {
            LogFormat::Json => records.extend(new.lines().map(<[u8]>::to_vec)),
            LogFormat::Csv => {
                if new.truncated {
                    self.records = CsvRecords::default();
                }
                records.extend(self.records.take(&new.text));
            }
        }
        Ok(())
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
    use crate::log_line::LogLine;
    use std::io::Write;

    fn line(number: u64) -> String {
        format!(
            "{{\"timestamp\":\"second {number}\",\"session_id\":\"s\",\"line_num\":{number},\"message\":\"m\"}}\n"
        )
    }

    fn numbers(follower: &mut LogFollower) -> Vec<u64> {
        let records = follower.records().unwrap();
        let line = |text: &Vec<u8>| LogLine::parse(text, follower.format).unwrap();
        records.iter().map(|text| line(text).line_num).collect()
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
    }

    #[test]
    fn a_log_goes_on_behind_a_file_that_was_removed_unread() {
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
