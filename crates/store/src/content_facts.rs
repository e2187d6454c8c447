//! The part of a store that has the facts about contents.
//!
//! The facts come from the journal `DIR/facts.log`: [`catch_up`] brings a store up to date with it.
//! An engine must implement five methods; the others have defaults.

use backstory_files::{Digest, Ident};

use crate::facts::{self, DirectorySnapshot, Fact, JournalPosition, JournalRecord};
use crate::{GraphStore, Result, RunRecord};

/// The facts about contents. Object safe.
pub trait ContentFacts: GraphStore {
    /// Adds records of the journal, atomically, and remembers how far the journal was read. With
    /// `anew`, everything that was known before is removed first.
    fn learn(&mut self, records: &[JournalRecord], read: JournalPosition, anew: bool)
    -> Result<()>;

    /// How far the journal was read.
    fn learned(&self) -> Result<JournalPosition>;

    /// The fact about a version's content.
    fn fact(&self, ident: &Ident) -> Result<Option<Fact>>;

    /// The facts about the contents of versions. A search asks for hundreds at a time.
    fn facts_of(&self, idents: &[Ident]) -> Result<Vec<Option<Fact>>> {
        idents.iter().map(|ident| self.fact(ident)).collect()
    }

    /// All facts.
    fn facts(&self) -> Result<Vec<Fact>>;

    /// The directory snapshot of a run. `None` if the run's contents were not looked at yet.
    fn directory_snapshot(&self, run: &str) -> Result<Option<DirectorySnapshot>>;

    /// The versions whose content has this digest, in no order.
    fn with_content(&self, digest: &Digest) -> Result<Vec<Ident>> {
        let facts = self.facts()?.into_iter();
        let alike = facts.filter(|fact| fact.digest == Some(*digest));
        Ok(alike.map(|fact| fact.ident).collect())
    }

    /// The same for each of these digests.
    fn with_contents(&self, digests: &[Digest]) -> Result<Vec<Vec<Ident>>> {
        let all = digests.iter();
        all.map(|digest| self.with_content(digest)).collect()
    }

    /// The digests that begin with these hexadecimal digits (lower case), each once, in order.
    fn digests_beginning(&self, digits: &str) -> Result<Vec<Digest>> {
        let facts = self.facts()?.into_iter().filter_map(|fact| fact.digest);
        let mut found: Vec<Digest> = facts
            .filter(|digest| digest.to_string().starts_with(digits))
            .collect();
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// Runs recorded with `--contents` other than `off`, whose contents were not looked at yet, the
    /// oldest first.
    fn runs_without_contents(&self) -> Result<Vec<RunRecord>> {
        let mut waiting = Vec::new();
        for run in self.runs()?.into_iter().rev() {
            if run.header.modes.stores_contents()
                && self.directory_snapshot(&run.header.id)?.is_none()
            {
                waiting.push(run);
            }
        }
        Ok(waiting)
    }
}

/// Brings a store up to date with the journal of facts.
pub fn catch_up(home: &crate::Home, store: &mut dyn crate::Store) -> Result<()> {
    let before = store.learned()?;
    let (records, read, anew) = facts::read_since(&home.facts_path(), before)?;
    match read == before && records.is_empty() {
        true => Ok(()),
        false => store.learn(&records, read, anew),
    }
}
