//! The history of annotations: every record of the journal with its time and its origin. Two
//! stores that exchange their histories agree on every value.
//!
//! In: lines of the journal, and records from another store. Out: the records of each run, and the
//! lines that a merge appends.
//!
//! ```text
//! {"run": "7hx2k9qa", "kind": "name", "key": "", "value": "nightly", "at": 1790000000000000000,
//!  "by": "1000@host"}
//! ```
//!
//! Invariants:
//!
//! - The record with the greatest `(at, by, value)` counts: the last writer wins. So a merge of two
//!   sets of records gives the same values in either order.
//! - A merge only appends to the journal, and its last line about a key is the record that counts.
//!   So a reader of lines and a reader of times agree.
//! - A line without a time is older than every line with one. Its time is its number among the
//!   lines about its key.
//!
//! Absent: the removal of a run. `rm` removes a run from one store, and from no other.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Read;

use backstory_files::now;
use serde::{Deserialize, Serialize};

use crate::annotations::{self, Annotation, origin};
use crate::{Error, GraphStore, Home, Label, Result, Store, is_run_id, is_run_name};

/// The kinds of records that a merge accepts. `name` and `note` have an empty key.
const KINDS: [&str; 7] = [
    "tag",
    "parameter",
    "metric",
    "checkout",
    "replay",
    NAME,
    NOTE,
];
const NAME: &str = "name";
const NOTE: &str = "note";

/// Longest key, in bytes.
const LONGEST_KEY: usize = 4096;
/// Longest value, in bytes.
const LONGEST_VALUE: usize = 1 << 20;
/// Longest origin, in bytes.
const LONGEST_ORIGIN: usize = 256;
/// How far ahead another machine's clock may be, in ns. A later record would win for ever.
const AHEAD: i64 = 24 * 3600 * 1_000_000_000;

/// A record of the journal with its time and origin. The order is by run, kind and key, then by
/// time: the last record of a key counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StampedAnnotation {
    /// The run's id.
    pub run: String,
    /// A word of [`AnnotationKind`](crate::AnnotationKind), `name` or `note`.
    pub kind: String,
    /// Its key, unique among those of its kind and run.
    pub key: String,
    /// When it was written, in ns since 1970. 0 in a line of an older program.
    #[serde(default)]
    pub at: i64,
    /// The user id and host name of the writer: `1000@host`. Empty in a line of an older program.
    #[serde(default)]
    pub by: String,
    /// Its value. `None` removes the annotation.
    pub value: Option<String>,
}

/// The subject of a record: run, kind and key.
type Subject = (String, String, String);

impl StampedAnnotation {
    /// A new name or note of a run.
    pub fn label(run: &str, label: Label, text: Option<&str>) -> StampedAnnotation {
        StampedAnnotation {
            run: run.to_owned(),
            kind: word(label).to_owned(),
            key: String::new(),
            at: 0,
            by: String::new(),
            value: text.map(str::to_owned),
        }
    }

    /// An annotation without a time yet.
    pub fn of(annotation: Annotation) -> StampedAnnotation {
        StampedAnnotation {
            run: annotation.run,
            kind: annotation.kind.word().to_owned(),
            key: annotation.key,
            at: 0,
            by: String::new(),
            value: annotation.value,
        }
    }

    fn subject(&self) -> Subject {
        (self.run.clone(), self.kind.clone(), self.key.clone())
    }

    /// True if another store may add this record. `now` is in ns since 1970.
    fn is_acceptable(&self, now: i64) -> bool {
        let plain = |text: &str| !text.chars().any(char::is_control);
        let word = |text: &str| plain(text) && !text.contains(char::is_whitespace);
        let value = self.value.as_deref().unwrap_or_default();
        let shape = match self.kind.as_str() {
            NAME => self.key.is_empty() && (self.value.is_none() || is_run_name(value)),
            NOTE => self.key.is_empty(),
            "tag" => !self.key.is_empty() && word(&self.key),
            kind => KINDS.contains(&kind),
        };
        shape
            && is_run_id(&self.run)
            && self.key.len() <= LONGEST_KEY
            && value.len() <= LONGEST_VALUE
            && self.by.len() <= LONGEST_ORIGIN
            && plain(&self.by)
            && (1..=now.saturating_add(AHEAD)).contains(&self.at)
    }
}

fn word(label: Label) -> &'static str {
    match label {
        Label::Name => NAME,
        Label::Note => NOTE,
    }
}

/// A line of the journal, of whatever kind.
#[derive(Deserialize)]
#[serde(untagged)]
enum JournalLine {
    Set(StampedAnnotation),
    Forgotten { forgotten: String },
}

/// The records of a journal, by run.
#[derive(Debug, Default)]
pub struct AnnotationHistory {
    runs: BTreeMap<String, BTreeSet<StampedAnnotation>>,
    /// The last line about each subject.
    last: HashMap<Subject, StampedAnnotation>,
}

