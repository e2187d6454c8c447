//! Writes a description as records.
//!
//! In: a description, and its order. Out: `DESCRIBED` records: first the activities, then the
//! entities, then the relations, activity by activity.

use super::moments::DescribedMoments;
use super::ordering::ActivityOrder;
use super::statements::{DescribedActivity, Description};
use super::versions::{DescribedVersion, versions};
use crate::{CallingThread, RecordLog};
use backstory_abi::{self as abi, op};
use backstory_eventlog::event::{Pid, Time, UNNUMBERED, WordRole};
use backstory_graph::model::{Interval, Relation};
use backstory_ordering::SmallSort;
use std::collections::HashMap;

/// The most bytes of a word in one record.
const PIECE: usize = 32_000;
/// The most bytes of an attribute. Attributes are facts for people.
const LONGEST_NOTE: usize = 8_000;

/// Writes the records of a description whose derivations are complete.
pub(super) fn write(
    description: &Description,
    moments: &DescribedMoments,
    order: &ActivityOrder,
    records: &mut RecordLog,
) {
    let begin = moments.activities.iter().map(|one| one.start).min();
    let mut out = Emission {
        records,
        time: begin.unwrap_or_default(),
    };
    for at in &order.all {
        out.activity(description, moments, order, *at as usize);
    }
    let all = versions(description, moments);
    let numbers = out.entities(description, &all);
    out.flows(description, moments, order, &numbers);
    for one in &description.informings {
        let (from, to) = (
            order.place[one.from.0 as usize],
            order.place[one.to.0 as usize],
        );
        let time = one
            .time
            .unwrap_or(moments.activities[one.to.0 as usize].start);
        out.statement(abi::DESCRIBED_INFORM, one.why.number(), |record| {
            record.fd(from.cast_signed()).arg(to.cast_signed());
            record.string(text(at(time)).as_bytes());
        });
    }
    for one in &description.derivations {
        let Some(activity) = one.activity else {
            continue;
        };
        let own = moments.activities[activity.0 as usize];
        let place = order.place[activity.0 as usize];
        let (entity, from) = (numbers[one.entity.0 as usize], numbers[one.from.0 as usize]);
        if entity == from {
            continue;
        }
        out.statement(abi::DESCRIBED_DERIVED, 0, |record| {
            record.fd(entity.cast_signed()).arg(from.cast_signed());
            record.result(place.cast_signed());
            record.string(text(at(one.time.unwrap_or(own.end))).as_bytes());
        });
    }
}

struct Emission<'r> {
    records: &'r mut RecordLog,
    time: Time,
}

