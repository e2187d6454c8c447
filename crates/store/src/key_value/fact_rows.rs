//! Facts about contents as rows: filled from the journal, found by inode and by digest.

use std::collections::BTreeSet;

use backstory_files::{Digest, Ident};

use super::KeyValueStore;
use super::block_rows::pair_keys;
use super::engine::KeyValueEngine;
use super::fetched_rows::{KeyRange, only};
use super::row_keys::{Counter, RowTable, after, last_number};
use crate::block_tables::inode_key;
use crate::codec::RecordReader;
use crate::facts::{DirectorySnapshot, Fact, JournalPosition, JournalRecord};
use crate::{Error, Result, same_version};

/// Records of the journal whose facts are fetched at once.
const RECORDS_AT_ONCE: usize = 512;

/// Most facts about versions of an inode that are fetched ahead.
const FACTS_AHEAD: usize = 8;

impl<E: KeyValueEngine> KeyValueStore<E> {
    pub(super) fn journal_position(&self) -> Result<JournalPosition> {
        let mut position = JournalPosition::default();
        if let Some(row) = self.get(&RowTable::Learned.bytes(&[]))? {
            let damaged = || Error::Damaged("position in the journal of facts");
            let (journal, offset) = row.split_first_chunk().ok_or_else(damaged)?;
            position.journal = *journal;
            position.offset = u64::from_be_bytes(offset.try_into().map_err(|_| damaged())?);
        }
        Ok(position)
    }

    pub(super) fn take_in(
        &self,
        learned: &[JournalRecord],
        read: JournalPosition,
        anew: bool,
    ) -> Result<()> {
        use RowTable::{FactContents, FactInodes, Facts, Snapshots};
        self.cache.borrow_mut().any_facts = None;
        self.transaction(|| {
            if anew {
                for table in [Facts, FactInodes, FactContents, Snapshots] {
                    self.clear(table)?;
                }
            }
            for some in learned.chunks(RECORDS_AT_ONCE) {
                self.expect_facts(some)?;
                some.iter().try_for_each(|one| self.take_in_one(one))?;
            }
            let mark = [&read.journal[..], &read.offset.to_be_bytes()].concat();
            self.put(RowTable::Learned.bytes(&[]), mark)
        })
    }

    fn take_in_one(&self, one: &JournalRecord) -> Result<()> {
        match one {
            JournalRecord::Fact(fact) => self.replace_fact(fact),
            JournalRecord::Run(snapshot) => {
                let mut record = Vec::new();
                snapshot.encode(&mut record);
                let key = RowTable::Snapshots.bytes(snapshot.run.as_bytes());
                self.put(key, record)
            }
            JournalRecord::Forgotten(run) => self.delete(RowTable::Snapshots.bytes(run.as_bytes())),
        }
    }

    /// Fetches what is known of the versions in these records, if reads wait for a server.
    fn expect_facts(&self, learned: &[JournalRecord]) -> Result<()> {
        if !E::FAR {
            return Ok(());
        }
        let mut pairs = BTreeSet::new();
        for one in learned {
            if let JournalRecord::Fact(fact) = one {
                let inode = inode_key(&fact.ident) as u64;
                pairs.insert(pair_keys(RowTable::FactInodes, inode));
            }
        }
        let pairs: Vec<KeyRange> = pairs.into_iter().collect();
        self.begin_to_fetch();
        self.fetch(pairs.clone(), FACTS_AHEAD)?;
        let mut facts = BTreeSet::new();
        for (from, end) in &pairs {
            let found = self.fetched(from, end).into_iter().flatten();
            facts.extend(found.map(|(key, _)| last_number(&key)));
        }
        let facts = facts.into_iter();
        let keys = facts.map(|id| only(&RowTable::Facts.number(id)));
        self.fetch(keys.collect(), 1)
    }

    /// Whether there are any facts, which is read once.
    fn any_facts(&self) -> Result<bool> {
        if let Some(any) = self.cache.borrow().any_facts {
            return Ok(any);
        }
        let any = self.any((&RowTable::Facts.bytes(&[]), &RowTable::Facts.end()))?;
        self.cache.borrow_mut().any_facts = Some(any);
        Ok(any)
    }

