//! The two ends of pipes and pairs of sockets, and when their bytes left.
//!
//! In: a run before its choice of requests. Out: the same with other times of writes. Invariants: a
//! write is dated at the latest by the read of another process that got its first byte. A busy
//! machine may let it return long after that. The times do not depend on how much of a log was
//! read. A part of it has the moves of all ends that two processes use.

use crate::recorded::RecordedRun;
use crate::resource::ResourceId;
use libc::S_IFREG;
use std::collections::HashMap;
use std::time::Duration;

/// A write returns at most so long after its bytes were read. Otherwise, the positions of the two
/// ends do not belong together.
const LONGEST: Duration = Duration::from_secs(1);

/// A read that got bytes.
struct Read {
    /// The position of the first of them.
    start: u64,
    time: u64,
    /// The index of the process.
    process: usize,
}

/// Dates the writes of a run by the reads of their bytes.
pub(crate) fn date_writes(run: &mut RecordedRun) {
    let is_stream = |id: ResourceId| run.resources[id].kind != S_IFREG;
    let pairs = run.pairs.iter();
    let pairs = pairs.filter(|(one, two)| is_stream(*one) && is_stream(*two));
    // Of a pipe, both ends are one resource.
    let ends: HashMap<ResourceId, ResourceId> = pairs
        .flat_map(|(one, two)| [(*one, *two), (*two, *one)])
        .collect();
    let reads = reads(run, &ends);
    let clock = run.clock;
    for (index, process) in run.processes.iter_mut().enumerate() {
        for (id, streams) in &mut process.streams {
            let Some(reads) = reads.get(id) else {
                continue;
            };
            streams.output.date(|start, time| {
                let behind = reads.partition_point(|read| read.start <= start);
                let read = behind.checked_sub(1).and_then(|at| reads.get(at));
                let read = read.filter(|read| read.process != index && read.time < time);
                let read = read.filter(|read| clock.between(read.time, time) < LONGEST);
                read.map_or(time, |read| read.time)
            });
        }
    }
}

/// The reads that got bytes, by the end that these were written to, in the order of positions.
fn reads(
    run: &RecordedRun,
    ends: &HashMap<ResourceId, ResourceId>,
) -> HashMap<ResourceId, Vec<Read>> {
    let mut all: HashMap<ResourceId, Vec<(u64, u64, usize)>> = HashMap::new();
    for (index, process) in run.processes.iter().enumerate() {
        // Those of streams whose bytes were left out, and of others.
        let left_out = &process.omitted.moves;
        for (id, moves) in left_out {
            if let Some(end) = ends.get(id) {
                let reads = moves.reads.iter();
                let reads = reads.map(|(time, length)| (*time, *length, index));
                all.entry(*end).or_default().extend(reads);
            }
        }
        for (id, streams) in &process.streams {
            if let Some(end) = ends.get(id).filter(|_| !left_out.contains_key(id)) {
                let reads = streams.input.moves();
                let reads = reads.map(|(time, length)| (time, length, index));
                all.entry(*end).or_default().extend(reads);
            }
        }
    }
    let positioned = |mut reads: Vec<(u64, u64, usize)>| {
        // As the positions of shared streams: the order within a process stays.
        reads.sort_by_key(|(time, ..)| *time);
        let mut next = 0u64;
        let reads = reads.into_iter().filter(|(_, length, _)| *length > 0);
        let reads = reads.map(|(time, length, process)| {
            let start = next;
            next = next.saturating_add(length);
            Read {
                start,
                time,
                process,
            }
        });
        reads.collect::<Vec<Read>>()
    };
    let all = all.into_iter();
    all.map(|(end, reads)| (end, positioned(reads))).collect()
}

#[cfg(test)]
mod tests {
    use super::date_writes;
    use crate::input::InputItem;
    use crate::omitted::OmittedMoves;
    use crate::output::OutputItem;
    use crate::process::RecordedProcess;
    use crate::recorded::RecordedRun;
    use crate::resource::{Origin, Resource, ResourceId};

    const ONE: ResourceId = 0;
    const TWO: ResourceId = 1;
    const READS: [(&str, u64); 3] = [("so", 20), ("meso", 50), ("me", 60)];

    /// The times and lengths of two writes, after the second process of these has read.
    fn dated(processes: [RecordedProcess; 2]) -> Vec<(u64, u64)> {
        let socket = || Resource::new(Origin::Paired, b"", libc::S_IFSOCK);
        let mut run = RecordedRun {
            processes: processes.into(),
            resources: vec![socket(), socket()],
            pairs: vec![(ONE, TWO)],
            ..RecordedRun::default()
        };
        let output = &mut run.processes[0].streams.entry(TWO).or_default().output;
        for time in [30, 40] {
            output.push_at(OutputItem::Bytes(b"some".to_vec()), time);
        }
        date_writes(&mut run);
        run.processes[0].streams[&TWO].output.moves().collect()
    }

    fn reader() -> RecordedProcess {
        let mut reader = RecordedProcess::default();
        let input = &mut reader.streams.entry(ONE).or_default().input;
        for (bytes, time) in READS {
            input.push_at(InputItem::Bytes(bytes.into()), time);
        }
        reader
    }

    #[test]
    fn a_write_that_returned_after_its_bytes_were_read_has_the_time_of_the_read() {
        let times = dated([RecordedProcess::default(), reader()]);
        assert_eq!(times, [(20, 4), (40, 4)]);
    }

    #[test]
    fn a_write_has_the_same_time_if_the_read_bytes_were_left_out() {
        let mut reader = RecordedProcess::default();
        let reads = READS.map(|(bytes, time)| (time, bytes.len() as u64)).into();
        let writes = Vec::new();
        let moves = OmittedMoves { reads, writes };
        reader.omitted.moves.insert(ONE, moves);
        let times = dated([RecordedProcess::default(), reader]);
        assert_eq!(times, [(20, 4), (40, 4)]);
    }

    #[test]
    fn a_write_whose_bytes_the_same_process_read_keeps_its_time() {
        let times = dated([reader(), RecordedProcess::default()]);
        assert_eq!(times, [(30, 4), (40, 4)]);
    }
}
