//! Runs as rows.
//!
//! ```text
//! row := [started, signed] [bytes of the log] [text with the environment]
//!        [stores contents: 0 or 1] [activities] [entities] [edges] [files read] [files written]
//!        name  note  header  end  unknown
//! ```
//!
//! Name and note are lists of at most one byte string: a number, 0 or 1, and the string. The last
//! three are JSON, each a byte string.

use std::collections::HashSet;

use backstory_eventlog::event::Time;
use backstory_eventlog::run::{RunEnd, RunHeader};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::KeyValueStore;
use super::engine::KeyValueEngine;
use super::row_keys::{RowTable, last_number, short_number};
use crate::block_tables::environment;
use crate::codec::{RecordReader, RecordWriter};
use crate::order::order_of_runs;
use crate::{Counts, Error, Label, Result, RunKey, RunRecord, StoreStats};

const WHAT: &str = "run";

/// The id in a header.
#[derive(Deserialize)]
struct RunIdentity {
    id: String,
}

/// A run as its row has it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRun {
    /// When it started.
    pub started: Time,
    /// The text with its environment.
    pub environment: u64,
    log_bytes: u64,
    stores_contents: bool,
    counts: Counts,
    name: Option<String>,
    note: Option<String>,
    header: Vec<u8>,
    end: Vec<u8>,
    unknown: Vec<u8>,
}

impl StoredRun {
    /// A run that is being appended.
    pub fn new(header: &RunHeader, environment: u64, end: &RunEnd, log_bytes: u64) -> Result<Self> {
        Ok(StoredRun {
            started: header.started,
            environment,
            log_bytes,
            stores_contents: header.modes.stores_contents(),
            counts: Counts::default(),
            name: header.name.clone(),
            note: None,
            header: to_json(header)?,
            end: to_json(end)?,
            unknown: b"[]".to_vec(),
        })
    }

    /// Sets what is known at the end of an append.
    pub fn complete(&mut self, unknown: &[String], counts: &Counts) -> Result<()> {
        self.unknown = to_json(unknown)?;
        self.counts = *counts;
        Ok(())
    }

    fn encode(&self) -> Vec<u8> {
        let mut row = Vec::new();
        row.signed(self.started);
        let Counts {
            activities,
            entities,
            edges,
            files_read,
            files_written,
        } = self.counts;
        let flag = u64::from(self.stores_contents);
        let counts = [activities, entities, edges, files_read, files_written];
        let numbers = [self.log_bytes, self.environment, flag].into_iter();
        numbers.chain(counts).for_each(|number| row.number(number));
        for text in [&self.name, &self.note] {
            row.number(u64::from(text.is_some()));
            text.iter().for_each(|text| row.bytes(text.as_bytes()));
        }
        for json in [&self.header, &self.end, &self.unknown] {
            row.bytes(json);
        }
        row
    }

    fn decode(row: &[u8]) -> Result<StoredRun> {
        let mut reader = RecordReader::new(row, WHAT);
        let started = reader.signed()?;
        let mut numbers = [0; 8];
        for number in &mut numbers {
            *number = reader.number()?;
        }
        let [log_bytes, environment, flag, counts @ ..] = numbers;
        let [activities, entities, edges, files_read, files_written] = counts;
        Ok(StoredRun {
            started,
            environment,
            log_bytes,
            stores_contents: flag != 0,
            counts: Counts {
                activities,
                entities,
                edges,
                files_read,
                files_written,
            },
            name: optional_text(&mut reader)?,
            note: optional_text(&mut reader)?,
            header: reader.bytes()?.to_vec(),
            end: reader.bytes()?.to_vec(),
            unknown: reader.bytes()?.to_vec(),
        })
    }
}

fn optional_text(reader: &mut RecordReader<'_>) -> Result<Option<String>> {
    if reader.number()? == 0 {
        return Ok(None);
    }
    let text = String::from_utf8(reader.bytes()?.to_vec());
    text.map(Some).map_err(|_| reader.damaged())
}

fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(Error::source_failed)
}

fn from_json<T: DeserializeOwned>(json: &[u8]) -> Result<T> {
    serde_json::from_slice(json).map_err(|_| Error::Damaged(WHAT))
}

impl<E: KeyValueEngine> KeyValueStore<E> {
    pub(super) fn put_run(&self, key: RunKey, run: &StoredRun) -> Result<()> {
        self.put(RowTable::Runs.number(u64::from(key.0)), run.encode())
    }

    pub(super) fn stored_run(&self, key: RunKey) -> Result<Option<StoredRun>> {
        let row = self.get(&RowTable::Runs.number(u64::from(key.0)))?;
        row.map(|row| StoredRun::decode(&row)).transpose()
    }

    pub(super) fn run_number(&self, id: &str) -> Result<Option<RunKey>> {
        let found = self.get(&RowTable::RunIds.bytes(id.as_bytes()))?;
        let number = found.map(|row| short_number(&row)).transpose()?;
        Ok(number.map(RunKey))
    }

