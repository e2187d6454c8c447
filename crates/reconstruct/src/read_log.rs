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
        let mut arranging = Arranging::with_clock(RecordedClock::of(log));
        let mut words = RequestWords::default();
        let whole: HashMap<u64, bool> = log
            .programs()
            .iter()
            .map(|program| (program.process.epoch, program.is_whole))
            .collect();
        let numbers = numbers(log.processes());
        let enter = |arranging: &mut Arranging, next: &DeepProcess| {
            let (pid, parent) = numbers[&next.epoch];
            arranging.enter(next.epoch, pid, parent);
            arranging.sees_itself_as(next.own_pid);
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

/// The ids of each process and of its parent, by epoch, as the process that made it saw them.
///
/// A process that was made from outside its pid namespace has no parent there. The process that
/// made it has another number of it: that of the supervisor, unless it is in a third namespace.
fn numbers(processes: &[DeepProcess]) -> HashMap<u64, (u32, u32)> {
    const OUTSIDE: u32 = 0;
    let mut outside = HashMap::new();
    let of = |process: &DeepProcess| {
        let parent = outside.get(&process.parent).copied();
        let pid = match process.parent {
            OUTSIDE => process.pid,
            _ => process.own_pid,
        };
        if pid != process.own_pid {
            outside.insert(process.own_pid, pid);
        }
        (process.epoch, (pid, parent.unwrap_or(process.parent)))
    };
    processes.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::numbers;
    use backstory_deep::DeepProcess;

    #[test]
    fn a_process_from_outside_its_pid_namespace_has_the_number_that_its_maker_knows() {
        let process = |epoch, pid, own_pid, parent| DeepProcess {
            epoch,
            pid,
            own_pid,
            parent,
            tids: vec![own_pid],
        };
        let found = numbers(&[
            process(1, 4690, 4690, 1),
            process(2, 4693, 1, 0),
            process(3, 4693, 1, 0),
            process(4, 4694, 2, 1),
            process(5, 4700, 3, 0),
            process(6, 4701, 4, 3),
        ]);
        let mut all: Vec<_> = found.into_iter().collect();
        all.sort_unstable();
        let expected = [
            (1, (4690, 1)),
            (2, (4693, 0)),
            (3, (4693, 0)),
            (4, (2, 4693)),
            (5, (4700, 0)),
            (6, (4, 4700)),
        ];
        assert_eq!(all, expected);
    }
}
