//! Finds entities by the identity of a file version.

use std::rc::Rc;

use backstory_files::Ident;

use super::cache::{Inodes, Members};
use super::entity_rows::{MEMBERS_IN, member_of};
use super::{SqliteStore, bucket, version_key};
use crate::codec::members::{self, VersionRef};
use crate::same_version;
use crate::{EntityKey, Result};

impl SqliteStore {
    pub(super) fn made_as(&self, ident: &Ident) -> Result<Vec<EntityKey>> {
        let keys = self.all(
            "SELECT entity FROM made WHERE version = ?1",
            [version_key(ident)],
            |row| row.get::<_, i64>(0),
        )?;
        let mut found = Vec::new();
        for key in keys.into_iter().map(|key| EntityKey(key as u64)) {
            let block = self.block(key)?;
            if self.is_version(member_of(&block, key)?.version, ident)? {
                found.push(key);
            }
        }
        Ok(found)
    }

    /// Forgets what was read before another process wrote.
    pub(super) fn renew_cache(&self) -> Result<()> {
        let data_version = self.one("PRAGMA data_version", [], |row| row.get(0))?;
        let mut cache = self.cache.borrow_mut();
        cache.renew(data_version.unwrap_or_default());
        Ok(())
    }

    pub(super) fn known_as(&self, ident: &Ident) -> Result<Vec<EntityKey>> {
        self.renew_cache()?;
        let dirs = self.all(
            "SELECT dir FROM inodes WHERE bucket = ?1",
            [bucket(ident)],
            |row| row.get::<_, u32>(0),
        )?;
        let mut found = Vec::new();
        for dir in dirs {
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
        if let Some(index) = self.cache.borrow().inodes.get(&dir) {
            return Ok(index.clone());
        }
        let mut pairs = Vec::new();
        self.scan(dir, |place, _, _, ident| {
            pairs.extend(ident.map(|ident| (version_key(&ident), place)));
        })?;
        let index = Rc::new(Inodes::new(pairs));
        self.cache.borrow_mut().keep_inodes(dir, index.clone());
        Ok(index)
    }

    fn members_by_version(&self, dir: u32) -> Result<Rc<Members>> {
        if let Some(index) = self.cache.borrow().of_versions.get(&dir) {
            return Ok(index.clone());
        }
        let mut pairs = Vec::new();
        let mut damaged = Ok(());
        self.each(MEMBERS_IN, [dir], |row| {
            let first = row.get::<_, i64>(0)? as u64;
            let told = members::versions(row.get_ref(1)?.as_blob()?, |place, version| {
                if version.dir == dir {
                    let key = EntityKey(first + place as u64);
                    pairs.push((version.index, key));
                }
            });
            damaged = std::mem::replace(&mut damaged, Ok(())).and(told);
            Ok(())
        })?;
        damaged?;
        let index = Rc::new(Members::new(pairs));
        self.cache.borrow_mut().keep_members(dir, index.clone());
        Ok(index)
    }
}
