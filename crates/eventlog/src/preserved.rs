//! The contents that were preserved while a run was recorded, as its log names them.
//!
//! Most logs name none, which the index says. In others, only these records are decoded.

use crate::decode;
use crate::event::{Bytes, Op, PreserveMethod, Time};
use crate::log::Log;
use crate::merge::Events;
use crate::record::RawRecord;
use crate::stream::record_at;
use backstory_abi::op;
use backstory_files::Ident;

/// A content before a change of its file, which was preserved if `number` is `Ok`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedContent {
    /// When the record was made.
    pub time: Time,
    /// The version that has the content.
    pub ident: Ident,
    /// The path of the file before the change.
    pub path: Bytes,
    /// How it was preserved, as far as this version knows the method.
    pub how: Option<PreserveMethod>,
    /// The number of the preserved file, or the negative errno of the failure.
    pub number: Result<i32, i32>,
}

impl Log {
    /// The preserved contents, in the order of [`Log::events`] and with the times of those events.
    pub fn preserved(&self) -> impl Iterator<Item = LoggedContent> {
        let events = self.names_preserved().then(|| self.events());
        let contents = |mut events: Events<'_>| -> Vec<LoggedContent> {
            std::iter::from_fn(|| next(&mut events)).collect()
        };
        events.map(contents).unwrap_or_default().into_iter()
    }
}

fn next(events: &mut Events<'_>) -> Option<LoggedContent> {
    loop {
        let (_, at, bytes) = events.take()?;
        let raw = match bytes {
            Some(bytes) => RawRecord::parse(bytes),
            None => record_at(events.log, at),
        };
        let time = events.log.clock().time(events.now);
        events.open_gates(at);
        let kept = raw.filter(|raw| raw.head.op == op::KEPT);
        if let Some(found) = kept.and_then(|raw| content(&raw, time)) {
            return Some(found);
        }
    }
}

fn content(raw: &RawRecord<'_>, time: Time) -> Option<LoggedContent> {
    let Op::Preserved { path, number, how } = decode::operation(raw)? else {
        return None;
    };
    let failed = decode::outcome(raw).value().filter(|value| *value < 0);
    Some(LoggedContent {
        time,
        ident: raw.ident?,
        path,
        how,
        number: failed.map_or(Ok(number), Err),
    })
}
