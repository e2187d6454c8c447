//! Pipes from a program to itself: it reads what it has written now.
//!
//! Such bytes can be addresses of this execution: libuv's handlers of signals write some for the
//! event loop. So the reader gets the new bytes, and their output counts as equal if there are as
//! many. A difference shows in what the program outputs later.
//!
//! Memory: as many bytes as the record has in the place of those that are not read yet. The
//! supervisor has these in its memory, too.
//!
//! Absent: pipes that other programs read or write as well, and messages.

use super::Supervisor;
use crate::process::RecordedProcess;
use crate::resource::ResourceId;
use libc::SYS_socketpair;
use std::collections::{HashMap, VecDeque};

/// The pipes of a run that only one program uses.
#[derive(Debug, Default)]
pub(super) struct OwnPipes {
    /// By the end that is written to: the program, and the end that is read.
    readers: HashMap<ResourceId, (usize, ResourceId)>,
    /// By the end that is read: the bytes that differ from the record and are not read yet, in
    /// pieces with their positions.
    changed: HashMap<ResourceId, VecDeque<(u64, Vec<u8>)>>,
}

impl OwnPipes {
    /// The pipes of these programs. `users`: the number of programs that read or wrote a resource.
    pub fn of(processes: &[RecordedProcess], users: &HashMap<ResourceId, usize>) -> OwnPipes {
        let mut own = OwnPipes::default();
        for (index, process) in processes.iter().enumerate() {
            let is_own =
                |id: &ResourceId| users.get(id) == Some(&1) && process.streams.contains_key(id);
            for (call, made) in &process.pairs {
                let ends = made.iter().map(|(ends, _)| *ends);
                for (one, two) in ends.filter(|(one, two)| is_own(one) && is_own(two)) {
                    own.readers.insert(two, (index, one));
                    if *call == SYS_socketpair as u16 {
                        own.readers.insert(one, (index, two));
                    }
                }
            }
        }
        own
    }

    /// The same of other parts of these programs' records, if no bytes are kept. `None`: some are.
    pub fn untouched(
        &self,
        processes: &[RecordedProcess],
        users: &HashMap<ResourceId, usize>,
    ) -> Option<OwnPipes> {
        let keeps = self.changed.values().any(|pieces| !pieces.is_empty());
        (!keeps).then(|| OwnPipes::of(processes, users))
    }

    /// Keeps bytes that were written at this position for their reader.
    fn keep(&mut self, reader: ResourceId, position: u64, bytes: &[u8]) {
        let changed = self.changed.entry(reader).or_default();
        match changed.back_mut() {
            Some((start, before)) if *start + before.len() as u64 == position => {
                before.extend_from_slice(bytes);
            }
            _ => changed.push_back((position, bytes.to_vec())),
        }
    }

    /// Puts the bytes that were written in the place of those that are read at this position.
    /// Without `peek`, they have been read then.
    fn put(&mut self, reader: ResourceId, start: u64, bytes: &mut [u8], peek: bool) {
        let Some(changed) = self.changed.get_mut(&reader) else {
            return;
        };
        let end = start + bytes.len() as u64;
        for (position, written) in changed.iter() {
            let (from, to) = (
                start.max(*position),
                end.min(*position + written.len() as u64),
            );
            if from < to {
                let length = (to - from) as usize;
                let (at, of) = ((from - start) as usize, (from - position) as usize);
                bytes[at..at + length].copy_from_slice(&written[of..of + length]);
            }
        }
        if !peek {
            changed.retain_mut(|(position, written)| {
                let read = end.saturating_sub(*position).min(written.len() as u64);
                written.drain(..read as usize);
                *position += read;
                !written.is_empty()
            });
        }
    }
}

impl Supervisor {
    /// The recorded bytes of a write into a pipe that the program itself reads. The reader gets
    /// those of the write. `None`: the pipe is another one, or the record has not so many bytes.
    pub(super) fn writes_to_itself(
        &mut self,
        index: usize,
        end: ResourceId,
        position: u64,
        bytes: &[u8],
    ) -> Option<Vec<u8>> {
        let (program, reader) = *self.own_pipes.readers.get(&end)?;
        let streams = self.matchers[index].rest.streams.get(&reader);
        let streams = streams.filter(|_| program == index)?;
        let recorded = streams.input.recorded_at(position, bytes.len())?;
        if recorded != bytes {
            self.own_pipes.keep(reader, position, bytes);
        }
        Some(recorded)
    }

    /// Puts what the program has written to itself in the place of the recorded bytes of a read.
    pub(super) fn reads_from_itself(
        &mut self,
        reader: ResourceId,
        start: u64,
        bytes: &mut [u8],
        peek: bool,
    ) {
        self.own_pipes.put(reader, start, bytes, peek);
    }
}

#[cfg(test)]
mod tests {
    use super::OwnPipes;
    use std::collections::HashMap;

    #[test]
    fn however_many_writes_are_unread_their_reader_gets_them() {
        let mut pipes = OwnPipes::default();
        // Every second byte is as in the record.
        for number in 0..10_000 {
            pipes.keep(3, 2 * number, b"x");
        }
        let mut bytes = vec![b'.'; 20_000];
        pipes.put(3, 0, &mut bytes, false);
        assert_eq!(bytes, b"x.".repeat(10_000));
        assert_eq!(pipes.changed[&3].len(), 0);
    }

    #[test]
    fn bytes_that_were_read_are_kept_no_longer_although_the_pipe_is_never_empty() {
        let mut pipes = OwnPipes::default();
        pipes.keep(3, 0, b"x");
        for number in 1..1000 {
            pipes.keep(3, number, b"x");
            let mut bytes = [b'.'];
            pipes.put(3, number - 1, &mut bytes, false);
            assert_eq!(bytes, *b"x");
        }
        let kept: usize = pipes.changed[&3].iter().map(|(_, piece)| piece.len()).sum();
        assert_eq!(kept, 1);
    }

    #[test]
    fn reads_of_any_length_get_what_was_written() {
        let writes = [(10, b"abcd".to_vec()), (14, b"ef".to_vec())];
        let mut pipes = OwnPipes {
            readers: HashMap::new(),
            changed: HashMap::from([(3, writes.into())]),
        };
        let mut read = |start: u64, length: usize, peek: bool| {
            let mut bytes = vec![b'.'; length];
            pipes.put(3, start, &mut bytes, peek);
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(read(8, 3, false), "..a");
        assert_eq!(read(11, 4, true), "bcde");
        assert_eq!(read(11, 4, false), "bcde");
        assert_eq!(read(15, 3, false), "f..");
        assert_eq!(read(10, 6, false), "......");
    }
}
