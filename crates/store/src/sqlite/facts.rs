//! Facts about contents as rows: filled from the journal, found by inode and by digest.

use std::collections::HashMap;

use backstory_files::{Digest, Ident};
use rusqlite::{Connection, Statement, params};
use rustc_hash::FxHashSet;

use super::SqliteStore;
use crate::block_tables::inode_key;
use crate::codec::RecordReader;
use crate::facts::{DirectorySnapshot, Fact, InodeFacts, JournalPosition, JournalRecord};
use crate::same_version;
use crate::{Error, Result};

impl SqliteStore {
    pub(super) fn mark(&self) -> Result<JournalPosition> {
        let found = self.all("SELECT journal, position FROM learned", [], |row| {
            Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, i64>(1)?))
        })?;
        let mut mark = JournalPosition::default();
        if let Some((journal, offset)) = found.first()
            && let Ok(journal) = journal.as_slice().try_into()
        {
            (mark.journal, mark.offset) = (journal, *offset as u64);
        }
        Ok(mark)
    }

    pub(super) fn take_in(
        &mut self,
        learned: &[JournalRecord],
        mark: JournalPosition,
        anew: bool,
    ) -> Result<()> {
        self.cache.get_mut().forget_facts();
        let path = self.path.clone();
        let fail = |e| Error::database("add facts about contents", &path, e);
        let tx = self
            .conn
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
            .map_err(fail)?;
        if anew {
            tx.execute_batch("DELETE FROM facts; DELETE FROM directory_snapshots;")
                .map_err(fail)?;
        }
        let mut rows = FactRows::of(&tx, learned).map_err(fail)?;
        for one in learned {
            match one {
                JournalRecord::Fact(fact) => rows.replace(fact).map_err(fail)??,
                JournalRecord::Run(run) => {
                    let mut record = Vec::new();
                    run.encode(&mut record);
                    let insert =
                        "INSERT OR REPLACE INTO directory_snapshots (run, record) VALUES (?, ?)";
                    tx.execute(insert, params![run.run, record]).map_err(fail)?;
                }
                JournalRecord::Forgotten(run) => {
                    tx.execute("DELETE FROM directory_snapshots WHERE run = ?1", [run])
                        .map_err(fail)?;
                }
            }
        }
        drop(rows);
        let insert = "INSERT OR REPLACE INTO learned (one, journal, position) VALUES (1, ?, ?)";
        tx.execute(insert, params![mark.journal, mark.offset as i64])
            .map_err(fail)?;
        tx.commit().map_err(fail)
    }

    pub(super) fn fact_of(&self, ident: &Ident) -> Result<Option<Fact>> {
        if !self.any_facts()? {
            return Ok(None);
        }
        if self.is_one_state() {
            let one = std::slice::from_ref(ident);
            return self.with_facts(one, |facts| facts.of(ident).cloned());
        }
        let found = self
            .conn
            .prepare_cached(SELECT)
            .and_then(|mut select| same(&mut select, ident));
        Ok(found
            .map_err(|e| self.failed("look for a fact", e))??
            .map(|(_, fact)| fact))
    }

    pub(super) fn facts_of_all(&self, idents: &[Ident]) -> Result<Vec<Option<Fact>>> {
        if !self.any_facts()? {
            return Ok(vec![None; idents.len()]);
        }
        self.with_facts(idents, |facts| {
            let all = idents.iter().map(|ident| facts.of(ident).cloned());
            all.collect()
        })
    }

    /// Whether a transaction is open. Between two transactions, another process may add facts.
    fn is_one_state(&self) -> bool {
        !self.conn.is_autocommit()
    }

    /// Looks at the facts about the inodes of these versions. Within one state of the database,
    /// each inode is read once.
    fn with_facts<R>(&self, idents: &[Ident], look: impl FnOnce(&InodeFacts) -> R) -> Result<R> {
        let mut facts = match self.is_one_state() {
            true => std::mem::take(&mut self.cache.borrow_mut().facts),
            false => InodeFacts::default(),
        };
        facts.make_room();
        let inodes = idents.iter().map(inode_key);
        let new: Vec<i64> = inodes.filter(|inode| !facts.has(*inode)).collect();
        let about = match new[..] {
            [] => Vec::new(),
            [inode] => self.facts_about(inode)?,
            _ => self.decoded("SELECT record FROM facts WHERE inode", new.clone())?,
        };
        facts.keep(new, about);
        let found = look(&facts);
        if self.is_one_state() {
            self.cache.borrow_mut().facts = facts;
        }
        Ok(found)
    }

    /// All facts about the inode with this key.
    fn facts_about(&self, inode: i64) -> Result<Vec<Fact>> {
        let select = "SELECT record FROM facts WHERE inode = ?1";
        let facts = self.all(select, [inode], |row| {
            Ok(decode(row.get_ref(0)?.as_blob()?))
        })?;
        facts.into_iter().collect()
    }

    pub(super) fn versions_with_all(&self, digests: &[Digest]) -> Result<Vec<Vec<Ident>>> {
        let key = |digest: &Digest| digest.prefix() as i64;
        let select = "SELECT record FROM facts WHERE content";
        let found = self.decoded(select, digests.iter().map(key).collect())?;
        let mut by_content: HashMap<Digest, Vec<Ident>> = HashMap::new();
        for fact in found {
            if let Some(digest) = fact.digest {
                by_content.entry(digest).or_default().push(fact.ident);
            }
        }
        let all = digests.iter();
        Ok(all
            .map(|digest| by_content.get(digest).cloned().unwrap_or_default())
            .collect())
    }

    /// The facts with these keys, each once.
    fn decoded(&self, select: &str, mut keys: Vec<i64>) -> Result<Vec<Fact>> {
        keys.sort_unstable();
        keys.dedup();
        let facts = self.of_keys(select, &keys, |row| Ok(decode(row.get_ref(0)?.as_blob()?)))?;
        facts.into_iter().collect()
    }

    /// False if the store has no facts, and so none about an inode. Later, another process may have
    /// added some.
    fn any_facts(&self) -> Result<bool> {
        let known = self.cache.borrow().any_facts;
        if let Some(any) = known.filter(|any| *any || self.is_one_state()) {
            return Ok(any);
        }
        let any = !self
            .all("SELECT 1 FROM facts LIMIT 1", [], |_| Ok(()))?
            .is_empty();
        self.cache.borrow_mut().any_facts = Some(any);
        Ok(any)
    }

    pub(super) fn versions_with(&self, digest: &Digest) -> Result<Vec<Ident>> {
        let select = "SELECT record FROM facts WHERE content = ?1";
        let records = self.all(select, [digest.prefix() as i64], |row| {
            row.get::<_, Vec<u8>>(0)
        })?;
        let mut found = Vec::new();
        for record in records {
            let fact = decode(&record)?;
            if fact.digest == Some(*digest) {
                found.push(fact.ident);
            }
        }
        Ok(found)
    }

    pub(super) fn digests_with_prefix(&self, digits: &str) -> Result<Vec<Digest>> {
        // The column has the first eight bytes as a signed number, so that digests with a common
        // beginning are neighbours.
        let key: String = digits.chars().take(16).collect();
        let bound =
            |fill: &str| u64::from_str_radix(&(key.clone() + &fill.repeat(16 - key.len())), 16);
        let key_range = match (key.is_empty(), bound("0"), bound("f")) {
            (false, Ok(least), Ok(most)) => (least as i64, most as i64),
            _ => return Ok(Vec::new()),
        };
        let select = "SELECT record FROM facts WHERE content BETWEEN ?1 AND ?2";
        let records = self.all(select, key_range, |row| row.get::<_, Vec<u8>>(0))?;
        let mut found = Vec::new();
        for record in records {
            found.extend(decode(&record)?.digest);
        }
        found.retain(|digest| digest.to_string().starts_with(digits));
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    pub(super) fn all_facts(&self) -> Result<Vec<Fact>> {
        let records = self.all("SELECT record FROM facts ORDER BY id", [], |row| {
            row.get::<_, Vec<u8>>(0)
        })?;
        records.iter().map(|record| decode(record)).collect()
    }

    pub(super) fn directory_snapshot_of(&self, run: &str) -> Result<Option<DirectorySnapshot>> {
        let select = "SELECT record FROM directory_snapshots WHERE run = ?1";
        let records = self.all(select, [run], |row| row.get::<_, Vec<u8>>(0))?;
        let decode = |record: &Vec<u8>| {
            DirectorySnapshot::decode(&mut RecordReader::new(record, "directory_snapshots"))
        };
        records.first().map(decode).transpose()
    }
}

