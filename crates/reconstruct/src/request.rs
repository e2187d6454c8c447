//! Requests: the units of work of a run, and the choice of those that are fed.
//!
//! In: the units that `backstory requests` lists. Out: a run from which the others were removed.
//! Invariant: a removed connection reaches no process, and a process that only served removed
//! connections is not made.

use crate::error::Error;
use crate::process::{Made, RecordedProcess};
use crate::recorded::RecordedRun;
use crate::resource::{Origin, ResourceId};
use crate::unit::RecordedUnit;
use std::collections::{HashMap, HashSet};

/// The unit with this number, from 1.
///
/// # Errors
/// There are fewer, or the record does not have its connection.
pub fn chosen(run: &RecordedRun, wanted: usize) -> Result<RecordedUnit, Error> {
    let missing = Error::NoRequest {
        wanted,
        found: run.units.len(),
    };
    let at = wanted.checked_sub(1);
    let found = at.and_then(|at| run.units.get(at)).ok_or(missing)?;
    found.ok_or(Error::NoConnection(wanted))
}

/// Removes all units but number `wanted` and those in `fed`, from 1. The calls between connections
/// stay. A unit of a client needs all that came before, so nothing is removed for it.
///
/// # Errors
/// As of [`chosen`].
pub fn choose(run: &mut RecordedRun, wanted: usize, fed: &[usize]) -> Result<RecordedUnit, Error> {
    let unit = chosen(run, wanted)?;
    for process in &mut run.processes {
        process.only = Some(unit.connection);
    }
    if unit.is_client {
        return Ok(unit);
    }
    let mut stay: HashMap<ResourceId, Vec<RecordedUnit>> = HashMap::new();
    let mut all = HashSet::new();
    for (index, other) in run.units.iter().enumerate() {
        let Some(other) = other.filter(|other| !other.is_client) else {
            continue;
        };
        all.insert(other.connection);
        if index + 1 == wanted || fed.contains(&(index + 1)) {
            stay.entry(other.connection).or_default().push(other);
        }
    }
    keep_further_connections(run, &mut stay);
    // Connections on which nothing came have no unit.
    for process in &run.processes {
        for accepted in process.streams.values().flat_map(|s| &s.accepted) {
            if let Made::Resource(id) = accepted.made {
                all.insert(id);
            }
        }
    }
    let gone: HashSet<ResourceId> = all
        .into_iter()
        .filter(|id| !stay.contains_key(id))
        .collect();
    leave_out_processes(run, unit.process, &gone, &stay);
    let first = run.processes.iter().filter_map(first_contact).min();
    for (index, process) in run.processes.iter_mut().enumerate() {
        leave_out_streams((index, process), &gone, &stay, first.unwrap_or(u64::MAX));
    }
    let streams = run.processes[unit.process]
        .streams
        .get_mut(&unit.connection);
    if let Some(streams) = streams {
        streams.output.prepares_until(unit.after);
    }
    Ok(unit)
}

/// A unit may have further connections, over a listener that was made for it: those of FTP that
/// carry a file.
fn keep_further_connections(run: &RecordedRun, stay: &mut HashMap<ResourceId, Vec<RecordedUnit>>) {
    let listener = |id: ResourceId| match run.resources[id].origin {
        Origin::Accepted(listener) => Some(listener),
        _ => None,
    };
    let units: Vec<RecordedUnit> = stay.values().flatten().copied().collect();
    for other in run.units.iter().flatten() {
        let belongs = |unit: &RecordedUnit| {
            unit.process == other.process
                && listener(unit.connection) != listener(other.connection)
                && unit.began <= other.began
                && other.began <= unit.ended
        };
        if !other.is_client && !stay.contains_key(&other.connection) && units.iter().any(belongs) {
            stay.insert(other.connection, vec![*other]);
        }
    }
}

