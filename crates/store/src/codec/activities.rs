//! Blocks of activities (exec epochs).
//!
//! ```text
//! record := [number of activities]  flags  columns  heads  lengths  the bytes of short texts
//! ```
//!
//! | column | a number for | the number is |
//! | --- | --- | --- |
//! | flags | each activity | (one byte each, see the constants) |
//! | segments | each activity | 0: none; else the newest segment, as a signed difference to that of the activity before, zigzagged, + 1 |
//! | process ids | each activity | a signed difference to the one before |
//! | epochs | each activity | the epoch |
//! | parents | those with `PARENT` | a signed difference to the activity's own id |
//! | starts | each activity | ns, as a signed difference to the start before, at first to the run's start |
//! | durations | each activity | ns, signed |
//! | exits, signals | those with `EXIT`, `SIGNAL` | signed |
//! | cwds, arguments | each activity | a text |
//! | programs, environments | those with `EXEC_PATH`, `ENVIRONMENT` | a text |
//! | heads | each text of the block | 0: it stands here; else its id, as a signed difference to the id before, zigzagged, + 1 |
//! | lengths | each text that stands here | its bytes |
//!
//! - A text is a number: 0 is the next text of the block, n its text numbered n - 1.
//! - A byte string longer than 16 bytes is in a block of `texts`, which all runs share. The block
//!   has its id.
//! - A list of strings is one text: each string with its length.

mod read;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use backstory_eventlog::event::{Bytes, Time, Via};
use backstory_graph::model::Activity;
use rustc_hash::FxHashMap;

use super::{RecordWriter, block, zigzag};
use crate::Result;

pub use read::ActivityBlock;

/// Activities in a block. A question about one activity decodes its block.
pub const BLOCK: u32 = 64;

const PARENT: u8 = 1;
const EXEC_PATH: u8 = 2;
const EXIT: u8 = 4;
const SIGNAL: u8 = 8;
const EXECED: u8 = 16;
const LOOKUPS: u8 = 32;
const KERNEL: u8 = 64;
const ENVIRONMENT: u8 = 128;

/// Longest text that stands in the block itself.
const SHORT: usize = 16;

/// The word for a block in messages about damage.
const WHAT: &str = "list of processes";

/// A text in the block, or the id of one in the table `texts`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum CodedText {
    /// In the block.
    Here(Bytes),
    /// In the table, under this id.
    There(u64),
}

/// The texts that a block names, each once.
#[derive(Default)]
struct NamedTexts {
    /// The numbers of the texts of the block.
    known: FxHashMap<CodedText, u64>,
    heads: Vec<u8>,
    lengths: Vec<u8>,
    bytes: Vec<u8>,
    last: u64,
}

impl NamedTexts {
    /// The number that stands for a text.
    fn number(&mut self, text: CodedText) -> u64 {
        if let Some(known) = self.known.get(&text) {
            return known + 1;
        }
        match &text {
            CodedText::Here(bytes) => {
                self.heads.number(0);
                self.lengths.number(bytes.len() as u64);
                self.bytes.extend_from_slice(bytes);
            }
            CodedText::There(id) => {
                let step = id.wrapping_sub(self.last) as i64;
                self.heads.number(zigzag(step).saturating_add(1));
                self.last = *id;
            }
        }
        self.known.insert(text, self.known.len() as u64);
        0
    }
}

/// Builds a block.
pub struct Builder {
    flags: Vec<u8>,
    segments: Vec<u8>,
    pids: Vec<u8>,
    epochs: Vec<u8>,
    parents: Vec<u8>,
    starts: Vec<u8>,
    durations: Vec<u8>,
    exits: Vec<u8>,
    signals: Vec<u8>,
    cwds: Vec<u8>,
    arguments: Vec<u8>,
    programs: Vec<u8>,
    environments: Vec<u8>,
    texts: NamedTexts,
    segment: u32,
    pid: u32,
    start: Time,
}

impl Builder {
    /// A block of a run that started at `base`.
    pub fn new(base: Time) -> Builder {
        Builder {
            flags: Vec::new(),
            segments: Vec::new(),
            pids: Vec::new(),
            epochs: Vec::new(),
            parents: Vec::new(),
            starts: Vec::new(),
            durations: Vec::new(),
            exits: Vec::new(),
            signals: Vec::new(),
            cwds: Vec::new(),
            arguments: Vec::new(),
            programs: Vec::new(),
            environments: Vec::new(),
            texts: NamedTexts::default(),
            segment: 0,
            pid: 0,
            start: base,
        }
    }

