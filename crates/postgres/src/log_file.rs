//! Follows the server's log from file to file.
//!
//! In: the place of the log. Out: its records, in order, from the beginning of the watch on.
//!
//! The server closes a file and goes on in another one (`log_rotation_age`, `log_rotation_size`).
//! A file is read to its end before the next is begun. A server without a collector
//! (`logging_collector`) writes to its standard error, which stays one file.
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
use crate::plain_records::PlainRecords;

/// The files of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LogPlace {
    /// The files in this directory that have the ending of the format.
    Directory(PathBuf),
    /// One file.
    File(PathBuf),
}

impl Default for LogPlace {
    fn default() -> LogPlace {
        LogPlace::Directory(PathBuf::new())
    }
}

impl LogPlace {
    /// The directory in which files change.
    pub(crate) fn directory(&self) -> &Path {
        match self {
            LogPlace::Directory(path) => path,
            LogPlace::File(path) => path.parent().unwrap_or(path),
        }
    }

    /// The log's files by the times of their last changes, the oldest first.
    fn files(&self, format: LogFormat) -> std::io::Result<Vec<((i64, i64), PathBuf)>> {
        let directory = match self {
            LogPlace::Directory(path) => path,
            LogPlace::File(path) => return Ok(vec![((0, 0), path.clone())]),
        };
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
}

/// The log, from file to file.
#[derive(Debug)]
pub(crate) struct LogFollower {
    place: LogPlace,
    pub(crate) format: LogFormat,
    path: PathBuf,
    file: LineFile,
    /// The present record, in a log of comma-separated values.
    values: CsvRecords,
    /// The present record, in a plain log.
    plain: PlainRecords,
}

impl LogFollower {
    /// Begins at the end of the newest file.
    pub(crate) fn begin(place: LogPlace, format: LogFormat) -> Result<LogFollower, Error> {
        let failed = unreadable(place.directory());
        let newest = place.files(format).map_err(failed)?.pop();
        let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
        let (_, path) = newest.ok_or_else(|| failed(missing))?;
        let failed = unreadable(&path);
        let file = File::open(&path)
            .and_then(LineFile::from_end)
            .map_err(failed)?;
        Ok(LogFollower {
            format,
            values: match format {
                LogFormat::Json | LogFormat::Plain => CsvRecords::default(),
                // A record may be half written, or have text that looks like another one.
                LogFormat::Csv => {
                    CsvRecords::behind(quotes_in(&path, file.offset()).map_err(failed)?)
                }
            },
            plain: PlainRecords::behind(),
            file,
            path: path.clone(),
            place,
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
            records.extend(self.forget_record());
            self.read(&mut records)?;
        }
        Ok(records)
    }

    /// The record that is not returned yet because it may go on, as far as it was read.
    pub(crate) fn held(&self) -> Option<&[u8]> {
        self.plain.held()
    }

    /// No more of the present record comes. In a plain log it may be whole.
    fn forget_record(&mut self) -> Option<Vec<u8>> {
        self.values = CsvRecords::default();
        self.plain.end()
    }

    /// True if the last call left a part of the file unread.
    pub(crate) fn is_behind(&self) -> bool {
        self.file.is_behind()
    }

    fn read(&mut self, records: &mut Vec<Vec<u8>>) -> Result<(), Error> {
        // If the file was truncated, the numbers of the lines show what is missing.
        let new = self.file.read().map_err(unreadable(&self.path))?;
        if new.truncated {
            records.extend(self.forget_record());
        }
        match self.format {
            LogFormat::Json => records.extend(new.lines().map(<[u8]>::to_vec)),
            LogFormat::Csv => records.extend(self.values.take(&new.text)),
            LogFormat::Plain => records.extend(self.plain.take(&new.text)),
        }
        Ok(())
    }

    /// The oldest file that is newer than the present one.
    fn next_file(&self) -> Result<Option<(PathBuf, File)>, Error> {
        let failed = unreadable(self.place.directory());
        let present = self.file.changed().map_err(failed)?;
        for (time, path) in self.place.files(self.format).map_err(failed)? {
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

    fn in_directory(directory: &tempfile::TempDir) -> LogPlace {
        LogPlace::Directory(directory.path().to_owned())
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
        let mut follower = LogFollower::begin(in_directory(&directory), LogFormat::Json).unwrap();
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
        let mut follower = LogFollower::begin(in_directory(&directory), LogFormat::Json).unwrap();
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
        let mut follower = LogFollower::begin(in_directory(&directory), LogFormat::Csv).unwrap();
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(&whole.as_bytes()[whole.len() - 30..])
            .unwrap();
        file.write_all(record(2, "two\n\nmore").as_bytes()).unwrap();
        assert_eq!(numbers(&mut follower), [2]);
        file.write_all(record(3, "three").as_bytes()).unwrap();
        assert_eq!(numbers(&mut follower), [3]);
    }

    #[test]
    fn a_record_of_a_plain_log_that_goes_on_is_held_back_and_a_truncated_file_is_begun_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server's standard error");
        let record = |number: u64, text: &str| {
            format!(
                "1.000\ts.7\t{number}\t3/5\t0\tclient backend\t\tann\tbank\tpsql\tLOG:  {text}\n"
            )
        };
        std::fs::write(&path, "a line of another form\n").unwrap();
        let mut follower =
            LogFollower::begin(LogPlace::File(path.clone()), LogFormat::Plain).unwrap();
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(record(1, "one\n\tmore").as_bytes()).unwrap();
        file.write_all(record(2, "two").as_bytes()).unwrap();
        assert_eq!(numbers(&mut follower), [1]);
        assert_eq!(follower.held(), Some(record(2, "two").as_bytes()));
        file.set_len(0).unwrap();
        file.write_all(record(3, "three").as_bytes()).unwrap();
        file.write_all(record(4, "four").as_bytes()).unwrap();
        assert_eq!(numbers(&mut follower), [2, 3]);
    }
}