/// Processes that were made for connections that are gone, and for no other, are not made.
fn leave_out_processes(
    run: &mut RecordedRun,
    serving: usize,
    gone: &HashSet<ResourceId>,
    stay: &HashMap<ResourceId, Vec<RecordedUnit>>,
) {
    let has_moved = |process: &RecordedProcess, id: &ResourceId| {
        let stream = process.streams.get(id);
        stream.is_some_and(|s| s.input.remaining() > 0 || s.output.remaining() > 0)
    };
    let idle: HashSet<i64> = run
        .processes
        .iter()
        .enumerate()
        .filter(|(index, process)| {
            *index != serving
                && gone.iter().any(|id| has_moved(process, id))
                && !stay.keys().any(|id| process.streams.contains_key(id))
        })
        .map(|(_, process)| i64::from(process.pid))
        .collect();
    let needed = with_ancestors(&run.processes, |id| stay.contains_key(id));
    // Those that worked for a removed connection. Others do their work without any.
    let served = with_ancestors(&run.processes, |id| gone.contains(id));
    for process in &mut run.processes {
        let first = first_contact(process).unwrap_or(u64::MAX);
        let serves = stay.keys().any(|id| process.streams.contains_key(id));
        process.children.retain_mut(|child| {
            if child.time > first {
                // A child for each connection: those of other connections are not forked.
                let mut units = stay.values().flatten();
                let within = units.any(|u| u.began <= child.time && child.time <= u.ended);
                let idle = !served.contains(&child.pid);
                return needed.contains(&child.pid) || idle || serves && within;
            }
            child.is_made &= !idle.contains(&child.pid);
            true
        });
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
        .filter(|process| process.streams.keys().any(&connections));
    for process in serving {
        let mut pid = Some(process.pid);
        while let Some(own) = pid.filter(|own| needed.insert(i64::from(*own))) {
            pid = parents.get(&own).copied();
        }
    }
    needed
}

/// When a process first accepted a connection, or moved bytes on one.
fn first_contact(process: &RecordedProcess) -> Option<u64> {
    let accepted = process.streams.values().flat_map(|s| &s.accepted);
    let moved = process.moves.keys().map(|(time, _)| *time);
    accepted.map(|accepted| accepted.time).chain(moved).min()
}

fn leave_out_streams(
    (own, process): (usize, &mut RecordedProcess),
    gone: &HashSet<ResourceId>,
    stay: &HashMap<ResourceId, Vec<RecordedUnit>>,
    first_of_run: u64,
) {
    // Waits before the first connection belong to the beginning of the program, and the others to
    // the units that they lie in. The wait for the first bytes of a unit returned before it began.
    let first = first_contact(process).unwrap_or(first_of_run);
    let lies_in = |time: u64| {
        let mut units = stay.values().flatten();
        time < first || units.any(|unit| unit.began <= time && time <= unit.lasts)
    };
    // Bytes of pipes follow the same rule: the last ones may tell the program to end.
    let fits = |id: &ResourceId, time: u64| match stay.get(id) {
        Some(units) => units.iter().any(|unit| unit.has(own, time)),
        None => !gone.contains(id) && lies_in(time),
    };
    process.streams.retain(|id, _| !gone.contains(id));
    for (id, streams) in &mut process.streams {
        streams.input.retain(|time| fits(id, time));
        streams.output.retain(|time| fits(id, time));
        streams.accepted.retain(|accepted| match accepted.made {
            Made::Resource(id) => !gone.contains(&id),
            Made::Failed(_) => false,
        });
    }
    // A listener is ready while a connection is left, and a wait for nothing is left out.
    let listens: HashSet<ResourceId> = process
        .streams
        .iter()
        .filter(|(_, streams)| streams.is_listener)
        .map(|(id, _)| *id)
        .collect();
    process.turns.retain_mut(|turn| {
        let time = turn.time;
        let stays = |id: &ResourceId| !listens.contains(id) && fits(id, time);
        let timed_out = turn.ready.is_empty() && turn.value == 0;
        turn.ready.retain(|(id, _)| id.is_some_and(|id| stays(&id)));
        !turn.ready.is_empty() || timed_out && lies_in(time) && time >= first
    });
    // All programs are ended when the request has been served.
    process.is_part = true;
    process.exit = None;
    process.has_exited = false;
    process.signals.clear();
}
