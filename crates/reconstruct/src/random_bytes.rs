//! The random bytes of the requests that are fed.
//!
//! In: the record of a process with several threads, and the removed connections. Out: the same
//! without the random bytes that threads took for these. In a process with one thread, the time
//! that the execution has reached says enough.
//!
//! A thread works for a removed connection between two moves of bytes on such ones. Before its
//! first move, only the next one counts, and behind its last move only that one.

use crate::process::RecordedProcess;
use crate::resource::{Resource, ResourceId};
use std::collections::HashMap;

/// The devices that random bytes are read from.
pub fn devices(resources: &[Resource]) -> Vec<ResourceId> {
    let all = resources.iter().enumerate();
    let random = all.filter(|(_, one)| is_random_device(one));
    random.map(|(id, _)| id).collect()
}

/// True for a device that random bytes are read from.
pub fn is_random_device(resource: &Resource) -> bool {
    resource.name == b"/dev/urandom" || resource.name == b"/dev/random"
}

/// Leaves out the random bytes that were taken for removed connections, from this time on.
/// `is_removed`: whether a resource is a removed connection or one that stays. `None`: it is
/// something else.
pub fn leave_out(
    process: &mut RecordedProcess,
    devices: &[ResourceId],
    begins: u64,
    is_removed: impl Fn(ResourceId) -> Option<bool>,
) {
    let work = work_of_threads(process, is_removed);
    let movers = &process.movers;
    let is_for_removed = |time: u64| {
        let own = movers.get(&time).and_then(|thread| work.get(thread));
        time >= begins && own.is_some_and(|work| lies_in_removed(work, time))
    };
    let requests = &mut process.random_requests;
    requests.retain(|(_, time)| !is_for_removed(*time));
    process.random.retain(|time| !is_for_removed(time));
    for id in devices {
        if let Some(streams) = process.streams.get_mut(id) {
            streams.input.retain(|time| !is_for_removed(time));
        }
    }
}

/// When each thread moved bytes on connections, in order, and whether these were removed.
fn work_of_threads(
    process: &RecordedProcess,
    is_removed: impl Fn(ResourceId) -> Option<bool>,
) -> HashMap<u32, Vec<(u64, bool)>> {
    let mut work: HashMap<u32, Vec<(u64, bool)>> = HashMap::new();
    for (id, streams) in &process.streams {
        let Some(removed) = is_removed(*id) else {
            continue;
        };
        for (time, _) in streams.input.moves().chain(streams.output.moves()) {
            if let Some(thread) = process.movers.get(&time) {
                work.entry(*thread).or_default().push((time, removed));
            }
        }
    }
    // The connections that were left out while the log was read are removed ones.
    for (thread, spans) in &process.omitted.work {
        let ends = spans.iter().flat_map(|(first, last)| [*first, *last]);
        let own = work.entry(*thread).or_default();
        own.extend(ends.map(|time| (time, true)));
    }
    work.values_mut().for_each(|own| own.sort_unstable());
    work
}

/// True if the moves of a thread around this time were on removed connections.
fn lies_in_removed(work: &[(u64, bool)], time: u64) -> bool {
    let (before, behind) = work.split_at(work.partition_point(|(moved, _)| *moved < time));
    let mut around = before.last().into_iter().chain(behind.first());
    around.all(|(_, removed)| *removed)
}

#[cfg(test)]
mod tests {
    use super::{devices, leave_out};
    use crate::input::InputItem;
    use crate::process::{RecordedProcess, ResourceStreams};
    use crate::resource::{Origin, Resource};

    const STAYS: usize = 0;
    const REMOVED: usize = 1;
    const DEVICE: usize = 2;

    /// Adds bytes that a thread read from a resource.
    fn read(process: &mut RecordedProcess, (thread, time): (u32, u64), id: usize) {
        process.movers.insert(time, thread);
        let streams: &mut ResourceStreams = process.streams.entry(id).or_default();
        streams.input.push_at(InputItem::Bytes(vec![0; 4]), time);
    }

    /// Adds random bytes that a thread took.
    fn take(process: &mut RecordedProcess, (thread, time): (u32, u64)) {
        process.movers.insert(time, thread);
        process.random_requests.push_back(((4, 0), time));
        let bytes = InputItem::Bytes(vec![0; 4]);
        process.random.push_at(bytes, time);
    }

    #[test]
    fn random_bytes_that_a_thread_took_for_a_removed_connection_are_left_out() {
        const OWN: u32 = 7;
        const OTHER: u32 = 8;
        let mut process = RecordedProcess::default();
        for (thread, time) in [(OTHER, 1), (OWN, 11), (OTHER, 21), (OTHER, 23), (OWN, 24)] {
            take(&mut process, (thread, time));
        }
        // The other thread serves the removed connection, and then the one that stays.
        for (who, id) in [
            ((OTHER, 20), REMOVED),
            ((OTHER, 22), REMOVED),
            ((OWN, 12), STAYS),
            ((OTHER, 30), STAYS),
        ] {
            read(&mut process, who, id);
        }
        for (thread, time) in [(OTHER, 14), (OWN, 15), (OTHER, 25)] {
            read(&mut process, (thread, time), DEVICE);
        }
        let device = Resource::new(Origin::Opened, b"/dev/urandom", libc::S_IFCHR);
        let socket = || Resource::new(Origin::Socket, b"", libc::S_IFSOCK);
        let random = devices(&[socket(), socket(), device]);
        assert_eq!(random, [DEVICE]);
        leave_out(&mut process, &random, 10, |id| match id {
            STAYS => Some(false),
            REMOVED => Some(true),
            _ => None,
        });
        let times = process.random_requests.iter().map(|(_, time)| *time);
        let times: Vec<u64> = times.collect();
        assert_eq!(times, [1, 11, 23, 24]);
        let times: Vec<u64> = process.random.moves().map(|(time, _)| time).collect();
        assert_eq!(times, [1, 11, 23, 24]);
        let read = &process.streams[&DEVICE].input;
        let times: Vec<u64> = read.moves().map(|(time, _)| time).collect();
        assert_eq!(times, [15, 25]);
    }
}
