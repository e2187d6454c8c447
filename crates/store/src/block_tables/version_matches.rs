//! Finds entities by the identity of a file version.

use std::rc::Rc;

use backstory_files::Ident;

use super::cache::{Inodes, Members};
use super::entity_rows::member_of;
use super::{BlockTables, GraphReader, PairTable, bucket, version_key};
use crate::codec::members::{self, VersionRef};
use crate::{EntityKey, Error, Result, VersionMatch, same_version};

impl<T: BlockTables> GraphReader<'_, T> {
    /// See [`crate::GraphStore::same`].
    pub fn same(&self, ident: &Ident, which: VersionMatch) -> Result<Vec<EntityKey>> {
        match which {
            VersionMatch::Made => self.made_as(ident),
            VersionMatch::Any => self.known_as(ident),
        }
    }

    fn made_as(&self, ident: &Ident) -> Result<Vec<EntityKey>> {
        let keys = self.tables.partners(PairTable::Made, version_key(ident))?;
        self.these_made(ident, keys.into_iter())
    }

    /// See [`crate::GraphStore::made_versions`].
    pub fn made_versions(&self, idents: &[Ident]) -> Result<Vec<Vec<EntityKey>>> {
        let mut keys: Vec<i64> = idents.iter().map(version_key).collect();
        keys.sort_unstable();
        keys.dedup();
        let pairs = self.tables.partners_of(PairTable::Made, &keys)?;
        let all = idents.iter().map(|ident| {
            let key = version_key(ident);
            let from = pairs.partition_point(|(other, _)| *other < key);
            let rest = pairs[from..].iter();
            let here = rest.take_while(|(other, _)| *other == key);
            self.these_made(ident, here.map(|(_, entity)| *entity))
        });
        all.collect()
    }

    /// Those of these entities that are this version.
    fn these_made(&self, ident: &Ident, keys: impl Iterator<Item = i64>) -> Result<Vec<EntityKey>> {
        let mut found = Vec::new();
        for key in keys.map(|key| EntityKey(key as u64)) {
            let block = self.block(key)?;
            if self.is_version(member_of(&block, key)?.version, ident)? {
                found.push(key);
            }
        }
        Ok(found)
    }

    /// Forgets what was read before another process wrote.
    pub fn renew_cache(&self) -> Result<()> {
        let data_version = self.tables.data_version()?;
        self.cache().borrow_mut().renew(data_version);
        Ok(())
    }

    fn known_as(&self, ident: &Ident) -> Result<Vec<EntityKey>> {
        self.renew_cache()?;
        let mut found = Vec::new();
        for dir in self.tables.partners(PairTable::Inodes, bucket(ident))? {
            let dir = u32::try_from(dir).map_err(|_| Error::Damaged("index of inodes"))?;
            for index in self.inodes_of(dir)?.with(version_key(ident)) {
                if self.is_version(VersionRef { dir, index }, ident)? {
                    // Most directories only have a neighbouring inode: their entities are not
                    // looked up.
                    found.extend(self.members_by_version(dir)?.with(index));
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// True if a version is that with this identity.
    fn is_version(&self, version: VersionRef, ident: &Ident) -> Result<bool> {
        self.version(version, |version| {
            let known = version.ident.as_ref();
            known.is_some_and(|known| same_version(known, ident))
        })
    }

    fn inodes_of(&self, dir: u32) -> Result<Rc<Inodes>> {
        if let Some(index) = self.cache().borrow().inodes.get(&dir) {
            return Ok(index.clone());
        }
        let mut pairs = Vec::new();
        self.scan(dir, |place, _, _, ident| {
            pairs.extend(ident.map(|ident| (version_key(&ident), place)));
        })?;
        let index = Rc::new(Inodes::new(pairs));
        self.cache().borrow_mut().keep_inodes(dir, index.clone());
        Ok(index)
    }

    fn members_by_version(&self, dir: u32) -> Result<Rc<Members>> {
        if let Some(index) = self.cache().borrow().of_versions.get(&dir) {
            return Ok(index.clone());
        }
        let mut pairs = Vec::new();
        self.tables.members_in(dir, |first, block| {
            members::versions(block, |place, version| {
                if version.dir == dir {
                    pairs.push((version.index, EntityKey(first as u64 + place as u64)));
                }
            })
        })?;
        let index = Rc::new(Members::new(pairs));
        self.cache().borrow_mut().keep_members(dir, index.clone());
        Ok(index)
    }
}