    /// All rows of runs, in the order in which the runs were appended.
    pub(super) fn stored_runs(&self) -> Result<Vec<(RunKey, StoredRun)>> {
        let mut found = Vec::new();
        self.each_of(RowTable::Runs, |key, row| {
            let key = u32::try_from(last_number(key)).map_err(|_| Error::Damaged(WHAT))?;
            found.push((RunKey(key), StoredRun::decode(row)?));
            Ok(())
        })?;
        Ok(found)
    }

    /// The runs that this user recorded. `None`: all.
    pub(super) fn runs_of_this_user(&self) -> Result<Option<HashSet<RunKey>>> {
        let table = RowTable::Runs;
        let keys = self.engine.own_keys(&table.bytes(&[]), &table.end())?;
        let numbers = |keys: Vec<Vec<u8>>| {
            let numbers = keys.iter().map(|key| u32::try_from(last_number(key)));
            numbers.map(|number| number.map(RunKey)).collect()
        };
        let numbers: Option<std::result::Result<_, _>> = keys.map(numbers);
        numbers.transpose().map_err(|_| Error::Damaged(WHAT))
    }

    /// The record of a row.
    pub(super) fn run_record(&self, key: RunKey, run: StoredRun) -> Result<RunRecord> {
        let text = self.graph().text(run.environment)?;
        Ok(RunRecord {
            key,
            header: RunHeader {
                environment: environment::decode(text.as_ref())?,
                ..from_json(&run.header)?
            },
            end: from_json(&run.end)?,
            name: run.name,
            note: run.note,
            log_bytes: run.log_bytes,
            unknown: from_json(&run.unknown)?,
            counts: run.counts,
        })
    }

    /// The records of the runs whose row `wanted` accepts, in the order of their numbers.
    pub(super) fn run_records(
        &self,
        wanted: impl Fn(&StoredRun) -> bool,
    ) -> Result<Vec<RunRecord>> {
        let runs = self.stored_runs()?.into_iter();
        runs.filter(|(_, run)| wanted(run))
            .map(|(key, run)| self.run_record(key, run))
            .collect()
    }

    pub(super) fn record_of(&self, key: RunKey) -> Result<Option<RunRecord>> {
        let run = self.stored_run(key)?;
        run.map(|run| self.run_record(key, run)).transpose()
    }

    pub(super) fn id_of(&self, key: RunKey) -> Result<Option<String>> {
        let run = self.stored_run(key)?;
        run.map(|run| Ok(from_json::<RunIdentity>(&run.header)?.id))
            .transpose()
    }

    /// The numbers of all runs, the newest first. Of the headers only the times are read.
    pub(super) fn order_of_runs(&self) -> Result<Vec<RunKey>> {
        let runs = self.stored_runs()?.into_iter();
        let begins = runs.map(|(key, run)| Ok((key, from_json(&run.header)?)));
        Ok(order_of_runs(begins.collect::<Result<_>>()?))
    }

    pub(super) fn runs_called(&self, name: &str) -> Result<Vec<RunRecord>> {
        self.run_records(|run| run.name.as_deref() == Some(name))
    }

    pub(super) fn all_run_ids(&self) -> Result<HashSet<String>> {
        let mut found = HashSet::new();
        self.each_of(RowTable::RunIds, |key, _| {
            let id = str::from_utf8(&key[1..]).map_err(|_| Error::Damaged(WHAT))?;
            found.insert(id.to_owned());
            Ok(())
        })?;
        Ok(found)
    }

    pub(super) fn label(&self, id: &str, label: Label, text: Option<&str>) -> Result<()> {
        self.transaction(|| {
            let missing = || Error::NoRun(id.to_owned());
            let key = self.run_number(id)?.ok_or_else(missing)?;
            let mut run = self.stored_run(key)?.ok_or_else(missing)?;
            let field = match label {
                Label::Name => &mut run.name,
                Label::Note => &mut run.note,
            };
            *field = text.map(str::to_owned);
            self.put_run(key, &run)
        })
    }

    /// The runs that store contents and have no directory snapshot, in the order in which they were
    /// appended. The headers of others are not read.
    pub(super) fn waiting_runs(&self) -> Result<Vec<RunRecord>> {
        let mut looked_at = HashSet::new();
        for key in self.keys((&RowTable::Snapshots.bytes(&[]), &RowTable::Snapshots.end()))? {
            let id = str::from_utf8(&key[1..]).map_err(|_| Error::Damaged(WHAT))?;
            looked_at.extend(self.run_number(id)?);
        }
        let runs = self.stored_runs()?.into_iter();
        runs.filter(|(key, run)| run.stores_contents && !looked_at.contains(key))
            .map(|(key, run)| self.run_record(key, run))
            .collect()
    }

    pub(super) fn totals(&self) -> Result<StoreStats> {
        let mut stats = StoreStats {
            bytes: self.engine.bytes()?,
            ..StoreStats::default()
        };
        for (_, run) in self.stored_runs()? {
            stats.runs += 1;
            stats.counts += run.counts;
        }
        Ok(stats)
    }
}
