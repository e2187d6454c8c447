//! Environments that a program of one line logged in full, for the logs of other lines.
//!
//! The recorders of a session log an environment in full once, and then by its hash. A log must
//! have each environment that it names. So the supervisor remembers them, and adds one to the log
//! of a line that names it.
//!
//! Invariant: the memory is bounded. An environment that was forgotten is unknown in later lines.

use backstory_abi::{CallerIds, Chunk, op};
use backstory_eventlog::chunk::ChunkBuilder;
use backstory_eventlog::record::{RawRecord, RecordBuilder};
use std::collections::{HashMap, HashSet, VecDeque};

/// Most environments that are remembered.
const MOST: usize = 256;
/// Most bytes of one environment.
const LONGEST: usize = 1 << 20;

/// A thread, by process and thread id.
type Owner = (u32, u32);

/// The strings of one `ENV` record, and whether the last continues in the next record.
type Piece = (Vec<Vec<u8>>, bool);

/// The environments of a session.
#[derive(Debug, Default)]
pub(crate) struct Environments {
    known: HashMap<u64, Vec<Piece>>,
    order: VecDeque<u64>,
    /// Threads in the middle of an environment: its hash and length so far.
    open: HashMap<Owner, (u64, usize)>,
}

/// The hash in an `ENV` record.
fn hash(raw: &RawRecord<'_>) -> u64 {
    u64::from(raw.head.fd as u32) | u64::from(raw.head.arg as u32) << 32
}

impl Environments {
    /// Examines a record of a thread. Returns the hash of the environment that the record names
    /// without its strings, unless `has` contains it. Adds hashes of full environments to `has`.
    pub(crate) fn look(
        &mut self,
        owner: Owner,
        raw: &RawRecord<'_>,
        has: &mut HashSet<u64>,
    ) -> Option<u64> {
        if raw.head.op != op::ENV {
            self.open.remove(&owner);
            return None;
        }
        let strings: Vec<Vec<u8>> = raw.list().map(<[u8]>::to_vec).collect();
        let named = hash(raw);
        let open = self.open.get(&owner).copied();
        if strings.is_empty() && open.is_none() {
            return (named != 0 && has.insert(named)).then_some(named);
        }
        let bytes: usize = strings.iter().map(|string| string.len() + 1).sum();
        let (of, length) = open
            .filter(|open| named == 0 || named == open.0)
            .unwrap_or((named, 0));
        if of == 0 {
            return None;
        }
        if length == 0 {
            self.forget(of);
            self.order.push_back(of);
            if self.order.len() > MOST
                && let Some(oldest) = self.order.front().copied()
            {
                self.forget(oldest);
            }
        }
        has.insert(of);
        self.open.insert(owner, (of, length + bytes));
        if length + bytes <= LONGEST {
            self.known
                .entry(of)
                .or_default()
                .push((strings, raw.more()));
        } else {
            self.forget(of);
        }
        None
    }

    fn forget(&mut self, hash: u64) {
        self.known.remove(&hash);
        self.order.retain(|known| *known != hash);
    }

    /// Chunks of the supervisor that have the environment in full. Their records have a caller
    /// that is no process, so that no program gets it. Empty if the environment is not known.
    pub(crate) fn chunks(&self, hash: u64, header: Chunk) -> Vec<Vec<u8>> {
        let Some(pieces) = self.known.get(&hash) else {
            return Vec::new();
        };
        let mut chunk = ChunkBuilder::new(header);
        let mut chunks = Vec::new();
        let mut builder = RecordBuilder::new();
        let nobody = CallerIds {
            pid: 0,
            tid: hash as u32 | 1,
            ..CallerIds::default()
        };
        for (strings, more) in pieces {
            builder
                .start(op::ENV, header.taken)
                .caller(nobody)
                .fd(hash as i32)
                .arg((hash >> 32) as i32)
                .result(0);
            for string in strings {
                builder.string(string);
            }
            if *more {
                builder.more();
            }
            let record = builder.finish();
            if !chunk.push(record) {
                chunks.push(chunk.bytes().to_vec());
                chunk.restart();
                chunk.push(record);
            }
        }
        chunks.push(chunk.bytes().to_vec());
        chunks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::splitting::for_each_record;

    const HASH: u64 = 0x1234_5678_9abc_def1;

    fn record(strings: &[&[u8]], more: bool) -> Vec<u8> {
        let mut builder = RecordBuilder::new();
        builder
            .start(op::ENV, 5)
            .fd(HASH as i32)
            .arg((HASH >> 32) as i32)
            .result(0);
        for string in strings {
            builder.string(string);
        }
        if more {
            builder.more();
        }
        builder.finish().to_vec()
    }

    #[test]
    fn a_line_gets_the_environment_that_it_only_names() {
        let mut environments = Environments::default();
        let (mut first, mut second) = (HashSet::new(), HashSet::new());
        for bytes in [record(&[b"A=1", b"B=2"], true), record(&[b"3"], false)] {
            let raw = RawRecord::parse(&bytes).unwrap();
            assert_eq!(environments.look((7, 7), &raw, &mut first), None);
        }
        let bytes = record(&[], false);
        let named = RawRecord::parse(&bytes).unwrap();
        assert_eq!(
            environments.look((8, 8), &named, &mut first),
            None,
            "the log has it"
        );
        assert_eq!(environments.look((8, 8), &named, &mut second), Some(HASH));
        assert_eq!(
            environments.look((8, 8), &named, &mut second),
            None,
            "it was added"
        );

        let chunks = environments.chunks(HASH, Chunk::default());
        let mut found = Vec::new();
        for_each_record(&chunks[0], |_, raw| {
            found.push((
                raw.list().map(<[u8]>::to_vec).collect::<Vec<_>>(),
                raw.more(),
            ));
        });
        assert_eq!(
            found,
            [
                (vec![b"A=1".to_vec(), b"B=2".to_vec()], true),
                (vec![b"3".to_vec()], false)
            ]
        );
    }

    #[test]
    fn the_number_of_remembered_environments_is_bounded() {
        let mut environments = Environments::default();
        for number in 1..=2 * MOST as i32 {
            let mut builder = RecordBuilder::new();
            let bytes = builder
                .start(op::ENV, 5)
                .fd(number)
                .string(b"A=1")
                .result(0)
                .finish();
            let raw = RawRecord::parse(bytes).unwrap();
            environments.look((number as u32, 1), &raw, &mut HashSet::new());
        }
        assert_eq!(environments.known.len(), MOST);
        assert!(environments.chunks(1, Chunk::default()).is_empty());
    }
}