fn decode(record: &[u8]) -> Result<Fact> {
    Fact::decode(&mut RecordReader::new(record, "fact about contents"))
}

/// The facts about an inode.
const SELECT: &str = "SELECT id, record FROM facts WHERE inode = ?1";

/// The fact about this version, and its row.
fn same(
    select: &mut Statement<'_>,
    ident: &Ident,
) -> rusqlite::Result<Result<Option<(i64, Fact)>>> {
    let mut rows = select.query([inode_key(ident)])?;
    while let Some(row) = rows.next()? {
        match decode(row.get_ref(1)?.as_blob()?) {
            Ok(fact) if same_version(&fact.ident, ident) => {
                return Ok(Ok(Some((row.get(0)?, fact))));
            }
            Ok(_) => {}
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(None))
}

/// The statements for many facts.
struct FactRows<'c> {
    select: Statement<'c>,
    insert: Statement<'c>,
    update: Statement<'c>,
    record: Vec<u8>,
    /// The inodes that have a row by now, if none of the records' inodes had one before: most
    /// records are about new files. `None` if each has to be looked for.
    added: Option<FxHashSet<i64>>,
}

impl<'c> FactRows<'c> {
    /// The statements for the facts among these records.
    fn of(conn: &'c Connection, records: &[JournalRecord]) -> rusqlite::Result<FactRows<'c>> {
        let inodes = || {
            records.iter().filter_map(|record| match record {
                JournalRecord::Fact(fact) => Some(inode_key(&fact.ident)),
                _ => None,
            })
        };
        let range = (inodes().min(), inodes().max());
        let any = "SELECT EXISTS (SELECT 1 FROM facts WHERE inode BETWEEN ?1 AND ?2)";
        let any: bool = conn.query_row(any, range, |row| row.get(0))?;
        // One statement for both would have SQLite prepare each row for being undone.
        let insert = "INSERT INTO facts (inode, content, record) VALUES (?, ?, ?)";
        let update = "UPDATE facts SET inode = ?, content = ?, record = ? WHERE id = ?";
        Ok(FactRows {
            select: conn.prepare(SELECT)?,
            insert: conn.prepare(insert)?,
            update: conn.prepare(update)?,
            record: Vec::new(),
            added: (!any).then(FxHashSet::default),
        })
    }

    /// The known fact about this version, and its row.
    fn known(&mut self, ident: &Ident) -> rusqlite::Result<Result<Option<(i64, Fact)>>> {
        let is_new = |added: &mut FxHashSet<i64>| added.insert(inode_key(ident));
        match self.added.as_mut().is_some_and(is_new) {
            true => Ok(Ok(None)),
            false => same(&mut self.select, ident),
        }
    }

    /// Adds a fact in place of the one that is known of the same version.
    fn replace(&mut self, fact: &Fact) -> rusqlite::Result<Result<()>> {
        let old = match self.known(&fact.ident)? {
            Ok(old) => old,
            Err(error) => return Ok(Err(error)),
        };
        if old.as_ref().is_some_and(|(_, old)| !fact.replaces(old)) {
            return Ok(Ok(()));
        }
        self.record.clear();
        fact.encode(&mut self.record);
        let content = fact.digest.map(|digest| digest.prefix() as i64);
        let inode = inode_key(&fact.ident);
        match old {
            None => self.insert.execute(params![inode, content, self.record]),
            Some((id, _)) => self
                .update
                .execute(params![inode, content, self.record, id]),
        }?;
        Ok(Ok(()))
    }
}
