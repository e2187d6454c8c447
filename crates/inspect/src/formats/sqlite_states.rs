//! The states that a database of SQLite had: before its write-ahead log, and after each transaction
//! in the log.
//!
//! In: the database, its log and its rollback journal, as they were at one moment. Out: the content
//! of the whole database after a number of transactions.
//!
//! A checkpoint copies pages of the log into the database. The content of such a page before the
//! log is then in no file. It may be that of an older version of the database. Invariant: a state
//! is exactly what a program could read, or it does not exist.

use std::borrow::Cow;
use std::collections::HashMap;

use backstory_inspection::row_changes::DatabaseFiles;

use super::sqlite_content::{JOURNAL, MAGIC};
use super::sqlite_journal;
use super::sqlite_log::LogFrames;
use crate::{Read, UnreadableContent};

/// The states of a database.
pub struct DatabaseStates<'f> {
    /// The database without its log. Empty if it does not exist yet.
    base: Cow<'f, [u8]>,
    log: Option<LogFrames<'f>>,
    /// For each transaction of the log: the number of frames up to its end, and the number of pages
    /// of the database after it.
    commits: Vec<(usize, usize)>,
    page_size: usize,
    /// The frames that each page is in, in order.
    frames: HashMap<usize, Vec<usize>>,
    /// A sentence for each part that is not read.
    pub notes: Vec<String>,
}

