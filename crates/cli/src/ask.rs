//! From the command line to a store that is up to date and ready to be asked.

use std::path::Path;

use backstory_query as query;
use backstory_store::{self as store, Home, SqliteStore};

use crate::error::{Failure, chain, complain};
use crate::index::{self, Busy};

/// An opened store.
pub struct Asked {
    /// Its directory.
    pub home: Home,
    /// Its graph, up to date.
    pub store: SqliteStore,
}

impl Asked {
    /// Opens the store and brings it up to date. Where that is not possible (a store that may only be read), the answer is
    /// given from what is there, and one line says so.
    pub fn open(chosen: Option<&Path>) -> Result<Asked, Failure> {
        let dir = Home::directory(chosen)?;
        let home = Home::open_to_read(&dir)?;
        let mut store = SqliteStore::open(&home)?;
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
        Ok(Asked { home, store })
    }

    /// The id of the run that the user means; the latest if none is named.
    pub fn run(&self, wanted: Option<&str>) -> Result<String, Failure> {
        let found = query::resolve(&self.store, wanted);
        // A run that could not be indexed is there, and saying that it is not would be a lie.
        if let (Err(_), Some(wanted)) = (&found, wanted)
            && let Some(bad) = index::bad(&self.home, wanted)
        {
            return Err(Failure::not_found(format!(
                "run {} could not be indexed: {}",
                bad.run, bad.reason
            )));
        }
        Ok(found?)
    }
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
