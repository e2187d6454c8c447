//! Records of databases of the schemas 1 and 2. The program reads them to upgrade a database. One
//! is the record of an activity (an exec epoch). The other is a segment of an activity's stream,
//! in a row of its own.
//!
//! ```text
//! record := flags  [last segment + 1]  pid  epoch  [parent]  start  end  [exit]  [signal]
//!           cwd  [exec path]  argv  [environment]
//! text   := length << 1  bytes  |  1  id of the text (8 bytes)
//!
//! segment := [previous segment + 1]  block of columns (see `stream`)
//! ```
//!
//! - The parent is a signed difference to the activity's own id, the start one to the run's start,
//!   the end one to the start.
//! - A byte string longer than 16 bytes is a row of the table `texts`, which all runs share. The
//!   record has its id.
//! - A list of strings is one text: each string with its length.

use backstory_eventlog::event::{Bytes, Time, Via};
use backstory_graph::model::{Activity, ActivityId, Interval};

use super::{RecordReader, block};
use crate::Result;

const PARENT: u8 = 1;
const EXEC_PATH: u8 = 2;
const EXIT: u8 = 4;
const SIGNAL: u8 = 8;
const EXECED: u8 = 16;
const LOOKUPS: u8 = 32;
const KERNEL: u8 = 64;
const ENVIRONMENT: u8 = 128;

/// A text in the record, or the id of one in the table `texts`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodedText {
    /// In the record.
    Here(Bytes),
    /// In the table, under this id.
    There(u64),
}

/// An activity whose long texts are not looked up yet.
#[derive(Debug, Clone)]
pub struct CodedActivity {
    /// The newest segment of its stream.
    pub segment: Option<u32>,
    /// Everything but the texts.
    activity: Activity,
    cwd: CodedText,
    exec_path: Option<CodedText>,
    argv: CodedText,
    environment: Option<CodedText>,
}

/// Decodes the activity with the id `id`, but for its texts. Times are relative to the run's start.
pub fn decode(record: &[u8], id: u32) -> Result<CodedActivity> {
    let mut take = RecordReader::new(record, "process");
    let flags = take.byte()?;
    let has = |flag| flags & flag != 0;
    let segment = take.small()?.checked_sub(1);
    let pid = take.small()?;
    let epoch = take.small()?;
    let parent = if has(PARENT) {
        let at = i64::from(id)
            .checked_add(take.signed()?)
            .ok_or_else(|| take.damaged())?;
        Some(ActivityId(u32::try_from(at).map_err(|_| take.damaged())?))
    } else {
        None
    };
    let start = take.signed()?;
    let end = start.wrapping_add(take.signed()?);
    let exit = if has(EXIT) {
        Some(status(&mut take)?)
    } else {
        None
    };
    let signal = if has(SIGNAL) {
        Some(status(&mut take)?)
    } else {
        None
    };
    let activity = Activity {
        id: ActivityId(id),
        parent,
        pid,
        epoch,
        exec_path: None,
        argv: Vec::new(),
        env_set: Vec::new(),
        env_unset: Vec::new(),
        cwd: Bytes::default(),
        interval: Interval { start, end },
        exit,
        signal,
        execed: has(EXECED),
        lookups_known: has(LOOKUPS),
        via: if has(KERNEL) {
            Via::Kernel
        } else {
            Via::Library
        },
    };
    let cwd = take_text(&mut take)?;
    let exec_path = if has(EXEC_PATH) {
        Some(take_text(&mut take)?)
    } else {
        None
    };
    let argv = take_text(&mut take)?;
    let environment = if has(ENVIRONMENT) {
        Some(take_text(&mut take)?)
    } else {
        None
    };
    Ok(CodedActivity {
        segment,
        activity,
        cwd,
        exec_path,
        argv,
        environment,
    })
}

/// The columns of a segment, and the number of the segment before it.
pub fn segment(row: &[u8]) -> Result<(Option<u32>, Vec<u8>)> {
    let mut reader = RecordReader::new(row, "list of edges");
    let previous = reader.small()?.checked_sub(1);
    Ok((previous, block::take(&mut reader)?.into_owned()))
}

fn status(take: &mut RecordReader<'_>) -> Result<i32> {
    i32::try_from(take.signed()?).map_err(|_| take.damaged())
}

fn take_text(take: &mut RecordReader<'_>) -> Result<CodedText> {
    let head = take.number()?;
    if head & 1 == 0 {
        let length = usize::try_from(head >> 1).map_err(|_| take.damaged())?;
        return Ok(CodedText::Here(take.exactly(length)?.into()));
    }
    let id = take.exactly(8)?.try_into().map_err(|_| take.damaged())?;
    Ok(CodedText::There(u64::from_le_bytes(id)))
}