impl AnnotationHistory {
    /// The history in the journal of a store. Empty if it has none.
    pub fn of(home: &Home) -> Result<AnnotationHistory> {
        let path = home.annotations_path();
        match backstory_files::regular::read(&path) {
            Ok(text) => Ok(AnnotationHistory::from_lines(&text)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(AnnotationHistory::default()),
            Err(e) => Err(Error::io("read", &path, e)),
        }
    }

    /// The history in lines of a journal. A line that is no record is skipped.
    pub fn from_lines(text: &[u8]) -> AnnotationHistory {
        let mut history = AnnotationHistory::default();
        let mut unstamped: HashMap<Subject, i64> = HashMap::new();
        for line in text.split(|&byte| byte == b'\n') {
            match serde_json::from_slice(line) {
                Ok(JournalLine::Set(mut record)) => {
                    if record.at == 0 {
                        let number = unstamped.entry(record.subject()).or_default();
                        *number += 1;
                        record.at = *number;
                    }
                    history.insert(record);
                }
                Ok(JournalLine::Forgotten { forgotten }) => {
                    history.runs.remove(&forgotten);
                    history.last.retain(|(run, ..), _| *run != forgotten);
                    unstamped.retain(|(run, ..), _| *run != forgotten);
                }
                Err(_) => {}
            }
        }
        history
    }

    fn insert(&mut self, record: StampedAnnotation) {
        self.last.insert(record.subject(), record.clone());
        let of_run = self.runs.entry(record.run.clone()).or_default();
        of_run.insert(record);
    }

    /// The records of a run, in their order.
    pub fn of_run(&self, run: &str) -> impl Iterator<Item = &StampedAnnotation> {
        self.runs.get(run).into_iter().flatten()
    }

    /// The runs that have records.
    pub fn runs(&self) -> impl Iterator<Item = &str> {
        self.runs.keys().map(String::as_str)
    }

    /// The record of a subject that counts.
    fn newest(&self, (run, kind, key): &Subject) -> Option<&StampedAnnotation> {
        let mut of_run = self.runs.get(run)?.iter().rev();
        of_run.find(|record| record.kind == *kind && record.key == *key)
    }

    /// The name or note of a run that counts: `None` if no record is about it, and `Some(None)` if
    /// the newest removes it.
    pub fn label(&self, run: &str, label: Label) -> Option<Option<&str>> {
        let subject = (run.to_owned(), word(label).to_owned(), String::new());
        self.newest(&subject).map(|record| record.value.as_deref())
    }

    /// The records to append, so that this history has all of `incoming`, too.
    fn additions(&mut self, incoming: Vec<StampedAnnotation>) -> Vec<StampedAnnotation> {
        let known = |record: &StampedAnnotation| {
            let of_run = self.runs.get(&record.run);
            of_run.is_some_and(|of_run| of_run.contains(record))
        };
        let fresh: BTreeSet<_> = incoming.into_iter().filter(|one| !known(one)).collect();
        let mut lines: Vec<StampedAnnotation> = Vec::new();
        for record in fresh {
            lines.push(record.clone());
            self.insert(record);
        }
        // Where an older record came last, the one that counts follows once more.
        let subjects: BTreeSet<Subject> = lines.iter().map(StampedAnnotation::subject).collect();
        for subject in subjects {
            let newest = self.newest(&subject).cloned();
            if let Some(newest) = newest.filter(|newest| self.last.get(&subject) != Some(newest)) {
                lines.push(newest.clone());
                self.insert(newest);
            }
        }
        lines
    }
}

/// The result of a merge.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct MergedAnnotations {
    /// Records that are new in the journal.
    pub added: u64,
    /// Records that were refused: of no known kind, too long, or from a clock that is a day ahead.
    pub refused: u64,
}

/// Adds the records of another store to the journal. Names and notes reach the database by
/// [`apply_labels`], the rest by [`catch_up_annotations`](crate::catch_up_annotations).
pub fn merge(home: &Home, mut incoming: Vec<StampedAnnotation>) -> Result<MergedAnnotations> {
    let (now, all) = (now(), incoming.len());
    incoming.retain(|record| record.is_acceptable(now));
    let refused = (all - incoming.len()) as u64;
    let path = home.annotations_path();
    let mut file = annotations::locked(&path)?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)
        .map_err(|e| Error::io("read", &path, e))?;
    let lines = AnnotationHistory::from_lines(&text).additions(incoming);
    if !lines.is_empty() {
        annotations::append_text(&mut file, &path, annotations::to_lines(&lines))?;
    }
    Ok(MergedAnnotations {
        added: lines.len() as u64,
        refused,
    })
}

/// Appends records of this moment that count from now on, also if the clock was set back.
pub fn append_newest(home: &Home, mut records: Vec<StampedAnnotation>) -> Result<()> {
    let path = home.annotations_path();
    let mut file = annotations::locked(&path)?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)
        .map_err(|e| Error::io("read", &path, e))?;
    let history = AnnotationHistory::from_lines(&text);
    let (now, by) = (now(), origin());
    for record in &mut records {
        let before = history.newest(&record.subject());
        record.at = before.map_or(now, |before| now.max(before.at.saturating_add(1)));
        record.by.clone_from(&by);
    }
    annotations::append_text(&mut file, &path, annotations::to_lines(&records))
}

/// Gives the runs of this directory the names and notes that count in its journal.
pub fn apply_labels(home: &Home, store: &mut dyn Store) -> Result<()> {
    let history = AnnotationHistory::of(home)?;
    for run in history.runs() {
        if !home.log_path(run).exists() {
            continue;
        }
        let Some(record) = GraphStore::run(&*store, run)? else {
            continue;
        };
        let labels = [(Label::Name, &record.name), (Label::Note, &record.note)];
        for (label, present) in labels {
            match history.label(run, label) {
                Some(text) if text != present.as_deref() => store.set_label(run, label, text)?,
                _ => {}
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
