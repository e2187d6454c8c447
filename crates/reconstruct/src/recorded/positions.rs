//! The positions of bytes in pipes, sockets and terminals that several processes use.
//!
//! In: the moves of each process, counted from its own first byte. Out: positions in the order of
//! time over all processes. Files have positions of their own.

use super::RecordedRun;
use crate::process::{RecordedProcess, ResourceStreams};
use crate::resource::ResourceId;
use libc::S_IFREG;
use std::collections::{HashMap, VecDeque};

/// Gives each byte of a shared stream one position in all processes.
pub fn share(run: &mut RecordedRun) {
    joined(
        run,
        |streams| streams.input.moves().collect(),
        |streams, starts| streams.input.set_starts(starts),
    );
    joined(
        run,
        |streams| streams.output.moves().collect(),
        |streams, starts| streams.output.set_starts(starts),
    );
}

/// Does it for one direction. `moves`: time and length of each move.
fn joined(
    run: &mut RecordedRun,
    moves: impl Fn(&ResourceStreams) -> Vec<(u64, u64)>,
    set: impl Fn(&mut ResourceStreams, VecDeque<u64>),
) {
    let mut users: HashMap<ResourceId, Vec<usize>> = HashMap::new();
    for (index, process) in run.processes.iter().enumerate() {
        let used = process.streams.iter().filter(|(id, streams)| {
            run.resources[**id].kind != S_IFREG && !moves(streams).is_empty()
        });
        used.for_each(|(id, _)| users.entry(*id).or_default().push(index));
    }
    for (id, users) in users.into_iter().filter(|(_, users)| users.len() > 1) {
        let streams = |process: &RecordedProcess| process.streams.get(&id).map(&moves);
        let mut all: Vec<(u64, usize, u64)> = Vec::new();
        for index in users {
            let own = streams(&run.processes[index]).unwrap_or_default();
            all.extend(own.into_iter().map(|(time, length)| (time, index, length)));
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
            if let Some(streams) = run.processes[index].streams.get_mut(&id) {
                set(streams, starts);
            }
        }
    }
}
