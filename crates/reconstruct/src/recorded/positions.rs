//! The positions of bytes in pipes, sockets and terminals that several processes use.
//!
//! In: the moves of each process, counted from its own first byte. Out: positions in the order of
//! time over all processes. Files have positions of their own.

use super::RecordedRun;
use crate::omitted::OmittedMoves;
use crate::process::{RecordedProcess, ResourceStreams};
use crate::resource::ResourceId;
use libc::S_IFREG;
use std::collections::{HashMap, VecDeque};

/// Gives each byte of a shared stream one position in all processes.
pub fn share(run: &mut RecordedRun) {
    joined(
        run,
        |streams| streams.input.moves().collect(),
        |omitted| &omitted.reads,
        |streams, starts| streams.input.set_starts(starts),
    );
    joined(
        run,
        |streams| streams.output.moves().collect(),
        |omitted| &omitted.writes,
        |streams, starts| streams.output.set_starts(starts),
    );
}

/// Does it for one direction. `moves`: time and length of each move. `omitted`: the same of a
/// stream whose bytes were left out, and which gets no positions.
fn joined(
    run: &mut RecordedRun,
    moves: impl Fn(&ResourceStreams) -> Vec<(u64, u64)>,
    omitted: impl Fn(&OmittedMoves) -> &Vec<(u64, u64)>,
    set: impl Fn(&mut ResourceStreams, VecDeque<u64>),
) {
    let of = |process: &RecordedProcess, id: ResourceId| {
        let left_out = process.omitted.moves.get(&id).map(&omitted);
        let own = process.streams.get(&id).filter(|_| left_out.is_none());
        own.map_or_else(|| left_out.cloned().unwrap_or_default(), &moves)
    };
    let mut users: HashMap<ResourceId, Vec<usize>> = HashMap::new();
    for (index, process) in run.processes.iter().enumerate() {
        let known = process.omitted.moves.keys();
        let own = process.streams.keys();
        let own = own.filter(|id| !process.omitted.moves.contains_key(id));
        let is_used =
            |id: &&ResourceId| run.resources[**id].kind != S_IFREG && !of(process, **id).is_empty();
        let used = own.chain(known).filter(is_used);
        used.for_each(|id| users.entry(*id).or_default().push(index));
    }
    for (id, users) in users.into_iter().filter(|(_, users)| users.len() > 1) {
        let mut all: Vec<(u64, usize, u64)> = Vec::new();
        for index in users {
            let own = of(&run.processes[index], id).into_iter();
            all.extend(own.map(|(time, length)| (time, index, length)));
        }
        // The order within a process stays.
        all.sort_by_key(|(time, ..)| *time);
        let mut starts: HashMap<usize, VecDeque<u64>> = HashMap::new();
        let mut next = 0u64;
        for (_, index, length) in all {
            starts.entry(index).or_default().push_back(next);
            next = next.saturating_add(length);
        }
        for (index, starts) in starts {
            let process = &mut run.processes[index];
            let is_here = !process.omitted.moves.contains_key(&id);
            if let Some(streams) = process.streams.get_mut(&id).filter(|_| is_here) {
                set(streams, starts);
            }
        }
    }
}
