//! From the command line to a store that is up to date and ready to be current.

use std::path::Path;

use backstory_eventlog::run::RunHeader;
use backstory_query as query;
use backstory_session as session;
use backstory_store::{self as store, Home, SqliteStore};

use crate::error::{Failure, chain, complain};
use crate::index::{self, Busy};
use crate::running_runs;

/// An opened store.
pub struct CurrentStore {
    /// Its directory.
    pub home: Home,
    /// Its graph, up to date.
    pub store: SqliteStore,
}

impl Drop for CurrentStore {
    fn drop(&mut self) {
        self.leave_the_rest();
    }
}

impl CurrentStore {
    /// Opens the store and brings it up to date. Where that is not possible (a store that may only be read), the answer is
    /// given from what is there, and one line says so.
    pub fn open(chosen: Option<&Path>) -> Result<CurrentStore, Failure> {
        backstory_sys::heap::use_huge_pages();
        let dir = Home::directory(chosen)?;
        let home = Home::open_to_read(&dir)?;
        running_runs::let_end(&home);
        let mut store = SqliteStore::open(&home)?;
        // Somebody waits for the answer, nobody for the disk.
        store.leave_log()?;
        match index::bring_up_to_date(&home, &mut store, Busy::Wait, false) {
            Ok(failed) => failed.iter().for_each(|bad| {
                complain(&format!(
                    "run {} could not be indexed and is left out: {}",
                    bad.run, bad.reason
                ));
            }),
            Err(error) => complain(&format!(
                "the newest runs are left out of this answer: {}",
                chain(&error)
            )),
        }
        // Contents are stored in the background: what is not known of them yet is left out of the answer.
        if let Err(error) = store::catch_up(&home, &mut store) {
            complain(&format!(
                "what is known of contents may be left out of this answer: {}",
                chain(&error)
            ));
        }
        Ok(CurrentStore { home, store })
    }

    /// What nobody should wait for is done in the background.
    fn leave_the_rest(&self) {
        if self.store.has_long_log() {
            session::spawn_in_background(&index::in_background(&self.home));
        }
    }

    /// Ends with the process, whose memory need not be given back in a hundred thousand pieces before.
    pub fn end(self) {
        self.leave_the_rest();
        std::mem::forget(self);
    }

    /// Says which runs are left out of an answer about files: those whose command has ended, so that they are meant, too.
    pub fn tell_left_running(&self) {
        for header in running_runs::left_running(&self.home, |_| true) {
            complain(&format!(
                "{}; this answer does without it",
                still_recording(&header.id)
            ));
        }
    }

    /// The id of the run that the user means; the latest if none is named. Runs that are there but cannot be asked yet, or not by
    /// this version, are said to be there.
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
                        "{}; this is the latest run before it",
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
                    return Err(Failure::not_found(format!(
                        "run {} could not be indexed: {}",
                        bad.run, bad.reason
                    )));
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

/// Why a run cannot be asked yet.
fn still_recording(run: &str) -> String {
    format!("run {run} is still being recorded: processes of it are running")
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Failure {
        let line = chain(&error);
        match error {
            store::Error::NoHome | store::Error::NotADirectory(_) => Failure::misuse(line),
            _ => Failure::not_found(line),
        }
    }
}

impl From<query::Error> for Failure {
    fn from(error: query::Error) -> Failure {
        let line = chain(&error);
        match error {
            query::Error::BadPattern(..) => Failure::misuse(line),
            _ => Failure::not_found(line),
        }
    }
}