impl Emission<'_> {
    fn statement(
        &mut self,
        what: u32,
        detail: u8,
        fill: impl FnOnce(&mut backstory_eventlog::record::RecordBuilder),
    ) {
        self.of_process(0, what | u32::from(detail) << 8, fill);
    }

    fn of_process(
        &mut self,
        pid: Pid,
        aux: u32,
        fill: impl FnOnce(&mut backstory_eventlog::record::RecordBuilder),
    ) {
        let thread = CallingThread { pid, tid: pid };
        self.records
            .add(op::DESCRIBED, thread, self.time, |record| {
                record.aux(aux).result(0);
                fill(record);
            });
    }

    fn activity(
        &mut self,
        description: &Description,
        moments: &DescribedMoments,
        order: &ActivityOrder,
        at: usize,
    ) {
        let activity = &description.activities[at];
        let number = order.place[at].cast_signed();
        let parent = order.parent[at].map_or(-1, |one| order.place[one as usize].cast_signed());
        let unnumbered = UNNUMBERED + 1 + order.place[at] % (UNNUMBERED / 2);
        let pid = activity.pid.filter(|pid| (1..UNNUMBERED).contains(pid));
        let mut aux = abi::DESCRIBED_ACTIVITY | order.epoch[at] << 8;
        for (flag, holds) in [
            (abi::DESCRIBED_PART, activity.is_part),
            (abi::DESCRIBED_ENDED, activity.status.is_some()),
            (abi::DESCRIBED_EXECED, order.execed[at]),
        ] {
            aux |= if holds { flag } else { 0 };
        }
        let times = text(moments.activities[at]);
        self.of_process(pid.unwrap_or(unnumbered), aux, |record| {
            record.fd(number).arg(parent);
            record
                .result(activity.status.unwrap_or(0))
                .string(times.as_bytes());
        });
        self.words(number, activity);
        if let Some(rank) = &activity.job_rank {
            self.statement(abi::DESCRIBED_RANK, 0, |record| {
                record.fd(number).string(&rank.record());
            });
        }
        for (key, value) in &activity.notes {
            let (key, value) = (
                &key[..key.len().min(LONGEST_NOTE)],
                &value[..value.len().min(LONGEST_NOTE)],
            );
            self.statement(abi::DESCRIBED_NOTE, 0, |record| {
                record.fd(number).string(key).string(value);
            });
        }
    }

    fn words(&mut self, number: i32, activity: &DescribedActivity) {
        let arguments = self.records.redacted(&activity.words);
        let arguments = arguments.iter().map(|word| (WordRole::Argument, word));
        let program = activity
            .program
            .iter()
            .map(|path| (WordRole::Program, path));
        let cwd = Some((WordRole::Directory, &activity.cwd));
        let cwd = cwd.filter(|(_, cwd)| !cwd.is_empty());
        for (role, word) in arguments.chain(program).chain(cwd) {
            let mut pieces = word.chunks(PIECE).peekable();
            if pieces.peek().is_none() {
                self.word(number, role, b"", false);
            }
            while let Some(piece) = pieces.next() {
                self.word(number, role, piece, pieces.peek().is_some());
            }
        }
    }

    fn word(&mut self, number: i32, role: WordRole, piece: &[u8], more: bool) {
        self.statement(abi::DESCRIBED_WORD, role as u8, |record| {
            record.fd(number).string(piece);
            if more {
                record.more();
            }
        });
    }

    /// States the entities. Returns the number of each.
    fn entities(&mut self, description: &Description, all: &[DescribedVersion]) -> Vec<u32> {
        let mut numbers = vec![u32::MAX; all.len()];
        let mut next = 0;
        // The state before another is stated first.
        let mut chain = Vec::new();
        for at in 0..all.len() {
            let mut one = all[at].first;
            while numbers[one as usize] == u32::MAX {
                chain.push(one);
                match all[one as usize].previous {
                    Some(previous) => one = previous,
                    None => break,
                }
            }
            while let Some(one) = chain.pop() {
                let state = &all[one as usize];
                let entity = &description.entities[one as usize];
                numbers[one as usize] = next;
                let previous = state.previous.map(|before| numbers[before as usize]);
                let last = if state.last { abi::DESCRIBED_LAST } else { 0 };
                let aux = abi::DESCRIBED_ENTITY | u32::from(entity.kind.number()) << 8 | last;
                self.of_process(0, aux, |record| {
                    record.fd(next.cast_signed());
                    record.arg(previous.map_or(-1, u32::cast_signed));
                    record
                        .result(state.version.cast_signed())
                        .string(&entity.path);
                });
                next += 1;
            }
            numbers[at] = numbers[all[at].first as usize];
        }
        numbers
    }

    /// States the relations, each once, activity by activity.
    fn flows(
        &mut self,
        description: &Description,
        moments: &DescribedMoments,
        order: &ActivityOrder,
        numbers: &[u32],
    ) {
        let mut sorted: Vec<(u32, u32)> = description
            .flows
            .iter()
            .enumerate()
            .map(|(at, flow)| (order.place[flow.activity.0 as usize], at as u32))
            .collect();
        sorted.sort_small();
        for group in sorted.chunk_by(|one, other| one.0 == other.0) {
            let mut places: HashMap<(u32, Relation), usize> = HashMap::new();
            let mut merged: Vec<((u32, Relation), Interval, bool)> = Vec::new();
            for (_, at) in group {
                let flow = &description.flows[*at as usize];
                let interval = moments.flows[*at as usize];
                let key = (numbers[flow.entity.0 as usize], flow.relation);
                let place = *places.entry(key).or_insert(merged.len());
                match merged.get_mut(place) {
                    Some((_, all, is_certain)) => {
                        all.start = all.start.min(interval.start);
                        all.end = all.end.max(interval.end);
                        *is_certain |= flow.is_certain;
                    }
                    None => merged.push((key, interval, flow.is_certain)),
                }
            }
            for ((entity, relation), interval, is_certain) in merged {
                let certain = if is_certain {
                    abi::DESCRIBED_CERTAIN
                } else {
                    0
                };
                let aux = abi::DESCRIBED_EDGE | u32::from(relation.number()) << 8 | certain;
                self.of_process(0, aux, |record| {
                    record
                        .fd(group[0].0.cast_signed())
                        .arg(entity.cast_signed());
                    record.string(text(interval).as_bytes());
                });
            }
        }
    }
}

fn at(time: Time) -> Interval {
    Interval {
        start: time,
        end: time,
    }
}

fn text(interval: Interval) -> String {
    format!("{} {}", interval.start, interval.end)
}
