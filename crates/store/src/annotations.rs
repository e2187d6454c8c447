//! Annotations are facts about a run beside its record: tags, parameters, metrics, and the state of
//! the git work trees that it used.
//!
//! In: lines of the journal `DIR/annotations.log`. `record` appends to it without opening the
//! database, before and after its command. Out: annotations by run and by key. The database is
//! filled from the journal ([`catch_up_annotations`]), also for runs that it does not have yet.
//!
//! Invariant: a line is complete or ignored, so a killed writer damages no other line. The last
//! line about a key counts.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use backstory_files::{now, regular};
use serde::{Deserialize, Serialize};

use crate::{Error, GraphStore, Home, Result};

/// The kinds of annotations. Stores keep the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AnnotationKind {
    /// A word of the user's about the run.
    Tag = 0,
    /// An input value of the run, from a configuration file.
    Parameter = 1,
    /// A result value of the run, from a file that it wrote.
    Metric = 2,
    /// The state of a git work tree: the key is its directory, the value is JSON.
    Checkout = 3,
    /// The verdict of a replay of the run: the key is when it ended, in nanoseconds since 1970; the
    /// value is JSON.
    Replay = 4,
    /// A run that ssh started on another machine, and that is not in the store: the key is its id;
    /// the value is JSON.
    Remote = 5,
}

impl AnnotationKind {
    /// All kinds, each at the index of its number.
    pub const ALL: [AnnotationKind; 6] = [
        AnnotationKind::Tag,
        AnnotationKind::Parameter,
        AnnotationKind::Metric,
        AnnotationKind::Checkout,
        AnnotationKind::Replay,
        AnnotationKind::Remote,
    ];
}

impl AnnotationKind {
    /// Its word in the journal.
    pub fn word(self) -> &'static str {
        match self {
            AnnotationKind::Tag => "tag",
            AnnotationKind::Parameter => "parameter",
            AnnotationKind::Metric => "metric",
            AnnotationKind::Checkout => "checkout",
            AnnotationKind::Replay => "replay",
            AnnotationKind::Remote => "remote",
        }
    }
}

/// One annotation of a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Annotation {
    /// The run's id.
    pub run: String,
    /// Its kind.
    pub kind: AnnotationKind,
    /// Its key, unique among those of its kind and run.
    pub key: String,
    /// Its value. `None` removes the annotation.
    pub value: Option<String>,
}

/// A line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AnnotationRecord {
    /// An annotation is set or removed.
    Set(Annotation),
    /// The run was removed, and all that was said about it.
    Forgotten {
        /// The run's id.
        forgotten: String,
    },
}

/// The annotations of runs. Object safe.
pub trait RunAnnotations: GraphStore {
    /// Adds records of the journal, atomically, and remembers how far the journal was read. With
    /// `anew`, all annotations are removed first.
    fn annotate(&mut self, records: &[AnnotationRecord], read: u64, anew: bool) -> Result<()>;

    /// How far the journal was read, in bytes.
    fn annotations_read(&self) -> Result<u64>;

    /// The annotations of a run, by kind and key.
    fn annotations(&self, run: &str) -> Result<Vec<Annotation>>;

    /// The annotations of all runs of one kind, by run and key; with `key`, those with this key.
    fn annotations_of(&self, kind: AnnotationKind, key: Option<&str>) -> Result<Vec<Annotation>>;
}

/// Appends records to the journal of a store. Needs no lock of the store and no database.
pub fn append(home: &Home, records: &[AnnotationRecord]) -> Result<()> {
    let path = home.annotations_path();
    append_text(&mut locked(&path)?, &path, stamped_lines(records))
}

/// Appends lines to the journal, which the caller has locked.
pub(crate) fn append_text(file: &mut File, path: &Path, mut text: String) -> Result<()> {
    let fail = |doing| move |e| Error::io(doing, path, e);
    // A writer that was killed, or found the disk full, may have left half a line.
    let length = file.metadata().map_err(fail("look at"))?.len();
    if length > 0 && last_byte(file, length).map_err(fail("read"))? != b'\n' {
        text.insert(0, '\n');
    }
    file.write_all(text.as_bytes()).map_err(fail("write"))
}

/// Removes all lines about these runs from the journal, and brings the store up to date. Unlike a
/// record [`AnnotationRecord::Forgotten`], this leaves no byte of them behind.
pub fn erase(home: &Home, store: &mut dyn crate::Store, runs: &[&str]) -> Result<()> {
    let path = home.annotations_path();
    let fail = |doing| move |e| Error::io(doing, &home.annotations_path(), e);
    // Until the end, so that no other process adds a line to the journal that goes.
    let mut file = locked(&path)?;
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(fail("read"))?;
    // Other lines stay as they are, with their times and origins.
    #[derive(Deserialize)]
    struct AboutRun {
        #[serde(alias = "forgotten")]
        run: String,
    }
    let is_about = |line: &[u8]| {
        let line: Option<AboutRun> = serde_json::from_slice(line).ok();
        line.is_some_and(|line| runs.contains(&line.run.as_str()))
    };
    let mut kept = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        if !is_about(line) {
            kept.extend(line);
        }
    }
    if kept.len() == text.len() {
        return Ok(());
    }
    let rest = from_lines(&kept);
    home.replace_file("annotations.log", &kept, true)?;
    store.annotate(&rest, kept.len() as u64, true)
}