    /// The fact about this version, for a question.
    pub(super) fn fact_of(&self, ident: &Ident) -> Result<Option<Fact>> {
        if !self.any_facts()? {
            return Ok(None);
        }
        Ok(self.fact_about(ident)?.map(|(_, fact)| fact))
    }

    /// The fact about this version, and its number.
    pub(super) fn fact_about(&self, ident: &Ident) -> Result<Option<(u64, Fact)>> {
        for id in self.pairs(RowTable::FactInodes, inode_key(ident) as u64)? {
            let fact = self.fact_at(id)?;
            if same_version(&fact.ident, ident) {
                return Ok(Some((id, fact)));
            }
        }
        Ok(None)
    }

    fn fact_at(&self, id: u64) -> Result<Fact> {
        let row = self.get(&RowTable::Facts.number(id))?;
        decode(&row.ok_or(Error::Damaged("fact about contents (it is missing)"))?)
    }

    /// Adds a fact in place of the one that is known of the same version.
    fn replace_fact(&self, fact: &Fact) -> Result<()> {
        let old = self.fact_about(&fact.ident)?;
        if old.as_ref().is_some_and(|(_, old)| !fact.replaces(old)) {
            return Ok(());
        }
        let id = match &old {
            Some((id, _)) => *id,
            None => self.count(Counter::Facts)?,
        };
        if let Some(digest) = old.and_then(|(_, old)| old.digest) {
            self.delete(RowTable::FactContents.pair(digest.prefix(), id))?;
        }
        let mut record = Vec::new();
        fact.encode(&mut record);
        self.put(RowTable::Facts.number(id), record)?;
        let inode = inode_key(&fact.ident) as u64;
        self.put(RowTable::FactInodes.pair(inode, id), [])?;
        match &fact.digest {
            Some(digest) => self.put(RowTable::FactContents.pair(digest.prefix(), id), []),
            None => Ok(()),
        }
    }

    pub(super) fn versions_with(&self, digest: &Digest) -> Result<Vec<Ident>> {
        let mut found = Vec::new();
        for id in self.pairs(RowTable::FactContents, digest.prefix())? {
            let fact = self.fact_at(id)?;
            found.extend((fact.digest == Some(*digest)).then_some(fact.ident));
        }
        Ok(found)
    }

    pub(super) fn digests_with_prefix(&self, digits: &str) -> Result<Vec<Digest>> {
        let key: String = digits.chars().take(16).collect();
        let bound =
            |fill: &str| u64::from_str_radix(&(key.clone() + &fill.repeat(16 - key.len())), 16);
        let (false, Ok(least), Ok(most)) = (key.is_empty(), bound("0"), bound("f")) else {
            return Ok(Vec::new());
        };
        let keys = (
            RowTable::FactContents.pair(least, 0),
            RowTable::FactContents.pair(most, u64::MAX),
        );
        let mut found = Vec::new();
        for key in self.keys((&keys.0, &after(&keys.1)))? {
            found.extend(self.fact_at(last_number(&key))?.digest);
        }
        found.retain(|digest| digest.to_string().starts_with(digits));
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    pub(super) fn all_facts(&self) -> Result<Vec<Fact>> {
        let mut found = Vec::new();
        self.each_of(RowTable::Facts, |_, row| {
            found.push(decode(row)?);
            Ok(())
        })?;
        Ok(found)
    }

    pub(super) fn snapshot_of(&self, run: &str) -> Result<Option<DirectorySnapshot>> {
        let row = self.get(&RowTable::Snapshots.bytes(run.as_bytes()))?;
        let decode = |row: Vec<u8>| {
            DirectorySnapshot::decode(&mut RecordReader::new(&row, "directory_snapshots"))
        };
        row.map(decode).transpose()
    }
}

fn decode(record: &[u8]) -> Result<Fact> {
    Fact::decode(&mut RecordReader::new(record, "fact about contents"))
}
