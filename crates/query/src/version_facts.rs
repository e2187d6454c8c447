//! Facts about the contents of versions, each read once.
//!
//! In: identities, one at a time. Out: the digest, whether the content is stored, and the other
//! versions with the same content. Many runs read the same headers and libraries, so that the
//! search of a long history asks for each of them hundreds of times.
//!
//! Invariant: the answers are those of the store. They hold for one state of the store, so they are
//! dropped with the search.

use std::cell::RefCell;
use std::rc::Rc;

use backstory_files::{Digest, Ident};
use backstory_store::facts::Fact;
use backstory_store::{Store, same_version};
use rustc_hash::FxHashMap;

use crate::{Result, alike};

/// The fewest versions that are asked for at once. A list of fewer keys is not worth its statement.
pub(crate) const MANY: usize = 8;

/// The content of a version, as far as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct VersionContent {
    pub(crate) digest: Option<Digest>,
    /// True if the content is stored beside the graph.
    pub(crate) kept: bool,
}

impl VersionContent {
    fn of(fact: Fact) -> VersionContent {
        VersionContent {
            digest: fact.digest,
            kept: fact.availability.is_stored(),
        }
    }
}

/// Reads facts about contents, and keeps what it has read.
pub(crate) struct VersionFacts<'s> {
    store: &'s dyn Store,
    contents: RefCell<FxHashMap<Ident, VersionContent>>,
    others: RefCell<FxHashMap<Ident, Rc<[Ident]>>>,
}

impl<'s> VersionFacts<'s> {
    pub(crate) fn new(store: &'s dyn Store) -> VersionFacts<'s> {
        VersionFacts {
            store,
            contents: RefCell::default(),
            others: RefCell::default(),
        }
    }

    /// The content of a version.
    pub(crate) fn content(&self, ident: &Ident) -> Result<VersionContent> {
        if let Some(content) = self.contents.borrow().get(ident) {
            return Ok(*content);
        }
        let fact = self.store.fact(ident)?;
        let content = fact.map(VersionContent::of).unwrap_or_default();
        self.contents.borrow_mut().insert(*ident, content);
        Ok(content)
    }

    /// Reads the contents of many versions at once.
    pub(crate) fn read(&self, idents: &[Ident]) -> Result<()> {
        let mut contents = self.contents.borrow_mut();
        let is_new = |ident: &&Ident| !contents.contains_key(*ident);
        let new: Vec<Ident> = idents.iter().filter(is_new).copied().collect();
        if new.len() < MANY {
            return Ok(());
        }
        for (ident, fact) in new.iter().zip(self.store.facts_of(&new)?) {
            contents.insert(*ident, fact.map(VersionContent::of).unwrap_or_default());
        }
        Ok(())
    }

    /// Reads the other versions with the contents of many versions at once.
    pub(crate) fn read_others(&self, idents: &[Ident]) -> Result<()> {
        let mut new = Vec::new();
        for ident in idents {
            let digest = self.content(ident)?.digest;
            let digest = digest.filter(|_| alike::tells(ident));
            if !self.others.borrow().contains_key(ident) {
                new.extend(digest.map(|digest| (*ident, digest)));
            }
        }
        if new.len() < MANY {
            return Ok(());
        }
        let digests: Vec<Digest> = new.iter().map(|(_, digest)| *digest).collect();
        let mut others = self.others.borrow_mut();
        for ((ident, _), mut found) in new.into_iter().zip(self.store.with_contents(&digests)?) {
            found.retain(|other| !same_version(other, &ident));
            others.insert(ident, found.into());
        }
        Ok(())
    }

    /// The other versions with the content of this one, by [`alike::others`].
    pub(crate) fn others(&self, ident: &Ident) -> Result<Rc<[Ident]>> {
        if let Some(others) = self.others.borrow().get(ident) {
            return Ok(others.clone());
        }
        let digest = self.content(ident)?.digest;
        let others: Rc<[Ident]> = alike::with_content(self.store, ident, digest)?.into();
        self.others.borrow_mut().insert(*ident, others.clone());
        Ok(others)
    }
}