/// The journal, locked for writing, and created if necessary.
pub(crate) fn locked(path: &Path) -> Result<File> {
    use std::os::unix::fs::MetadataExt;
    let fail = |doing| move |e| Error::io(doing, path, e);
    loop {
        let mut options = OpenOptions::new();
        options.create(true).append(true).read(true).mode(0o600);
        let file = regular::open_with(&mut options, path).map_err(fail("open"))?;
        file.lock().map_err(fail("lock"))?;
        // Another process may have replaced the journal before the lock was free.
        let held = file.metadata().map_err(fail("look at"))?;
        match std::fs::metadata(path) {
            Ok(there) if (there.dev(), there.ino()) == (held.dev(), held.ino()) => return Ok(file),
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(fail("look at")(e)),
            _ => {}
        }
    }
}

fn last_byte(file: &File, length: u64) -> io::Result<u8> {
    let mut byte = [0];
    file.read_exact_at(&mut byte, length - 1)?;
    Ok(byte[0])
}

/// Brings the annotations of a store up to date with its journal.
pub fn catch_up_annotations(home: &Home, store: &mut dyn crate::Store) -> Result<()> {
    let path = home.annotations_path();
    let length = match std::fs::metadata(&path) {
        Ok(meta) => meta.len(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => 0,
        Err(e) => return Err(Error::io("look at", &path, e)),
    };
    let before = store.annotations_read()?;
    if length == before {
        return Ok(());
    }
    // A shorter journal is another one, as after a copy of the directory.
    let anew = length < before;
    let from = if anew { 0 } else { before };
    let (records, read) = match length {
        0 => (Vec::new(), 0),
        _ => read_since(&path, from).map_err(|e| Error::io("read", &path, e))?,
    };
    if read == before && !anew {
        return Ok(());
    }
    store.annotate(&records, read, anew)
}

/// The complete lines from this position on, and the position after them. A line that is no record
/// is skipped.
fn read_since(path: &Path, from: u64) -> io::Result<(Vec<AnnotationRecord>, u64)> {
    let mut file = regular::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    let end = text
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |last| last + 1);
    Ok((from_lines(&text[..end]), from + end as u64))
}

/// The records in lines of a journal or of an export.
pub fn from_lines(text: &[u8]) -> Vec<AnnotationRecord> {
    let lines = text.split(|&byte| byte == b'\n');
    lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

/// The lines of records, in JSON.
pub fn to_lines(records: &[impl Serialize]) -> String {
    let mut text = String::new();
    for record in records {
        // A record has only strings, which always have a JSON form.
        text.push_str(&serde_json::to_string(record).unwrap_or_default());
        text.push('\n');
    }
    text
}

/// The records as lines with the present time and origin.
fn stamped_lines(records: &[AnnotationRecord]) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        #[serde(flatten)]
        record: &'a AnnotationRecord,
        at: i64,
        by: &'a str,
    }
    let (at, by) = (now(), origin());
    let lines: Vec<Line<'_>> = records
        .iter()
        .map(|record| Line {
            record,
            at,
            by: &by,
        })
        .collect();
    to_lines(&lines)
}

/// The user id and the host name of this process.
pub(crate) fn origin() -> String {
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy().into_owned();
    format!("{}@{host}", rustix::process::geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(key: &str, value: &str) -> AnnotationRecord {
        AnnotationRecord::Set(Annotation {
            run: "r".into(),
            kind: AnnotationKind::Tag,
            key: key.into(),
            value: Some(value.into()),
        })
    }

    #[test]
    fn a_line_that_was_cut_off_damages_no_other() {
        let tmp = tempfile::tempdir().unwrap();
        let home = Home::open(tmp.path()).unwrap();
        append(&home, &[tag("a", "1")]).unwrap();
        let whole = std::fs::read(home.annotations_path()).unwrap();
        std::fs::write(home.annotations_path(), [&whole[..], &whole[..9]].concat()).unwrap();
        append(&home, &[tag("b", "2\n")]).unwrap();
        let (records, read) = read_since(&home.annotations_path(), 0).unwrap();
        assert_eq!(records, [tag("a", "1"), tag("b", "2\n")]);
        assert_eq!(
            read,
            std::fs::metadata(home.annotations_path()).unwrap().len()
        );
    }
}
