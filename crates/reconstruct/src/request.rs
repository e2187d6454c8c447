//! Requests: the connections that a run accepted, and the choice of one.

use crate::error::Error;
use crate::process::{Made, RecordedProcess};
use crate::recorded::RecordedRun;
use crate::resource::ResourceId;

/// A connection that a program of the run accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedRequest {
    /// The program that accepted it, as an index.
    pub process: usize,
    /// The listener.
    pub listener: ResourceId,
    /// The connection.
    pub connection: ResourceId,
}

/// The connections of a run, by process and in the order of their acceptance.
pub fn requests(run: &RecordedRun) -> Vec<ServedRequest> {
    let mut found = Vec::new();
    for (process, recorded) in run.processes.iter().enumerate() {
        for (listener, streams) in &recorded.streams {
            for (made, _) in &streams.accepted {
                if let Made::Resource(connection) = made {
                    found.push(ServedRequest {
                        process,
                        listener: *listener,
                        connection: *connection,
                    });
                }
            }
        }
    }
    // Resources are numbered in the order in which they were made.
    found.sort_unstable_by_key(|request| (request.process, request.connection));
    found
}

/// The request with this number, from 1.
///
/// # Errors
/// There are fewer.
pub fn chosen(run: &RecordedRun, wanted: usize) -> Result<ServedRequest, Error> {
    let all = requests(run);
    let missing = Error::NoRequest {
        wanted,
        found: all.len(),
    };
    let at = wanted.checked_sub(1);
    at.and_then(|at| all.get(at)).cloned().ok_or(missing)
}

/// Removes all connections but number `wanted`, from 1. The calls between connections
/// stay.
pub fn choose(run: &mut RecordedRun, wanted: usize) -> Result<(), Error> {
    let chosen = chosen(run, wanted)?;
    let all = requests(run);
    let others: Vec<ResourceId> = all
        .iter()
        .map(|request| request.connection)
        .filter(|connection| *connection != chosen.connection)
        .collect();
    let serves = |process: &RecordedProcess, connection: &ResourceId| {
        process.streams.contains_key(connection)
    };
    // Processes that were made for other connections are not made.
    let idle: Vec<i64> = run
        .processes
        .iter()
        .enumerate()
        .filter(|(index, process)| {
            let one_of = others.iter().any(|other| serves(process, other));
            *index != chosen.process && one_of && !serves(process, &chosen.connection)
        })
        .map(|(_, process)| i64::from(process.pid))
        .collect();
    for (index, process) in run.processes.iter_mut().enumerate() {
        process.only = Some(chosen.connection);
        process.children.retain(|child| !idle.contains(child));
        for streams in process.streams.values_mut() {
            let stays = |made: &Made| !matches!(made, Made::Resource(id) if others.contains(id));
            streams.accepted.retain(|(made, _)| stays(made));
        }
        process.turns.retain(|turn| {
            let gone = |id: &Option<ResourceId>| id.is_some_and(|id| others.contains(&id));
            !turn.ready.iter().any(|(id, _)| gone(id))
        });
        for other in &others {
            process.streams.remove(other);
        }
        if index == chosen.process {
            // It is ended when the request has been served.
            process.exit = None;
            process.signals.clear();
        }
    }
    Ok(())
}
