//! Decodes blocks of activities.

use backstory_eventlog::event::{Bytes, Via};
use backstory_graph::model::{Activity, ActivityId, Interval};

use super::{
    BLOCK, CodedText, ENVIRONMENT, EXEC_PATH, EXECED, EXIT, KERNEL, LOOKUPS, PARENT, SIGNAL, WHAT,
};
use crate::codec::{RecordReader, block, unzigzag};
use crate::{Error, Result};
use backstory_eventlog::event::Time;

/// The activities of a block. Their long texts are not looked up yet.
#[derive(Debug, Default)]
pub struct ActivityBlock {
    records: Vec<CodedActivity>,
    texts: Vec<CodedText>,
}

/// An activity but for its texts. The start is relative to the run's.
#[derive(Debug, Clone, Copy)]
struct CodedActivity {
    flags: u8,
    id: u32,
    segment: Option<u32>,
    pid: u32,
    epoch: u32,
    parent: Option<u32>,
    start: Time,
    end: Time,
    exit: Option<i32>,
    signal: Option<i32>,
    /// Positions among the texts of the block.
    cwd: usize,
    arguments: usize,
    program: Option<usize>,
    environment: Option<usize>,
}

/// The columns that are left.
struct Columns<'b> {
    flags: RecordReader<'b>,
    segments: RecordReader<'b>,
    pids: RecordReader<'b>,
    epochs: RecordReader<'b>,
    parents: RecordReader<'b>,
    starts: RecordReader<'b>,
    durations: RecordReader<'b>,
    exits: RecordReader<'b>,
    signals: RecordReader<'b>,
    cwds: RecordReader<'b>,
    arguments: RecordReader<'b>,
    programs: RecordReader<'b>,
    environments: RecordReader<'b>,
    /// The values to which the next differences refer.
    segment: i64,
    pid: i64,
    start: Time,
    /// Texts that were named so far.
    named: usize,
}

impl<'b> Columns<'b> {
    fn take(reader: &mut RecordReader<'b>, count: usize) -> Result<Columns<'b>> {
        let flags = reader.exactly(count)?;
        let with = |flag: u8| flags.iter().filter(|flags| **flags & flag != 0).count();
        Ok(Columns {
            flags: RecordReader::new(flags, WHAT),
            segments: reader.column(count)?,
            pids: reader.column(count)?,
            epochs: reader.column(count)?,
            parents: reader.column(with(PARENT))?,
            starts: reader.column(count)?,
            durations: reader.column(count)?,
            exits: reader.column(with(EXIT))?,
            signals: reader.column(with(SIGNAL))?,
            cwds: reader.column(count)?,
            arguments: reader.column(count)?,
            programs: reader.column(with(EXEC_PATH))?,
            environments: reader.column(with(ENVIRONMENT))?,
            segment: 0,
            pid: 0,
            start: 0,
            named: 0,
        })
    }

    /// The next activity, whose id is `id`.
    fn activity(&mut self, id: u32) -> Result<CodedActivity> {
        let flags = self.flags.byte()?;
        let has = |flag| flags & flag != 0;
        let segment = match self.segments.number()?.checked_sub(1) {
            None => None,
            Some(step) => {
                self.segment = self.segment.wrapping_add(unzigzag(step));
                Some(small(self.segment)?)
            }
        };
        self.pid = self.pid.wrapping_add(self.pids.signed()?);
        let parent = match has(PARENT) {
            true => Some(small(i64::from(id).wrapping_add(self.parents.signed()?))?),
            false => None,
        };
        self.start = self.start.wrapping_add(self.starts.signed()?);
        // The order in which they were named.
        let cwd = text(&mut self.named, &mut self.cwds)?;
        let program = match has(EXEC_PATH) {
            true => Some(text(&mut self.named, &mut self.programs)?),
            false => None,
        };
        let arguments = text(&mut self.named, &mut self.arguments)?;
        let environment = match has(ENVIRONMENT) {
            true => Some(text(&mut self.named, &mut self.environments)?),
            false => None,
        };
        Ok(CodedActivity {
            flags,
            id,
            segment,
            pid: small(self.pid)?,
            epoch: self.epochs.small()?,
            parent,
            start: self.start,
            end: self.start.wrapping_add(self.durations.signed()?),
            exit: status(has(EXIT), &mut self.exits)?,
            signal: status(has(SIGNAL), &mut self.signals)?,
            cwd,
            arguments,
            program,
            environment,
        })
    }
}

/// The position of the text that the next number of a column stands for. `named` counts the texts
/// so far.
fn text(named: &mut usize, column: &mut RecordReader<'_>) -> Result<usize> {
    match column.size()? {
        0 => {
            *named += 1;
            Ok(*named - 1)
        }
        known if known <= *named => Ok(known - 1),
        _ => Err(column.damaged()),
    }
}

fn small(number: i64) -> Result<u32> {
    u32::try_from(number).map_err(|_| Error::Damaged(WHAT))
}

fn status(known: bool, column: &mut RecordReader<'_>) -> Result<Option<i32>> {
    if !known {
        return Ok(None);
    }
    let status = i32::try_from(column.signed()?).map_err(|_| column.damaged())?;
    Ok(Some(status))
}

/// The texts that a block names.
fn texts(reader: &mut RecordReader<'_>, count: usize) -> Result<Vec<CodedText>> {
    let heads = reader.column(count)?;
    let mut each = heads;
    let mut here = 0;
    for _ in 0..count {
        here += usize::from(each.number()? == 0);
    }
    let (mut heads, mut lengths) = (heads, reader.column(here)?);
    let mut last = 0u64;
    let mut text = || {
        Ok(match heads.number()?.checked_sub(1) {
            None => CodedText::Here(reader.exactly(lengths.size()?)?.into()),
            Some(step) => {
                last = last.wrapping_add(unzigzag(step) as u64);
                CodedText::There(last)
            }
        })
    };
    (0..count).map(|_| text()).collect()
}

impl ActivityBlock {
    /// Decodes a block whose first activity has the id `first`.
    pub fn decode(block: &[u8], first: u32) -> Result<ActivityBlock> {
        let record = block::take(&mut RecordReader::new(block, WHAT))?;
        let mut reader = RecordReader::new(&record, WHAT);
        let count = reader.small()?;
        if count > BLOCK {
            return Err(reader.damaged());
        }
        let mut columns = Columns::take(&mut reader, count as usize)?;
        let mut records = Vec::with_capacity(count as usize);
        for id in first..first.saturating_add(count) {
            records.push(columns.activity(id)?);
        }
        let texts = texts(&mut reader, columns.named)?;
        Ok(ActivityBlock { records, texts })
    }

