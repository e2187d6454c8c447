//! The callers of past events.
//!
//! An event names the process that caused it. The process did not wait: it may have executed
//! another program since, or have ended. So this table looks at a process as soon as the kernel
//! tells that it has executed a program. It keeps the facts until an event needs them.
//!
//! Invariants:
//!
//! - Only processes that caused an event are recorded.
//! - All events of a process that nothing identifies belong to one unknown process.
//! - A process is forgotten only after all of its events were taken: see [`EndedProcesses`].

use super::{Caller, CallerTable, KnownCallers};
use crate::observers::{introduced, seen};
use crate::process_facts::Introduction;
use backstory_sys::clock::counter;
use std::collections::{HashMap, HashSet};

/// Most processes whose facts are kept although they caused no event yet.
const KEPT: usize = 4096;

/// Processes that had ended at some time. Once all events before that time were taken, they can be
/// forgotten.
#[derive(Debug)]
pub struct EndedProcesses(Vec<u32>);

/// The facts about a process after an exec, and how many messages preceded the look.
#[derive(Debug)]
struct SeenExec {
    facts: Box<Introduction>,
    since: u64,
}

/// State of the callers of past events.
#[derive(Debug, Default)]
pub(super) struct PastCallers {
    /// The table serves past events.
    used: bool,
    /// Processes that executed a program, and were not looked at since.
    executed: Vec<u32>,
    /// Facts that are not recorded yet.
    seen: HashMap<u32, SeenExec>,
    /// Processes that executed a program, and ended before the look.
    missed: HashSet<u32>,
    /// The program files that processes opened for an exec.
    programs: HashMap<u32, Vec<u8>>,
    /// Processes that nothing identified.
    unknown: HashMap<u32, Caller>,
}

impl PastCallers {
    /// Takes the message that a process has executed a program.
    pub(super) fn heard(&mut self, pid: u32) {
        if self.used {
            self.executed.push(pid);
        }
    }
}

impl CallerTable {
    /// Prepares the table for past events.
    pub fn serve_past_events(&self) {
        self.known().past.used = true;
    }

    /// Looks at the processes that have executed a program. Call this before events are taken from
    /// their queue: then these execs precede the end of the queue.
    pub fn look_ahead(&self) {
        let (executed, since) = {
            let mut known = self.known();
            known.hear();
            (std::mem::take(&mut known.past.executed), known.news_count)
        };
        for pid in executed {
            let facts = introduced(pid);
            let mut known = self.known();
            let past = &mut known.past;
            if past.seen.len() >= KEPT {
                past.seen.clear();
            }
            match facts {
                Some(facts) => {
                    past.seen.insert(pid, SeenExec { facts, since });
                }
                None => {
                    past.missed.insert(pid);
                }
            }
        }
    }

    /// Takes an event: the process opened this program file for an exec.
    pub fn opened_program(&self, pid: u32, path: &[u8]) {
        let mut known = self.known();
        let past = &mut known.past;
        if past.programs.len() >= KEPT {
            past.programs.clear();
        }
        // A script's interpreter is opened after the script. The loader is opened last.
        past.programs.entry(pid).or_insert_with(|| path.to_vec());
    }

    /// The process that caused an event.
    ///
    /// - `lives`: the process had not ended when the event was taken.
    /// - `executes_later`: a later event is an exec of the process. Its present program is then not
    ///   the one that caused this event.
    pub fn past_caller(&self, pid: u32, lives: bool, executes_later: bool) -> Caller {
        // A process of another pid namespace.
        if pid == 0 {
            return self.known().unknown();
        }
        let since = {
            let mut known = self.known();
            if let Some(caller) = known.recorded_caller(pid, executes_later) {
                return caller;
            }
            known.news_count
        };
        if lives && let Some(found) = seen(pid).filter(|found| found.pid == pid) {
            if let Some(caller) = self.known().recognized(pid, &found, since) {
                return caller;
            }
            if let Some(facts) = introduced(pid) {
                return self.known().meet(pid, &found, *facts, since);
            }
        }
        self.known().caller_that_has_gone(pid)
    }

    /// The processes that have ended.
    pub fn ended(&self) -> EndedProcesses {
        let known = self.known();
        let past = &known.past;
        let processes = known.processes.iter();
        let processes = processes.filter(|(pid, of)| of.has_ended(**pid));
        let seen = past.seen.iter().filter(|(pid, of)| {
            let process = &of.facts.process;
            super::has_ended(process.descriptor.as_ref(), **pid)
        });
        let others = past.unknown.keys().chain(&past.missed);
        let all = processes.map(|of| of.0).chain(seen.map(|of| of.0));
        EndedProcesses(all.chain(others).copied().collect())
    }

    /// Forgets processes, after all of their events were taken, and records their end. Returns
    /// their ids in records.
    pub fn forget_ended(&self, ended: EndedProcesses) -> Vec<u32> {
        let mut known = self.known();
        let mut ids = Vec::new();
        for pid in ended.0 {
            ids.push(pid);
            ids.extend(known.past.unknown.get(&pid).map(|caller| caller.ids.pid));
            known.forget(pid);
            let past = &mut known.past;
            past.seen.remove(&pid);
            past.missed.remove(&pid);
            past.programs.remove(&pid);
            past.unknown.remove(&pid);
        }
        ids
    }
}

impl KnownCallers {
    /// The caller, if it is known without a look.
    fn recorded_caller(&mut self, pid: u32, executes_later: bool) -> Option<Caller> {
        let known = self.processes.get(&pid).map(|process| process.epoch);
        if executes_later {
            return known.map(|epoch| Caller::new(pid, pid, epoch));
        }
        if let Some(exec) = self.past.seen.remove(&pid) {
            self.past.programs.remove(&pid);
            let facts = *exec.facts;
            let forked = facts.forked_from.is_some();
            if let Some(parent) = facts.forked_from {
                self.admit(parent, false);
            }
            let epoch = self.admit(facts.process, forked);
            self.keep(pid, pid, exec.since);
            return Some(Caller::new(pid, pid, epoch));
        }
        let current = self.current(pid);
        current.or_else(|| self.past.unknown.get(&pid).copied())
    }

    /// A caller that cannot be looked at any more: a known process, or an unknown one.
    fn caller_that_has_gone(&mut self, pid: u32) -> Caller {
        let executed = self.past.missed.remove(&pid);
        let program = self.past.programs.remove(&pid).filter(|_| executed);
        let known = self.processes.get(&pid).map(|process| process.epoch);
        match (known, program) {
            (Some(epoch), None) => Caller::new(pid, pid, epoch),
            (Some(_), Some(program)) => {
                self.log.program(pid, &program, &[], counter());
                self.epochs += 1;
                let epoch = self.epochs;
                if let Some(process) = self.processes.get_mut(&pid) {
                    process.epoch = epoch;
                }
                Caller::new(pid, pid, epoch)
            }
            (None, program) => {
                let caller = self.unknown();
                if let Some(program) = program {
                    self.log.program(caller.ids.pid, &program, &[], counter());
                }
                self.past.unknown.insert(pid, caller);
                caller
            }
        }
    }
}
