//! The store that the views show.

use std::path::PathBuf;

use backstory_query::RefinedRuns;
use backstory_store::Store;

/// A store, and what lies beside its graph.
pub struct ViewedStore<'s> {
    /// Its graph and facts.
    pub store: &'s dyn Store,
    /// The directory with the byte engine's files of its runs.
    pub bytes: PathBuf,
}

impl<'s> ViewedStore<'s> {
    /// The runs that the byte engine followed.
    pub fn refined_runs(&self) -> RefinedRuns<'s> {
        RefinedRuns::of(self.store, &self.bytes)
    }
}
