//! The processes that are made when a request runs again.
//!
//! In: a run, and the units that are fed. Out: the children that are left, and those that stand for
//! others. Invariant: a process that only served removed connections is not made.

use crate::process::RecordedProcess;
use crate::recorded::RecordedRun;
use crate::resource::ResourceId;
use crate::time_spans::Windows;
use crate::unit::RecordedUnit;
use std::collections::{HashMap, HashSet};

/// The units that are fed, by connection.
pub(crate) type Kept = HashMap<ResourceId, Vec<RecordedUnit>>;

/// Processes that were made for connections that are gone, and for no other, are not made.
pub(crate) fn leave_out_processes(
    run: &mut RecordedRun,
    serving: usize,
    gone: &HashSet<ResourceId>,
    stay: &Kept,
) {
    let has_moved = |process: &RecordedProcess| {
        let mut own = process.used();
        own.any(|id| gone.contains(&id) && process.has_moved(id))
    };
    let serves = |process: &RecordedProcess| {
        let mut own = process.used();
        own.any(|id| stay.contains_key(&id))
    };
    let idle: HashSet<i64> = run
        .processes
        .iter()
        .enumerate()
        .filter(|(index, process)| *index != serving && has_moved(process) && !serves(process))
        .map(|(_, process)| i64::from(process.pid))
        .collect();
    let needed = with_ancestors(&run.processes, |id| stay.contains_key(id));
    // Those that worked for a removed connection. Others do their work without any.
    let served = with_ancestors(&run.processes, |id| gone.contains(id));
    let units = stay.values().flatten();
    let lasting = Windows::of(units.map(|unit| (unit.began, unit.ended)));
    for process in &mut run.processes {
        let first = first_contact(process).unwrap_or(u64::MAX);
        let serves = serves(process);
        mark_asides(process, |pid| {
            needed.contains(&pid) || served.contains(&pid)
        });
        process.children.retain_mut(|child| {
            if child.time > first {
                // A child for each connection: those of other connections are not forked.
                let idle = !served.contains(&child.pid);
                let within = || lasting.have(child.time);
                return needed.contains(&child.pid) || idle || serves && within();
            }
            child.is_made &= !idle.contains(&child.pid);
            true
        });
    }
}

/// A worker that was made when the server had begun to serve takes the place of one before it. That
/// one is left out, and accepted from the same listener. A server makes further workers when the
/// others have much to do, as Apache does. Here they have not, so it would make none.
pub(crate) fn bring_workers_forward(run: &mut RecordedRun, stay: &Kept) {
    let begun = run.processes.iter().filter_map(first_contact).min();
    let mut listeners: HashMap<i64, HashSet<ResourceId>> = HashMap::new();
    let mut serving = HashSet::new();
    for process in &run.processes {
        let pid = i64::from(process.pid);
        let own = process.streams.iter();
        let accepting = own.filter(|(_, streams)| !streams.accepted.is_empty());
        listeners
            .entry(pid)
            .or_default()
            .extend(accepting.map(|(id, _)| *id));
        if process.used().any(|id| stay.contains_key(&id)) {
            serving.insert(pid);
        }
    }
    let alike = |one: i64, two: i64| {
        let both = listeners.get(&one).zip(listeners.get(&two));
        both.is_some_and(|(one, two)| !one.is_disjoint(two))
    };
    let makers = run.processes.iter_mut();
    for maker in makers.filter(|maker| first_contact(maker).is_none()) {
        let mut at = 0;
        while let Some(child) = maker.children.get(at).copied() {
            let is_late = child.is_made && Some(child.time) > begun && serving.contains(&child.pid);
            let before = maker.children.iter_mut().take(at);
            let mut left_out = before.filter(|one| !one.is_made);
            match left_out.find(|one| is_late && alike(one.pid, child.pid)) {
                Some(place) => {
                    (place.pid, place.is_made) = (child.pid, true);
                    maker.children.remove(at);
                }
                None => at += 1,
            }
        }
    }
}

/// The process ids of the processes that will be made: the first one, and the children that are
/// left.
pub(crate) fn made_processes(run: &RecordedRun, first: usize) -> HashSet<u32> {
    let children = run.processes.iter().flat_map(|process| &process.children);
    let made = children.filter(|child| child.is_made);
    let made = made.filter_map(|child| u32::try_from(child.pid).ok());
    let first = run.processes.get(first).map(|process| process.pid);
    made.chain(first).collect()
}

/// Marks the children that were made after the child of a connection, and before the next
/// connection: workers that clean up now and then.
fn mark_asides(process: &mut RecordedProcess, has_connection: impl Fn(i64) -> bool) {
    let accepted = process.streams.values().flat_map(|s| &s.accepted);
    let mut accepts: Vec<u64> = accepted.map(|accepted| accepted.time).collect();
    accepts.sort_unstable();
    let mut seen = None;
    for child in &mut process.children {
        let number = accepts.partition_point(|time| *time < child.time);
        match has_connection(child.pid) {
            true => seen = Some(number),
            false => child.is_aside = seen == Some(number) && number > 0,
        }
    }
}

/// The process ids of the processes that have one of these connections, and of their ancestors.
fn with_ancestors(
    processes: &[RecordedProcess],
    connections: impl Fn(&ResourceId) -> bool,
) -> HashSet<i64> {
    let parents: HashMap<u32, u32> = processes.iter().map(|p| (p.pid, p.parent)).collect();
    let mut needed = HashSet::new();
    let serving = processes
        .iter()
        .filter(|process| process.used().any(|id| connections(&id)));
    for process in serving {
        let mut pid = Some(process.pid);
        while let Some(own) = pid.filter(|own| needed.insert(i64::from(*own))) {
            pid = parents.get(&own).copied();
        }
    }
    needed
}

/// When a process first accepted a connection, or moved bytes on one.
pub(crate) fn first_contact(process: &RecordedProcess) -> Option<u64> {
    let accepted = process.streams.values().flat_map(|s| &s.accepted);
    let accepted = accepted.map(|accepted| accepted.time);
    accepted.chain(process.first_contact).min()
}
