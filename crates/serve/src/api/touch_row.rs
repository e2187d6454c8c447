//! The acts of a process on a file.

use backstory_query::answer::{Derivation, FileTouch};
use backstory_store::ActivityKey;
use backstory_vocabulary::Word;
use backstory_workflow::shell;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use super::ids;
use super::run_row::seconds;
use crate::path_text::PathText;

/// The acts of one process on one file.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct TouchRow {
    /// The run.
    pub run: String,
    /// The name of the run.
    pub run_name: Option<String>,
    /// The process.
    pub process: String,
    /// Its process id.
    pub pid: u32,
    /// Its program.
    pub program: Option<PathText>,
    /// Its arguments as a shell line.
    pub line: String,
    /// The name of the file in the run.
    pub path: PathText,
    /// `read`, `write` …, as for the files of a run.
    pub access: Vec<&'static str>,
    /// `seen` or `possible`.
    pub certainty: &'static str,
    /// The first act.
    pub start: f64,
    /// The end of the last one.
    pub end: f64,
    /// Names that the process gave to the file or to a copy of it.
    pub to: Vec<DerivedName>,
    /// Names that the file or its content had before.
    pub from: Vec<DerivedName>,
}

/// A name that a file got from the kernel.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct DerivedName {
    /// `renamed`, `linked` or `copied`.
    pub how: &'static str,
    /// The name.
    pub path: PathText,
}

impl From<&FileTouch> for TouchRow {
    fn from(touch: &FileTouch) -> TouchRow {
        let names = |all: &[(Derivation, _)]| all.iter().map(DerivedName::from).collect();
        TouchRow {
            run: touch.run.clone(),
            run_name: touch.run_name.clone(),
            process: ids::of_process(ActivityKey(touch.id)),
            pid: touch.activity.pid,
            program: touch.activity.exec_path.as_ref().map(Into::into),
            line: shell::line(&touch.activity.argv),
            path: (&touch.path).into(),
            access: touch.access.iter().map(|access| access.word()).collect(),
            certainty: touch.certainty.word(),
            start: seconds(touch.interval.start),
            end: seconds(touch.interval.end),
            to: names(&touch.to),
            from: names(&touch.from),
        }
    }
}

impl TouchRow {
    /// True if the process gave the file its content or its name.
    pub fn makes(touch: &FileTouch) -> bool {
        use backstory_query::answer::Access::{Rename, Write};
        let changes = |access: &_| matches!(access, Write | Rename);
        touch.access.iter().any(changes) || !touch.from.is_empty()
    }
}

impl From<&(Derivation, backstory_eventlog::event::Bytes)> for DerivedName {
    fn from((how, path): &(Derivation, backstory_eventlog::event::Bytes)) -> DerivedName {
        DerivedName {
            how: match how {
                Derivation::Renamed => "renamed",
                Derivation::Linked => "linked",
                Derivation::Copied => "copied",
            },
            path: path.into(),
        }
    }
}
