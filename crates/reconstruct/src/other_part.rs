//! A part of a record behind a start that another part of it fed.
//!
//! Attempts at a request are fed different parts of the record, and all have the same start. In:
//! the part that fed a start, before and behind it, and another part. Out: the other part behind
//! the same start.
//!
//! Invariant: the start took entries from the front of queues only, and the other part has the same
//! entries there. Everything else that the start changed was the same in both parts. If one of
//! these does not hold, there is no result, and the attempt needs a start of its own.

use crate::behind_start::{map, queue, same, state};
use crate::input::InputStream;
use crate::output::ExpectedOutput;
use crate::process::{RecordedProcess, ResourceStreams};
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

fn queues<K: Clone + Eq + Hash, T: Clone + PartialEq>(
    fresh: &HashMap<K, VecDeque<T>>,
    left: &HashMap<K, VecDeque<T>>,
    other: &HashMap<K, VecDeque<T>>,
) -> Option<HashMap<K, VecDeque<T>>> {
    map(fresh, left, other, queue)
}

/// A structure whose fields follow these rules. The compiler finds a field that is missing.
macro_rules! by_field {
    ($type:ident, $fresh:ident, $left:ident, $other:ident, {
        $($field:ident: $rule:expr),* $(,)?
    }) => {
        $type { $($field: $rule(&$fresh.$field, &$left.$field, &$other.$field)?),* }
    };
}

impl ResourceStreams {
    fn behind_start(
        fresh: &ResourceStreams,
        left: &ResourceStreams,
        other: &ResourceStreams,
    ) -> Option<ResourceStreams> {
        Some(by_field!(ResourceStreams, fresh, left, other, {
            input: InputStream::behind_start,
            output: ExpectedOutput::behind_start,
            control: state,
            is_listener: state,
            accepted: queue,
            connected: queue,
        }))
    }
}

impl RecordedProcess {
    /// The record of a program in another part, behind the start of the program. `fresh`, `left`:
    /// the record that fed this start, before and behind it. `None`: the start cannot stand for one
    /// that the other part feeds.
    pub(crate) fn behind_start(
        fresh: &RecordedProcess,
        left: &RecordedProcess,
        other: &RecordedProcess,
    ) -> Option<RecordedProcess> {
        Some(by_field!(RecordedProcess, fresh, left, other, {
            epoch: same,
            pid: same,
            own_pid: same,
            parent: same,
            start: same,
            inherited: same,
            held: same,
            streams: |fresh, left, other| map(fresh, left, other, ResourceStreams::behind_start),
            opens: queues,
            temporary_names: queue,
            sockets: queues,
            pairs: queues,
            results: queues,
            turns: queue,
            times: queues,
            processors: queues,
            counters: queues,
            identities: queues,
            threads: same,
            random: InputStream::behind_start,
            random_requests: queue,
            children: queue,
            began: same,
            moves: state,
            movers: state,
            call_times: state,
            signals: queue,
            handlers: same,
            child_ends: state,
            exit: state,
            killed_by: state,
            killed_at: state,
            has_exited: state,
            ended: state,
            references: state,
            only: state,
            is_part: same,
            calls: state,
            pauses: state,
            gap: state,
            lacks_calls: state,
            lacks_end: state,
            whole_until: state,
            ends_early: state,
            native: state,
            last_made: state,
            recorded_until: state,
            is_shallow: same,
            first_contact: state,
            omitted: state,
        }))
    }
}

#[cfg(test)]
mod tests {
    use crate::input::InputItem;
    use crate::process::{AcceptedConnection, CallObject, Made, RecordedProcess, RecordedResult};
    use crate::process::{ResultKey, skip_to};

    const LISTENER: usize = 0;

    /// A program that looks at a file three times, and has these connections.
    fn part(connections: &[u64]) -> RecordedProcess {
        let mut process = RecordedProcess::default();
        let key = ResultKey {
            call: 4,
            object: CallObject::Path(b"/f".to_vec()),
            detail: 0,
        };
        let results = process.results.entry(key).or_default();
        for time in [1, 2, 3] {
            results.push_back((RecordedResult::default(), time));
        }
        for time in connections {
            let id = *time as usize;
            let streams = process.streams.entry(id).or_default();
            streams.input.push_at(InputItem::Bytes(vec![7; id]), *time);
            let listener = process.streams.entry(LISTENER).or_default();
            listener.accepted.push_back(AcceptedConnection {
                made: Made::Resource(id),
                address: Vec::new(),
                time: *time,
            });
        }
        process
    }

    #[test]
    fn a_part_behind_the_start_of_another_one_has_its_own_connections_and_the_rest_of_the_start() {
        let (fresh, other) = (part(&[9]), part(&[5, 9]));
        let mut left = fresh.clone();
        left.results
            .values_mut()
            .for_each(|queue| skip_to(queue, 2));
        let behind = RecordedProcess::behind_start(&fresh, &left, &other).unwrap();
        assert_eq!(behind.first_connection(), Some((5, LISTENER)));
        assert!(behind.results.values().all(|queue| queue.len() == 1));
        let mut same = other.clone();
        same.results
            .values_mut()
            .for_each(|queue| skip_to(queue, 2));
        assert_eq!(behind, same);
        // The start has taken the connection itself.
        left.streams.entry(LISTENER).or_default().accepted.clear();
        assert_eq!(RecordedProcess::behind_start(&fresh, &left, &other), None);
    }

    #[test]
    fn bytes_that_a_start_read_in_part_must_be_those_of_the_other_part() {
        let bytes = |all: &[&[u8]]| {
            let mut process = part(&[]);
            let streams = process.streams.entry(3).or_default();
            for one in all {
                streams.input.push_at(InputItem::Bytes(one.to_vec()), 1);
            }
            process
        };
        let fresh = bytes(&[b"abc"]);
        let mut left = fresh.clone();
        let _ = left
            .streams
            .entry(3)
            .or_default()
            .input
            .take(2, true, false);
        let behind = |other: &RecordedProcess| RecordedProcess::behind_start(&fresh, &left, other);
        let mut found = behind(&bytes(&[b"abc", b"de"])).unwrap();
        let rest = &mut found.streams.entry(3).or_default().input;
        assert_eq!(rest.remaining(), 3);
        assert_eq!(behind(&bytes(&[b"abd", b"de"])), None);
    }
}