    /// How many activities it has.
    pub fn count(&self) -> u32 {
        self.records.len() as u32
    }

    /// Bytes of memory, about.
    pub fn size(&self) -> usize {
        size_of_val(&self.records[..]) + size_of_val(&self.texts[..])
    }

    /// The newest segment of the stream of the activity at a position. The outer `None`: there is
    /// no such activity.
    pub fn segment(&self, position: u32) -> Option<Option<u32>> {
        self.records
            .get(position as usize)
            .map(|record| record.segment)
    }

    /// The ids of the texts in the table.
    pub fn texts(&self) -> impl Iterator<Item = u64> + '_ {
        self.texts.iter().filter_map(|text| match text {
            CodedText::There(id) => Some(*id),
            CodedText::Here(_) => None,
        })
    }

    /// The activity at a position: `text` fetches a text by its id, `base` is the run's start.
    pub fn activity<T: AsRef<[u8]>>(
        &self,
        position: u32,
        base: Time,
        text: impl Fn(u64) -> Result<T>,
    ) -> Result<Option<Activity>> {
        let Some(record) = self.records.get(position as usize) else {
            return Ok(None);
        };
        let copied = |at| self.with(at, &text, |bytes| Ok(Bytes::from(bytes)));
        let (env_set, env_unset) = match record.environment {
            Some(at) => self.with(at, &text, split_environment)?,
            None => Default::default(),
        };
        Ok(Some(Activity {
            id: ActivityId(record.id),
            parent: record.parent.map(ActivityId),
            pid: record.pid,
            epoch: record.epoch,
            exec_path: record.program.map(copied).transpose()?,
            argv: self.with(record.arguments, &text, |bytes| {
                split(RecordReader::new(bytes, "argument list"))
            })?,
            env_set,
            env_unset,
            cwd: copied(record.cwd)?,
            interval: Interval {
                start: record.start.wrapping_add(base),
                end: record.end.wrapping_add(base),
            },
            exit: record.exit,
            signal: record.signal,
            execed: record.flags & EXECED != 0,
            lookups_known: record.flags & LOOKUPS != 0,
            via: match record.flags & KERNEL {
                0 => Via::Library,
                _ => Via::Kernel,
            },
        }))
    }

    fn with<T: AsRef<[u8]>, R>(
        &self,
        at: usize,
        text: impl Fn(u64) -> Result<T>,
        read: impl FnOnce(&[u8]) -> Result<R>,
    ) -> Result<R> {
        match self.texts.get(at) {
            Some(CodedText::Here(bytes)) => read(bytes),
            Some(CodedText::There(id)) => read(text(*id)?.as_ref()),
            None => Err(Error::Damaged(WHAT)),
        }
    }
}

fn split_environment(text: &[u8]) -> Result<(Vec<Bytes>, Vec<Bytes>)> {
    let mut take = RecordReader::new(text, "environment");
    let mut set = Vec::new();
    for _ in 0..take.number()? {
        set.push(take.bytes()?.into());
    }
    Ok((set, split(take)?))
}

fn split(mut take: RecordReader<'_>) -> Result<Vec<Bytes>> {
    let mut list = Vec::new();
    while !take.is_empty() {
        list.push(take.bytes()?.into());
    }
    Ok(list)
}
