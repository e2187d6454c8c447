//! Opens the store for a question: indexes pending logs first, then answers come from the store.
//!
//! Invariant: a question about what was recorded reads the graph and the facts of the store, and no
//! log. A log is read only to index it, and by `log --raw`.

use std::path::Path;

use backstory_contents::Contents;
use backstory_eventlog::run::RunHeader;
use backstory_files::Digest;
use backstory_query as query;
use backstory_session as session;
use backstory_store::{self as store, EngineControl, Home, Store, open_store};

use crate::error::{Failure, chain, complain};
use crate::index::{self, Busy};
use crate::running_runs;

/// An open store that is up to date.
pub struct CurrentStore {
    /// Its directory.
    pub home: Home,
    /// Its graph and facts.
    pub store: Box<dyn Store>,
}

impl Drop for CurrentStore {
    fn drop(&mut self) {
        self.leave_the_rest();
    }
}

impl CurrentStore {
    /// Opens the store and brings it up to date. If that fails (a store that may only be read), the
    /// answer comes from what the store has, and a line on stderr says so.
    pub fn open(chosen: Option<&Path>) -> Result<CurrentStore, Failure> {
        backstory_sys::heap::use_huge_pages();
        let dir = Home::directory(chosen)?;
        let home = Home::open_to_read(&dir)?;
        running_runs::let_end(&home);
        let mut store = open_store(&home)?;
        // The user waits for the answer. The checkpoint of the WAL can follow in the background.
        store.leave_log()?;
        match index::bring_up_to_date(&home, &mut store, Busy::Wait, false) {
            Ok(failed) => failed.iter().for_each(|bad| {
                complain(&format!(
                    "run {} could not be indexed, so this answer leaves it out: {}",
                    bad.run, bad.reason
                ));
            }),
            Err(error) => complain(&format!(
                "cannot index the newest runs, so this answer leaves them out: {}",
                chain(&error)
            )),
        }
        // Contents are stored in the background. The answer leaves out those that are not stored
        // yet.
        if let Err(error) = store::catch_up(&home, &mut store) {
            complain(&format!(
                "cannot read all facts about contents, so this answer may leave some out: {}",
                chain(&error)
            ));
        }
        if let Err(error) = store::catch_up_annotations(&home, &mut store) {
            complain(&format!(
                "cannot read all tags and metrics, so this answer may leave some out: {}",
                chain(&error)
            ));
        }
        Ok(CurrentStore { home, store })
    }

    /// Starts a background indexer for work that the user should not wait for. A background
    /// indexer does the work itself.
    pub fn leave_the_rest(&self) {
        if !self.store.has_long_log() {
            return;
        }
        match backstory_sys::is_last() {
            true => drop(self.store.bring_in_log()),
            false => session::spawn_in_background(&index::in_background(&self.home)),
        }
    }

    /// Ends with the process, without freeing memory in many small pieces before.
    pub fn end(self) {
        self.leave_the_rest();
        std::mem::forget(self);
    }

    /// True if the store of contents has this content.
    pub fn has_content(&self, digest: &Digest) -> bool {
        let contents = Contents::open(&self.home.contents_dir());
        contents.is_ok_and(|contents| contents.has(digest).unwrap_or(false))
    }

    /// Prints which runs an answer about files leaves out: their command has ended, but not all of
    /// their processes.
    pub fn tell_left_running(&self) {
        for header in running_runs::left_running(&self.home, |_| true) {
            complain(&format!(
                "{}; this answer leaves it out",
                still_recording(&header.id)
            ));
        }
    }

    /// Prints which runs of watches and mounts an answer leaves out, because they have not ended.
    /// `wanted`: those that the question can be about.
    pub fn tell_open_sources(&self, wanted: impl Fn(&RunHeader) -> bool) {
        for header in index::recording(&self.home) {
            let source = header.source.as_deref().filter(|_| wanted(&header));
            if let Some(source) = source {
                complain(&still_observing(&header.id, source));
            }
        }
    }

    /// The id of the run that the user names; by default the latest. An error says if the run is
    /// still being recorded, or if this version could not index it.
    pub fn run(&self, wanted: Option<&str>) -> Result<String, Failure> {
        let found = query::resolve(&self.store, wanted);
        let recording = || index::recording(&self.home);
        match (found, wanted) {
            (Ok(run), None) => {
                let latest = query::runs(&self.store)?
                    .first()
                    .map_or(i64::MIN, |run| run.started);
                if let Some(newer) = recording()
                    .into_iter()
                    .find(|header| header.started > latest)
                {
                    complain(&format!(
                        "{}; this answer is about the latest run before it",
                        still_recording(&newer.id)
                    ));
                }
                Ok(run)
            }
            (Ok(run), Some(_)) => Ok(run),
            (Err(error), None) => match recording().first() {
                Some(header) => Err(Failure::not_found(still_recording(&header.id))),
                None => Err(error.into()),
            },
            (Err(error), Some(wanted)) => {
                if let Some(bad) = index::bad(&self.home, wanted) {
                    return Err(Failure::not_found(bad));
                }
                let meant = |header: &RunHeader| {
                    header.id == wanted || header.name.as_deref() == Some(wanted)
                };
                match recording().into_iter().find(meant) {
                    Some(header) => Err(Failure::not_found(still_recording(&header.id))),
                    None => Err(error.into()),
                }
            }
        }
    }
}

/// Why the run of a source of records is not in the store yet.
fn still_observing(run: &str, source: &str) -> String {
    let command = match source {
        "mount" => "mount",
        _ => "watch",
    };
    format!(
        "run {run} is still being recorded: answers include it after `backstory {command}` has ended"
    )
}

/// Why a run is not in the store yet.
fn still_recording(run: &str) -> String {
    format!("run {run} is still being recorded: processes of it are running")
}