    /// Adds an activity, whose newest segment is `segment`. `text` stores a long text and returns
    /// its id.
    pub fn push(
        &mut self,
        activity: &Activity,
        segment: Option<u32>,
        mut text: impl FnMut(&[u8]) -> Result<u64>,
    ) -> Result<()> {
        let mut coded = |bytes: &[u8]| {
            Ok(match is_short(bytes) {
                true => CodedText::Here(bytes.into()),
                false => CodedText::There(text(bytes)?),
            })
        };
        let cwd = self.texts.number(coded(&activity.cwd)?);
        self.cwds.number(cwd);
        if let Some(path) = &activity.exec_path {
            let program = self.texts.number(coded(path)?);
            self.programs.number(program);
        }
        let arguments = self.texts.number(coded(&joined(&activity.argv))?);
        self.arguments.number(arguments);
        let environment = environment(activity);
        if let Some(environment) = &environment {
            let environment = self.texts.number(coded(environment)?);
            self.environments.number(environment);
        }
        self.flags.push(flags(activity, environment.is_some()));
        self.push_numbers(activity, segment);
        Ok(())
    }

    fn push_numbers(&mut self, activity: &Activity, segment: Option<u32>) {
        let step = |now: u32, before: u32| i64::from(now) - i64::from(before);
        match segment {
            None => self.segments.number(0),
            Some(now) => {
                self.segments.number(zigzag(step(now, self.segment)) + 1);
                self.segment = now;
            }
        }
        self.pids.signed(step(activity.pid, self.pid));
        self.pid = activity.pid;
        self.epochs.number(u64::from(activity.epoch));
        if let Some(parent) = activity.parent {
            self.parents.signed(step(parent.0, activity.id.0));
        }
        let (start, end) = (activity.interval.start, activity.interval.end);
        self.starts.signed(start.wrapping_sub(self.start));
        self.start = start;
        self.durations.signed(end.wrapping_sub(start));
        if let Some(exit) = activity.exit {
            self.exits.signed(i64::from(exit));
        }
        if let Some(signal) = activity.signal {
            self.signals.signed(i64::from(signal));
        }
    }

    /// How many activities it has.
    pub fn count(&self) -> u32 {
        self.flags.len() as u32
    }

    /// The block.
    pub fn finish(self) -> Vec<u8> {
        let columns = [
            &self.flags,
            &self.segments,
            &self.pids,
            &self.epochs,
            &self.parents,
            &self.starts,
            &self.durations,
            &self.exits,
            &self.signals,
            &self.cwds,
            &self.arguments,
            &self.programs,
            &self.environments,
            &self.texts.heads,
            &self.texts.lengths,
            &self.texts.bytes,
        ];
        let length: usize = columns.iter().map(|column| column.len()).sum();
        let mut record = Vec::with_capacity(length + 2);
        record.number(self.flags.len() as u64);
        columns
            .iter()
            .for_each(|column| record.extend_from_slice(column));
        let mut out = Vec::with_capacity(record.len());
        block::put(&mut out, &record);
        out
    }
}

fn flags(activity: &Activity, environment: bool) -> u8 {
    let flags = [
        (PARENT, activity.parent.is_some()),
        (EXEC_PATH, activity.exec_path.is_some()),
        (EXIT, activity.exit.is_some()),
        (SIGNAL, activity.signal.is_some()),
        (EXECED, activity.execed),
        (LOOKUPS, activity.lookups_known),
        (KERNEL, activity.via == Via::Kernel),
        (ENVIRONMENT, environment),
    ];
    let set = flags.iter().filter(|(_, on)| *on);
    set.fold(0, |all, (flag, _)| all | flag)
}

/// The texts of an activity that are too long to stand in its block.
pub fn long_texts(activity: &Activity) -> impl Iterator<Item = Cow<'_, [u8]>> {
    let stored = [Some(&activity.cwd), activity.exec_path.as_ref()];
    let stored = stored
        .into_iter()
        .flatten()
        .map(|text| Cow::Borrowed(&**text));
    let made = [Some(joined(&activity.argv)), environment(activity)];
    let made = made.into_iter().flatten().map(Cow::<[u8]>::Owned);
    stored.chain(made).filter(|text| !is_short(text))
}

fn is_short(text: &[u8]) -> bool {
    text.len() <= SHORT
}

/// The changes of the environment as one text.
fn environment(activity: &Activity) -> Option<Vec<u8>> {
    if activity.env_set.is_empty() && activity.env_unset.is_empty() {
        return None;
    }
    let mut text = Vec::new();
    text.number(activity.env_set.len() as u64);
    for variable in activity.env_set.iter().chain(&activity.env_unset) {
        text.bytes(variable);
    }
    Some(text)
}

fn joined(list: &[Bytes]) -> Vec<u8> {
    let mut out = Vec::new();
    for item in list {
        out.bytes(item);
    }
    out
}
