//! Facts about the contents of versions, each read once.
//!
//! In: identities, one at a time. Out: the digest, whether the content is stored, and the versions
//! with the same content. Many runs read the same headers and libraries, so that the search of a
//! long history asks for each of them hundreds of times.
//!
//! Invariant: the answers are those of the store. They hold for one state of the store, so they are
//! dropped with the search.

use std::cell::RefCell;
use std::rc::Rc;

use backstory_files::{Digest, Ident};
use backstory_store::Store;
use backstory_store::facts::Fact;
use rustc_hash::FxHashMap;

use crate::Result;
use crate::alike::{self, SameContent};

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
    same: RefCell<FxHashMap<Digest, Rc<SameContent>>>,
}

impl<'s> VersionFacts<'s> {
    pub(crate) fn new(store: &'s dyn Store) -> VersionFacts<'s> {
        VersionFacts {
            store,
            contents: RefCell::default(),
            same: RefCell::default(),
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

    /// The content by which a version can be joined with others.
    fn telling_digest(&self, ident: &Ident) -> Result<Option<Digest>> {
        let digest = self.content(ident)?.digest;
        Ok(digest.filter(|_| alike::tells(ident)))
    }

    /// Reads at once which versions have the contents of many versions.
    pub(crate) fn read_same(&self, idents: &[Ident]) -> Result<()> {
        let mut new = Vec::new();
        for ident in idents {
            let digest = self.telling_digest(ident)?;
            new.extend(digest.filter(|digest| !self.same.borrow().contains_key(digest)));
        }
        new.sort_unstable();
        new.dedup();
        if new.len() < MANY {
            return Ok(());
        }
        let found = self.store.with_contents(&new)?;
        let mut same = self.same.borrow_mut();
        for (digest, versions) in new.into_iter().zip(found) {
            same.insert(digest, Rc::new(SameContent::new(versions)));
        }
        Ok(())
    }

    /// The versions with the content of this one, which is among them. `None` if its content is not
    /// known, or too small to join versions.
    pub(crate) fn same_content(&self, ident: &Ident) -> Result<Option<Rc<SameContent>>> {
        let Some(digest) = self.telling_digest(ident)? else {
            return Ok(None);
        };
        if let Some(same) = self.same.borrow().get(&digest) {
            return Ok(Some(same.clone()));
        }
        let same = Rc::new(SameContent::new(self.store.with_content(&digest)?));
        self.same.borrow_mut().insert(digest, same.clone());
        Ok(Some(same))
    }
}