impl CodedActivity {
    /// The activity: `text` fetches a text by its id, `base` is the run's start.
    pub fn resolve<T>(self, base: Time, mut text: impl FnMut(u64) -> Result<T>) -> Result<Activity>
    where
        T: AsRef<[u8]> + From<Bytes>,
    {
        let mut fetch = |t: CodedText| match t {
            CodedText::Here(bytes) => Ok(bytes.into()),
            CodedText::There(id) => text(id),
        };
        let mut activity = self.activity;
        activity.interval.start = activity.interval.start.wrapping_add(base);
        activity.interval.end = activity.interval.end.wrapping_add(base);
        activity.cwd = fetch(self.cwd)?.as_ref().into();
        let exec_path = self.exec_path.map(&mut fetch).transpose()?;
        activity.exec_path = exec_path.map(|path| path.as_ref().into());
        activity.argv = split(RecordReader::new(
            fetch(self.argv)?.as_ref(),
            "argument list",
        ))?;
        if let Some(environment) = self.environment {
            let environment = fetch(environment)?;
            let mut take = RecordReader::new(environment.as_ref(), "environment");
            for _ in 0..take.number()? {
                activity.env_set.push(take.bytes()?.into());
            }
            activity.env_unset = split(take)?;
        }
        Ok(activity)
    }
}

fn split(mut take: RecordReader<'_>) -> Result<Vec<Bytes>> {
    let mut list = Vec::new();
    while !take.is_empty() {
        list.push(take.bytes()?.into());
    }
    Ok(list)
}

#[cfg(test)]
pub(crate) mod tests {
    //! The former encoder, for databases of a former schema.

    use super::*;
    use crate::Error;
    use crate::codec::RecordWriter;

    /// Longest text that stands in the record itself.
    const SHORT: usize = 16;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// Encodes an activity. `text` stores a long text and returns its id.
    pub fn encode(
        activity: &Activity,
        segment: Option<u32>,
        base: Time,
        mut text: impl FnMut(&[u8]) -> Result<u64>,
    ) -> Result<Vec<u8>> {
        let environment = !activity.env_set.is_empty() || !activity.env_unset.is_empty();
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
        let mut out = vec![
            flags
                .iter()
                .filter(|(_, on)| *on)
                .fold(0, |all, (flag, _)| all | flag),
        ];
        out.number(segment.map_or(0, |s| u64::from(s) + 1));
        out.number(u64::from(activity.pid));
        out.number(u64::from(activity.epoch));
        if let Some(parent) = activity.parent {
            out.signed(i64::from(parent.0) - i64::from(activity.id.0));
        }
        out.signed(activity.interval.start.wrapping_sub(base));
        out.signed(activity.interval.end.wrapping_sub(activity.interval.start));
        for status in [activity.exit, activity.signal].into_iter().flatten() {
            out.signed(i64::from(status));
        }
        put_text(&mut out, &activity.cwd, &mut text)?;
        if let Some(path) = &activity.exec_path {
            put_text(&mut out, path, &mut text)?;
        }
        put_text(&mut out, &joined(&activity.argv), &mut text)?;
        if environment {
            let mut both = joined(&activity.env_set);
            both.splice(0..0, {
                let mut n = Vec::new();
                n.number(activity.env_set.len() as u64);
                n
            });
            both.extend(joined(&activity.env_unset));
            put_text(&mut out, &both, &mut text)?;
        }
        Ok(out)
    }

    fn joined(list: &[Bytes]) -> Vec<u8> {
        let mut out = Vec::new();
        for item in list {
            out.bytes(item);
        }
        out
    }

    fn put_text(
        out: &mut Vec<u8>,
        bytes: &[u8],
        text: &mut impl FnMut(&[u8]) -> Result<u64>,
    ) -> Result<()> {
        if bytes.len() <= SHORT {
            out.number((bytes.len() as u64) << 1);
            out.extend_from_slice(bytes);
        } else {
            out.number(1);
            out.extend_from_slice(&text(bytes)?.to_le_bytes());
        }
        Ok(())
    }

    /// The id under which a text is looked for first: 63 bits of FNV-1a.
    pub fn text_id(text: &[u8]) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        for &byte in text {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        (hash ^ hash >> 29) >> 1
    }

    fn strings() -> impl Strategy<Value = Vec<Bytes>> {
        proptest::collection::vec(
            proptest::collection::vec(any::<u8>(), 0..30).prop_map(Bytes::from),
            0..4,
        )
    }

    proptest! {
        #[test]
        fn an_activity_comes_back_as_it_was(
            id: u32, parent: Option<u32>, pid: u32, epoch: u32, lists in (strings(), strings(), strings(), strings()),
            times: (i64, i64, i64), exit: Option<i32>, signal: Option<i32>, flags: (bool, bool, bool),
        ) {
            let (argv, env_set, env_unset, paths) = lists;
            let activity = Activity {
                id: ActivityId(id),
                parent: parent.map(ActivityId),
                pid,
                epoch,
                exec_path: paths.first().cloned(),
                argv,
                env_set,
                env_unset,
                cwd: paths.last().cloned().unwrap_or_default(),
                interval: Interval { start: times.0, end: times.1 },
                exit,
                signal,
                execed: flags.0,
                lookups_known: flags.1,
                via: if flags.2 { Via::Kernel } else { Via::Library },
            };
            let mut texts = HashMap::new();
            let record = encode(&activity, Some(3), times.2, |text| {
                texts.insert(text_id(text), Bytes::from(text));
                Ok(text_id(text))
            }).unwrap();
            let coded = decode(&record, id).unwrap();
            prop_assert_eq!(coded.segment, Some(3));
            let back = coded.resolve(times.2, |id| texts.get(&id).cloned().ok_or(Error::Damaged("text"))).unwrap();
            prop_assert_eq!(back, activity);
        }
    }
}