impl<'f> DatabaseStates<'f> {
    /// Reads the files of a database.
    pub fn read(files: DatabaseFiles<'f>) -> Read<DatabaseStates<'f>> {
        let mut notes = Vec::new();
        let mut base = Cow::Borrowed(files.database);
        if let Some(before) = sqlite_journal::rolled_back(files.database, files.journal)? {
            base = Cow::Owned(before);
            notes.push(
                "a transaction was not finished: the next program that opens the database undoes \
                 it, and its rows are left out"
                    .to_owned(),
            );
        }
        if !base.is_empty() && (!base.starts_with(MAGIC) || base.len() < 100) {
            let why = "it is no database of SQLite, or it is encrypted";
            return Err(UnreadableContent(why.to_owned()));
        }
        let log = match files.log {
            [] => None,
            bytes => Some(LogFrames::read(bytes).map_err(|error| {
                UnreadableContent(format!("its write-ahead log cannot be read: {error}"))
            })?),
        };
        let own = (!base.is_empty()).then(|| page_size(&base));
        let page_size = match (own, &log) {
            (Some(own), Some(log)) if own != log.page_size => {
                return Err(UnreadableContent(format!(
                    "its write-ahead log has pages of {} bytes, and the database of {own}: it is \
                     of another database",
                    log.page_size
                )));
            }
            (own, log) => own.or(log.as_ref().map(|log| log.page_size)),
        };
        let mut states = DatabaseStates {
            base,
            log,
            commits: Vec::new(),
            page_size: page_size.unwrap_or(4096),
            frames: HashMap::new(),
            notes,
        };
        states.find_commits();
        Ok(states)
    }

    fn find_commits(&mut self) {
        let Some(log) = &self.log else { return };
        let mut written = Vec::new();
        for (at, frame) in log.frames.iter().enumerate() {
            written.push((frame.page as usize, at));
            if let Some(pages) = frame.commits {
                self.commits.push((at + 1, pages as usize));
                for (page, at) in written.drain(..) {
                    self.frames.entry(page).or_default().push(at);
                }
            }
        }
        if !written.is_empty() {
            self.notes.push(format!(
                "the last {} frames of its write-ahead log are of a transaction that was not \
                 committed",
                written.len()
            ));
        }
        if log.is_torn {
            let torn = "its write-ahead log ends within a frame, which does not count";
            self.notes.push(torn.to_owned());
        }
        if log.others > 0 {
            self.notes.push(format!(
                "{} frames of its write-ahead log do not count: they are of before a checkpoint, or \
                 damaged",
                log.others
            ));
        }
    }

    /// The number of transactions in the log.
    pub fn transactions(&self) -> usize {
        self.commits.len()
    }

    /// The number of the log's first transactions that an older state of the same log had.
    pub fn in_common(&self, older: &DatabaseStates<'_>) -> usize {
        let (Some(log), Some(other)) = (&self.log, &older.log) else {
            return 0;
        };
        let is_same = log.salts == other.salts && self.commits.len() >= older.commits.len();
        match is_same {
            true => older.commits.len(),
            false => 0,
        }
    }

    /// True if no checkpoint came between an older state with this content and the log's beginning:
    /// its pages are those of before the log.
    pub fn begins_at(&self, older: &DatabaseStates<'_>, content: &[u8]) -> bool {
        let is_next = match (&self.log, &older.log) {
            (Some(log), Some(other)) if log.salts == other.salts => true,
            (Some(log), _) => log.checkpoint == 0 && older.commits.is_empty(),
            (None, _) => false,
        };
        is_next && (content.is_empty() || self.has_pages_of(content))
    }

    /// True if the pages that the log does not have are the same in another content.
    fn has_pages_of(&self, content: &[u8]) -> bool {
        let pages = self.base.chunks_exact(self.page_size);
        let others = content.chunks_exact(self.page_size);
        pages.zip(others).enumerate().all(|(at, (page, other))| {
            let is_same = || match at {
                0 => without_counters(page) == without_counters(other),
                _ => page == other,
            };
            self.frames.contains_key(&(at + 1)) || is_same()
        })
    }

    /// The whole database after this number of the log's transactions, with the head of a database
    /// without a log. `None` if a page is in no file. `older` has the pages of before the log.
    pub fn after(&self, transactions: usize, older: Option<&[u8]>) -> Option<Vec<u8>> {
        let size = self.page_size;
        let (frames, pages) = match transactions.checked_sub(1) {
            Some(last) => *self.commits.get(last)?,
            None => (0, self.base.len() / size),
        };
        // A damaged head of a frame must not cost memory.
        let most = self.base.len() / size + self.log.as_ref().map_or(0, |log| log.frames.len());
        if pages > most.max(older.map_or(0, |older| older.len() / size)) {
            return None;
        }
        let mut all = Vec::with_capacity(pages * size);
        for page in 1..=pages {
            all.extend_from_slice(self.page(page, frames, older)?);
        }
        if let Some(place) = all.get_mut(JOURNAL) {
            place.fill(1);
        }
        Some(all)
    }

    /// A page after this number of frames.
    fn page<'s>(&'s self, page: usize, frames: usize, older: Option<&'s [u8]>) -> Option<&'s [u8]> {
        let own =
            |content: &'s [u8]| content.get((page - 1) * self.page_size..page * self.page_size);
        let written = self.frames.get(&page).map_or(&[][..], |all| all);
        let content = |at: usize| Some(self.log.as_ref()?.frames.get(at)?.content);
        let until = written.partition_point(|at| *at < frames);
        if let Some(last) = until.checked_sub(1) {
            return content(written[last]);
        }
        let base = own(&self.base);
        // A checkpoint has copied a later content of the page.
        let is_copied = |base: &[u8]| written.iter().any(|at| content(*at) == Some(base));
        match base {
            Some(base) if !is_copied(base) => Some(base),
            _ => own(older?),
        }
    }
}

/// The first page without what a change of the journal's mode changes: the mode, and the counters
/// of changes.
fn without_counters(page: &[u8]) -> Vec<u8> {
    let mut page = page.to_vec();
    for place in [JOURNAL, 24..28, 92..100] {
        if let Some(bytes) = page.get_mut(place) {
            bytes.fill(0);
        }
    }
    page
}

/// The bytes of a page, of a database that is not empty.
fn page_size(database: &[u8]) -> usize {
    match u16::from_be_bytes([database[16], database[17]]) {
        1 => 65536,
        size => usize::from(size).max(512),
    }
}
