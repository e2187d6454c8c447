//! A deep log that was read once, for all attempts to run a part of it again.
//!
//! In: a deep log. Out: the arranged run, its requests, and what each request may need. Invariant:
//! each call of the log is decoded once, however many attempts follow.

use crate::recorded::{Arranging, RecordedRun};
use crate::related::RequestWords;
use crate::resource::ResourceId;
use crate::search::Candidates;
use crate::time::RecordedClock;
use crate::unit;
use backstory_deep::{DeepLog, DeepProcess, Request, Role};
use std::collections::HashMap;

/// A deep log, read.
#[derive(Debug, Clone, Default)]
pub struct ReadLog {
    /// The whole run.
    pub run: RecordedRun,
    /// Its requests, as `backstory requests` numbers them.
    pub requests: Vec<Request>,
    words: RequestWords,
}

impl RecordedRun {
    /// Arranges a deep log.
    pub fn load(log: &DeepLog) -> RecordedRun {
        ReadLog::read(log).run
    }
}

impl ReadLog {
    /// Reads a log.
    pub fn read(log: &DeepLog) -> ReadLog {
        let mut arranging = Arranging::default();
        let mut words = RequestWords::default();
        let whole: HashMap<u64, bool> = log
            .programs()
            .iter()
            .map(|program| (program.process.epoch, program.is_whole))
            .collect();
        let enter = |arranging: &mut Arranging, next: &DeepProcess| {
            arranging.enter(next.epoch, next.own_pid, next.parent);
            if whole.get(&next.epoch) == Some(&false) {
                arranging.is_not_whole();
            }
        };
        let mut processes = log.processes().iter();
        let mut current = None;
        let requests = log.walk_requests(|process, call, belongs| {
            // A process whose records are all damaged has no call.
            while current != Some(process.epoch) {
                if current.is_some() {
                    arranging.leave();
                }
                let Some(next) = processes.next() else { return };
                enter(&mut arranging, next);
                current = Some(next.epoch);
            }
            arranging.take(call);
            if let Some((id, part)) = belongs {
                words.take(id, part, call);
            }
        });
        if current.is_some() {
            arranging.leave();
        }
        for process in processes {
            enter(&mut arranging, process);
            arranging.leave();
        }
        let mut run = arranging.finish();
        run.units = unit::units(&run.processes, &requests);
        run.clock = RecordedClock::of(log);
        ReadLog {
            run,
            requests,
            words,
        }
    }

    /// The earlier requests that a request may need, by its number from 1. A client has none: it
    /// gets all that came before.
    pub fn candidates(&self, wanted: usize) -> Candidates {
        let mut found = Candidates::default();
        let Some(chosen) = wanted.checked_sub(1).and_then(|at| self.requests.get(at)) else {
            return found;
        };
        if chosen.role == Role::Client {
            return found;
        }
        let connection = |number: usize| {
            let unit = self.run.units.get(number - 1).copied().flatten();
            unit.map(|unit| unit.connection)
        };
        let own = connection(wanted);
        let mut on_connection: HashMap<ResourceId, Vec<usize>> = HashMap::new();
        for (number, request) in (1..wanted).zip(&self.requests) {
            if request.role != Role::Server {
                continue;
            }
            found.earlier.push(number);
            if let Some(id) = connection(number) {
                let same = on_connection.entry(id).or_default();
                same.push(number);
            }
            if own.is_some() && connection(number) == own {
                found.connection.push(number);
            }
            if chosen.epoch == request.epoch {
                found.process.push(number);
            }
            let feeds = |path| chosen.files.contains(path);
            if request.written.iter().any(feeds) {
                found.writers.push(number);
            }
        }
        let ids: Vec<(usize, usize)> = found
            .earlier
            .iter()
            .map(|number| (*number, self.requests[number - 1].id))
            .collect();
        found.related = self.words.related(chosen.id, &ids);
        for same in on_connection.values() {
            let pairs = same.windows(2).map(|pair| (pair[1], pair[0]));
            found.before.extend(pairs);
        }
        found
    }
}
