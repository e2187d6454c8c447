//! The units of work of a run, as `backstory requests` lists them, with their connections.
//!
//! In: the list, and the recorded processes. Out: for each unit its process, connection and times.

use crate::process::RecordedProcess;
use crate::resource::ResourceId;
use backstory_deep::{Request, Role};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// A unit of work on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedUnit {
    /// The program that worked on it, as an index.
    pub process: usize,
    /// The connection.
    pub connection: ResourceId,
    /// True if the program made the connection itself.
    pub is_client: bool,
    /// Time-stamp counter at its first call.
    pub began: u64,
    /// That at the end of the unit before it on this connection, or 0.
    pub after: u64,
    /// Time-stamp counter at its end. The largest number: the rest of the connection.
    pub until: u64,
    /// Time-stamp counter at its last call that moved bytes.
    pub ended: u64,
    /// That at its last call before the next unit on this connection.
    pub worked_until: u64,
    /// Time-stamp counter before the last call that sent bytes of it. Without one, as `began`.
    pub sent: u64,
    /// That when the next unit on the connection began, in any process: until then the processes
    /// may work for this one. For the last unit, as `ended`.
    pub lasts: u64,
}

impl RecordedUnit {
    /// A connection on which no byte moved. `span`: when it was accepted, and until when it stays.
    pub fn without_bytes(
        process: usize,
        connection: ResourceId,
        (began, until): (u64, u64),
    ) -> RecordedUnit {
        RecordedUnit {
            process,
            connection,
            is_client: false,
            began,
            after: 0,
            until,
            ended: began,
            worked_until: began,
            sent: began,
            lasts: began,
        }
    }

    /// True for a call of this unit that returned at a time in this program. Another program than
    /// its own works on the connection for it, as those of CGI do.
    pub fn has(&self, process: usize, time: u64) -> bool {
        match process == self.process {
            true => self.after < time && time <= self.until,
            false => self.began <= time && time <= self.lasts,
        }
    }
}

/// The units behind listed requests, in their order.
pub fn units(processes: &[RecordedProcess], requests: &[Request]) -> Vec<Option<RecordedUnit>> {
    let by_epoch: HashMap<u64, usize> = processes
        .iter()
        .enumerate()
        .map(|(index, process)| (process.epoch, index))
        .collect();
    // The last unit of each connection so far, as an index.
    let mut last: HashMap<(usize, ResourceId), (usize, u64)> = HashMap::new();
    let mut units: Vec<Option<RecordedUnit>> = Vec::new();
    for request in requests {
        let unit = by_epoch.get(&request.epoch).and_then(|&process| {
            let moves = &processes[process].moves;
            let connection = *moves.get(&(request.began, request.fd))?;
            let key = (process, connection);
            let before = last.insert(key, (units.len(), request.ended));
            if let Some((index, ended)) = before
                && let Some(Some(earlier)) = units.get_mut(index)
            {
                earlier.until = ended;
                // Another thread may send this request while that of the earlier one works.
                let work = earlier.worked_until.min(request.began.saturating_sub(1));
                earlier.worked_until = work.max(earlier.ended);
            }
            Some(RecordedUnit {
                process,
                connection,
                is_client: request.role == Role::Client,
                began: request.began,
                after: before.map_or(0, |(_, ended)| ended),
                until: u64::MAX,
                ended: request.ended,
                worked_until: request.worked_until.max(request.ended),
                sent: request.sent,
                lasts: request.ended,
            })
        });
        units.push(unit);
    }
    let mut next: HashMap<ResourceId, u64> = HashMap::new();
    for unit in units.iter_mut().rev().flatten() {
        let began = next.insert(unit.connection, unit.began);
        unit.lasts = began.unwrap_or(unit.ended).max(unit.ended);
    }
    units
}
