//! Finds entities by the identity of a file version.

use std::rc::Rc;

use backstory_files::Ident;

use super::cache::{Inodes, Members};
use super::entity_rows::{MEMBERS_IN, member_of};
use super::{SqliteStore, bucket, version_key};
use crate::codec::members;
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
            let version = member_of(&block, key)?.version;
            if self.version(version, |version| {
                version
                    .ident
                    .is_some_and(|known| same_version(&known, ident))
            })? {
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
            let inodes = self.inodes_of(dir)?;
            let here = inodes.get(&(ident.dev, ident.ino)).into_iter().flatten();
            for (_, index) in here.filter(|(known, _)| same_version(known, ident)) {
                // Most candidates only have a neighbouring inode: their entities are not looked up.
                found.extend(
                    self.members_by_version(dir)?
                        .get(index)
                        .into_iter()
                        .flatten(),
                );
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    fn inodes_of(&self, dir: u32) -> Result<Rc<Inodes>> {
        if let Some(index) = self.cache.borrow().inodes.get(&dir) {
            return Ok(index.clone());
        }
        let mut index = Inodes::default();
        self.scan(dir, |place, _, _, ident| {
            if let Some(ident) = ident {
                index
                    .entry((ident.dev, ident.ino))
                    .or_default()
                    .push((ident, place));
            }
        })?;
        let index = Rc::new(index);
        self.cache.borrow_mut().keep_inodes(dir, index.clone());
        Ok(index)
    }

    fn members_by_version(&self, dir: u32) -> Result<Rc<Members>> {
        if let Some(index) = self.cache.borrow().of_versions.get(&dir) {
            return Ok(index.clone());
        }
        let mut index = Members::default();
        let mut damaged = Ok(());
        self.each(MEMBERS_IN, [dir], |row| {
            let first = row.get::<_, i64>(0)? as u64;
            let told = members::versions(row.get_ref(1)?.as_blob()?, |place, version| {
                if version.dir == dir {
                    let key = EntityKey(first + place as u64);
                    index.entry(version.index).or_default().push(key);
                }
            });
            damaged = std::mem::replace(&mut damaged, Ok(())).and(told);
            Ok(())
        })?;
        damaged?;
        let index = Rc::new(index);
        self.cache.borrow_mut().keep_members(dir, index.clone());
        Ok(index)
    }
}
