//! A deep log that was read for attempts to run a part of it again.
//!
//! In: a deep log. Out: the arranged run, its requests, and what each request may need. The run is
//! whole, or an outline. With an outline, the log is read once more for each attempt, which gets
//! the part that is fed. Invariant: such a part is that of the whole run.
//!
//! Memory of an outline: a few hundred bytes for each request, connection and opened file, whatever
//! bytes these moved.

use crate::engine::{self, Options};
use crate::error::Error;
use crate::recorded::{Arranging, RecordedRun, Scope, SoughtWord};
use crate::related::RequestWords;
use crate::request;
use crate::resource::ResourceId;
use crate::search::Candidates;
use crate::selection::Selection;
use crate::time::RecordedClock;
use crate::unit;
use backstory_deep::{Call, DeepDamage, DeepLog, DeepProcess, Request, Role};
use std::collections::HashMap;
use std::slice;

/// A deep log, read.
#[derive(Debug, Clone, Default)]
pub struct ReadLog {
    /// The whole run, or its outline.
    pub run: RecordedRun,
    /// Its requests, as `backstory requests` numbers them.
    pub requests: Vec<Request>,
    /// The parts of the log that could not be read.
    pub damage: DeepDamage,
    words: RequestWords,
}

impl RecordedRun {
    /// Arranges a deep log.
    pub fn load(log: &DeepLog) -> RecordedRun {
        ReadLog::read(log).run
    }
}

impl ReadLog {
    /// Reads a log. All bytes that it has are in the run.
    pub fn read(log: &DeepLog) -> ReadLog {
        ReadLog::of_scope(log, Scope::Whole)
    }

    /// Reads the outline of a log: its processes, requests, resources and connections. The bytes
    /// that moved are not in the run, and neither are the results of calls.
    pub fn outline(log: &DeepLog) -> ReadLog {
        let mut read = ReadLog::of_scope(log, Scope::Outline);
        for process in &mut read.run.processes {
            process.moves = HashMap::new();
        }
        read
    }

    fn of_scope(log: &DeepLog, scope: Scope) -> ReadLog {
        let mut all = LogProcesses::of(log, scope, Vec::new());
        let mut words = RequestWords::default();
        let mut begun = 0;
        let requests = log.walk_requests(|process, call, belongs| {
            // Each new request has the next id.
            let begins = belongs.is_some_and(|(id, _)| id == begun);
            begun += usize::from(begins);
            all.take(process, call, begins);
            if let Some((id, part)) = belongs {
                words.take(id, part, call);
            }
        });
        let (mut run, _) = all.finish();
        run.units = unit::units(&run.processes, &requests);
        ReadLog {
            run,
            requests,
            damage: log.damage(),
            words,
        }
    }

    /// The part of the run that is fed for the request of these options. Reads the log again.
    ///
    /// # Errors
    /// No request is chosen, or the record has no such request or program.
    pub fn part(&self, log: &DeepLog, options: &Options) -> Result<RecordedRun, Error> {
        let wanted = options.request.unwrap_or(0);
        let scope = match request::chosen(&self.run, wanted)?.is_client {
            // All before it is fed.
            true => Scope::Whole,
            false => {
                let first = engine::first_process(&self.run, options.process)?;
                let fed = (wanted, &options.fed[..]);
                Scope::Part(Box::new(Selection::of(&self.run, fed, first)?))
            }
        };
        let (mut run, _) = arranged(log, scope, Vec::new());
        run.units.clone_from(&self.run.units);
        engine::reduce(&mut run, options)?;
        Ok(run)
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

/// Reads the last input of each of these words, in the outline of a log. Returns the outline, too.
pub(crate) fn last_inputs(log: &DeepLog, words: Vec<SoughtWord>) -> (RecordedRun, Vec<SoughtWord>) {
    arranged(log, Scope::Outline, words)
}

/// Arranges a log without its requests, and looks for words in its input.
pub(crate) fn arranged(
    log: &DeepLog,
    scope: Scope,
    words: Vec<SoughtWord>,
) -> (RecordedRun, Vec<SoughtWord>) {
    let mut all = LogProcesses::of(log, scope, words);
    log.walk_calls(|process, call| all.take(process, call, false));
    all.finish()
}

/// The processes of a log, of which each is arranged when its calls come.
struct LogProcesses<'a> {
    arranging: Arranging,
    /// Those that have not come.
    rest: slice::Iter<'a, DeepProcess>,
    /// The epoch of the one whose calls come.
    current: Option<u64>,
    /// Their numbers, and whether they are whole or may lack their last records, by epoch.
    numbers: HashMap<u64, (u32, u32)>,
    whole: HashMap<u64, (bool, bool)>,
}

impl LogProcesses<'_> {
    fn of(log: &DeepLog, scope: Scope, words: Vec<SoughtWord>) -> LogProcesses<'_> {
        let programs = log.programs();
        let whole = programs.iter();
        let whole = whole.map(|program| {
            let state = (program.is_whole, program.lacks_end);
            (program.process.epoch, state)
        });
        let arranging = Arranging::with_clock(RecordedClock::of(log));
        let arranging = arranging.of_lacking_log(log.lacks_because());
        LogProcesses {
            arranging: arranging.of_scope(scope).seeking(words),
            rest: log.processes().iter(),
            current: None,
            numbers: numbers(log.processes()),
            whole: whole.collect(),
        }
    }

    /// Takes a call of a process. `begins`: it is the first one of a request.
    fn take(&mut self, process: &DeepProcess, call: &Call, begins: bool) {
        // A process whose records are all damaged has no call.
        while self.current != Some(process.epoch) {
            if !self.go_on() {
                return;
            }
        }
        self.arranging.take_of_request(call, begins);
    }

    /// Goes to the next process. False behind the last one.
    fn go_on(&mut self) -> bool {
        if self.current.take().is_some() {
            self.arranging.leave();
        }
        let Some(next) = self.rest.next() else {
            return false;
        };
        let (pid, parent) = self.numbers[&next.epoch];
        self.arranging.enter(next.epoch, pid, parent);
        self.arranging.sees_itself_as(next.own_pid);
        if let Some((false, lacks_end)) = self.whole.get(&next.epoch) {
            self.arranging.is_not_whole(*lacks_end);
        }
        self.current = Some(next.epoch);
        true
    }

    /// All calls have come. Returns the words with their inputs, too.
    fn finish(mut self) -> (RecordedRun, Vec<SoughtWord>) {
        while self.go_on() {}
        self.arranging.finish_search()
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
