//! The change inside of a file between a version and the one before it.
//!
//! An inspector states it in the terms of the file's format. It is one line of `of`, and of a
//! version in `serve`.
//!
//! In: a version whose content is stored, and whose former content is stored. Out: the answer of
//! the inspector. Invariants: only stored contents are read. The question costs at most
//! [`PATIENCE`]; without a former content it starts no process.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use backstory_inspection::{Answer, FormatReader, InspectionWorker, LARGEST_INSPECTED, Question};
use backstory_query as query;
use backstory_store::{EntityKey, GraphStore};

use crate::current_store::CurrentStore;
use crate::database_rows;
use crate::file_inspector::{self, FileInspector};
use crate::json::Value;
use crate::text::line::printable;
use crate::version_contents::VersionContents;

/// The longest time that a line about a change may cost.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// A change inside of a file.
#[derive(Debug)]
pub struct VersionChange {
    /// The run that left the former content.
    pub former_run: Option<String>,
    /// The inspector's answer.
    pub answer: Answer,
}

impl VersionChange {
    /// The change by which a file got the content of a version. `None` if one of the contents is
    /// not stored, if no inspector reads the format, or if it has nothing to tell in time. The line
    /// is an addition to another answer, so a trouble is not reported.
    pub fn into_version(current: &CurrentStore, version: EntityKey) -> Option<VersionChange> {
        let entity = current.store.entity(version).ok()?;
        let path = Path::new(OsStr::from_bytes(&entity.path));
        let former = query::former_content(&current.store, path, version).ok()??;
        let former_size = former.event.ident.map(|ident| ident.size);
        let sizes = [entity.ident.map(|ident| ident.size), former_size];
        if sizes.iter().any(|size| !is_small(*size)) {
            return None;
        }
        let contents = VersionContents::new(current);
        let new = contents.read(version).ok()??;
        let old = contents.read(former.version).ok()??;
        let formats = FormatReader::new().within(PATIENCE);
        let versions = (former.version, version);
        let rows = match formats.is_of_database(&entity.path, &new) {
            true => database_rows::between(&contents, &formats, &entity.path, versions).ok()?,
            false => None,
        };
        let answer = match rows.and_then(Result::ok) {
            Some(rows) => rows,
            None => changes(current.home.dir(), &entity.path, &old, &new)?,
        };
        let run = former.event.run;
        Some(VersionChange {
            former_run: run.and_then(|run| current.store.run_id(run).ok().flatten()),
            answer,
        })
    }

    /// In one line: the sentences, and since which run.
    pub fn line(&self) -> String {
        let since = match &self.former_run {
            Some(run) => format!("since run {run}"),
            None => "since the version before".to_owned(),
        };
        let sentences = printable(self.answer.one_line().as_bytes());
        format!("{since}: {sentences}")
    }

    /// As JSON: the fields of `inside` in the answer of `diff`, and the former run.
    pub fn json(&self) -> Value {
        Value::Object(vec![
            ("former_run", self.former_run.as_ref().into()),
            ("inspector", self.answer.inspector.as_str().into()),
            ("version", self.answer.version.into()),
            ("sentences", Value::array(&self.answer.sentences)),
            ("changes", file_inspector::json_map(&self.answer.changes)),
        ])
    }
}

fn is_small(size: Option<i64>) -> bool {
    size.is_some_and(|size| u64::try_from(size).is_ok_and(|size| size <= LARGEST_INSPECTED))
}

/// The inspector's answer about two contents of a file, if it has sentences. It comes from the
/// store's kept answers, or from the worker within [`PATIENCE`].
pub fn changes(store: &Path, name: &[u8], old: &[u8], new: &[u8]) -> Option<Answer> {
    let inspector = FileInspector::new(Some(store));
    let entry = inspector.entry(name, new)?;
    let is_fit =
        inspector.takes(entry, name, old) && old.len().max(new.len()) as u64 <= LARGEST_INSPECTED;
    if !is_fit {
        return None;
    }
    let worker = InspectionWorker::find().ok()?.within(PATIENCE);
    let question = Question {
        name,
        first: old,
        second: Some(new),
        key: inspector.key(entry, name),
    };
    let answer = inspector.ask_worker(&worker, entry, &question);
    answer.ok().filter(|answer| !answer.sentences.is_empty())
}
