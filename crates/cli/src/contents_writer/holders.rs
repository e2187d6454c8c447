//! Names a content instead of storing it. A package can own the file, or another content-addressed
//! store can have the content, such as git or DVC. The file is read once, for its digest and
//! the checksum that the other side states.
//!
//! Only a large content is left in another store. A run with `--self-contained` stores the contents
//! themselves, also those that an earlier run left elsewhere.

use std::path::Path;

use backstory_contents::{self as contents, Place, digest_of};
use backstory_files::Digest;
use backstory_packages::{HeldFile, Owner, compare};
use backstory_store::facts::{Fact, Package};

use super::source::{Changed, Source};
use super::{ContentsWriter, Error, LARGE};

impl ContentsWriter<'_> {
    /// The package that owns this file, and its digest if the package's checksum matches. A file
    /// that was changed after its installation does not belong to the package. Leaves the source at
    /// its beginning.
    pub(super) fn package(
        &mut self,
        source: &mut Source,
        path: &Path,
    ) -> Result<Option<(Package, Option<Digest>)>, Changed> {
        let named = |owner: Owner, verified| Package {
            manager: owner.manager.to_owned(),
            name: owner.name,
            version: owner.version,
            verified,
        };
        let (mut unverified, mut changed) = (None, false);
        for owner in self.packages.owners(path) {
            let Some(checksum) = &owner.checksum else {
                // An earlier owner with a checksum knows that the file was changed.
                if !changed {
                    unverified.get_or_insert(owner);
                }
                continue;
            };
            let (digest, _, same) = compare(source, checksum).map_err(Changed::Unreadable)?;
            source.check()?;
            source.rewind().map_err(Changed::Unreadable)?;
            if same {
                return Ok(Some((named(owner, true), Some(digest))));
            }
            changed = true;
        }
        Ok(unverified.map(|owner| (named(owner, false), None)))
    }

    /// The digest of the content of `source`, if another store has it, and the contents now say
    /// where. Otherwise the source is at its beginning.
    ///
    /// The source must have the checksum that the name of the other store's file states. If that is
    /// not the source itself, its content is compared, too.
    pub(super) fn left_elsewhere(
        &mut self,
        source: &mut Source,
        real: &Path,
    ) -> Result<Option<Digest>, Changed> {
        if self.self_contained || source.size() < LARGE {
            return Ok(None);
        }
        let Some(held) = self.stores.holder(real) else {
            return Ok(None);
        };
        let HeldFile {
            store,
            path,
            checksum,
        } = held;
        let (digest, size, same) = compare(source, &checksum).map_err(Changed::Unreadable)?;
        source.check()?;
        let place = Place {
            store: store.to_owned(),
            path,
        };
        let is_there = || {
            let (_, mut object) = place.open().ok()?;
            let found = digest_of(&mut object).ok()?;
            (found == (digest, size)).then_some(())
        };
        if !same || (place.path != real && is_there().is_none()) {
            source.rewind().map_err(Changed::Unreadable)?;
            return Ok(None);
        }
        let noted = self.contents.refer(&digest, size, &place);
        noted.map_err(Changed::Failed)?;
        Ok(Some(digest))
    }

    /// True if a content lies in another store and has to be stored here. The run may have to be
    /// self-contained, or the other store has the content no more.
    pub(super) fn is_to_move_here(&self, fact: &Fact) -> Result<bool, Error> {
        let Some(digest) = fact.digest.filter(|_| self.has_places) else {
            return Ok(false);
        };
        let elsewhere = self.contents.is_elsewhere(&digest)?;
        Ok(elsewhere && (self.self_contained || !self.contents.has(&digest)?))
    }

    /// Stores a content that an earlier run left in another store, from there. `false` if that
    /// store has lost it, or if there is no room.
    pub(super) fn move_here(&mut self, fact: &Fact) -> Result<bool, Error> {
        let is_left = self.self_contained && fact.availability.is_stored();
        let Some(digest) = fact.digest.filter(|_| is_left) else {
            return Ok(false);
        };
        let Ok(mut object) = self.contents.read(&digest) else {
            return Ok(false);
        };
        if self.has_room(object.size()).is_err() {
            return Ok(false);
        }
        match self.contents.put(&mut object) {
            Ok((_, size)) => {
                self.put += size;
                Ok(true)
            }
            Err(contents::Error::Source(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
