//! Directories that the run could not remove or replace because they had entries.
//!
//! In: the paths of such directories. Out: an entry in each that would be empty in the root,
//! because the run used none of its entries. The record does not have their names. Invariant: a
//! directory that the run also removed, or in which it made something, gets none.

use super::EntrySource;
use super::builder::PlanBuilder;
use super::initial_state::{InitialState, is_plain};

/// The path of the entry below its directory. No run uses it.
const ENTRY: &[u8] = b"/.backstory-entry";

impl PlanBuilder<'_> {
    /// Adds the entries. This machine's files are there in any case if they are visible.
    pub fn occupy(&mut self, first: &InitialState) {
        if self.deviations.allow_host {
            return;
        }
        for path in &first.occupied {
            let directory = self.real(path);
            if is_plain(&directory) && self.would_be_empty(&directory, first) {
                // A run that only failed to remove it does not know that it is a directory.
                self.directories_to(&directory);
                let path = [&directory[..], ENTRY].concat();
                self.put(&path, EntrySource::Zeros(0), 0o600, 0);
            }
        }
    }

    /// True for a directory that has no entry in the plan, and which the run left alone.
    fn would_be_empty(&self, directory: &[u8], first: &InitialState) -> bool {
        let own = self.entries.get(directory).map(|entry| &entry.what);
        let within = [directory, b"/"].concat();
        let next = self.entries.range(within.clone()..).next();
        let has_file = next.is_some_and(|(path, _)| path.starts_with(&within));
        let has_name = self.also.iter().any(|name| name.path.starts_with(&within));
        let mut made = first.made.iter();
        let mut paths = first.paths.iter();
        own.is_none_or(|own| *own == EntrySource::Directory)
            && !has_file
            && !has_name
            && !made.any(|path| {
                let path = [&self.real(path)[..], b"/"].concat();
                path.starts_with(&within) || within.starts_with(&path)
            })
            && !paths.any(|path| path.changed && self.real(&path.path) == directory)
    }
}
