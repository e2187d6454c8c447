//! Streams of records: the chunks of one thread, and reading them from beginning to end.

use crate::chunk::{ChunkView, SkippedRecords};
use crate::continued::{self, ChunkPiece};
use crate::record::RawRecord;
use crate::stored_frames::StoredFrames;
use backstory_abi::{Chunk, Record};
use std::collections::{HashMap, HashSet};

/// The position of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordPosition {
    /// Number of the chunk in the log.
    pub chunk: u32,
    /// Offset of the record in the chunk.
    pub offset: u32,
}

/// A sequence of chunks whose records are in the order of their creation: those of a thread, or one
/// chunk of the guard.
#[derive(Debug, Clone)]
pub struct ThreadStream {
    /// Numbers of its chunks in the log, in order.
    pub chunks: Vec<u32>,
    /// Number of the recorder start that it belongs to; 0 for the guard.
    pub epoch: u64,
    /// Process id in the supervisor's namespace, if that is known; else in its own.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// The process's own id, if it lives in another pid namespace.
    pub inner: Option<u32>,
    /// True for the guard's stream, whose records name their processes.
    pub guard: bool,
    /// Counter of its first record.
    pub start: u64,
    /// True if it must not start before a record of another stream (see the gates of the index).
    pub gated: bool,
}

impl ThreadStream {
    /// A cursor before a record of this stream.
    pub fn cursor_at(&self, at: RecordPosition) -> Cursor<'static> {
        let chunk = self
            .chunks
            .iter()
            .position(|c| *c == at.chunk)
            .unwrap_or(self.chunks.len());
        Cursor {
            chunk: chunk as u32,
            offset: at.offset,
            view: None,
        }
    }
}

/// The reading position in a stream.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cursor<'a> {
    /// Index into the stream's chunks.
    pub chunk: u32,
    /// Offset at which the next record may begin; 0 before the first.
    pub offset: u32,
    /// That chunk, once it was read.
    pub view: Option<ChunkView<'a>>,
}

/// The next record of these chunks at or after a position.
pub fn next_record<'a>(
    log: &'a StoredFrames,
    chunks: &[u32],
    at: &mut Cursor<'a>,
    skipped: &mut SkippedRecords,
) -> Option<(RecordPosition, Record)> {
    loop {
        let chunk = *chunks.get(at.chunk as usize)?;
        let view = match at.view {
            Some(view) => view,
            None => ChunkView::new(log.bytes(&log.chunks()[chunk as usize].place))?.1,
        };
        at.view = Some(view);
        let offset = (at.offset as usize).max(Chunk::SIZE);
        if let Some((found, record)) = view.next(offset, skipped) {
            at.offset = (found + usize::from(record.size)) as u32;
            return Some((
                RecordPosition {
                    chunk,
                    offset: found as u32,
                },
                record,
            ));
        }
        *at = Cursor {
            chunk: at.chunk + 1,
            ..Cursor::default()
        };
    }
}

/// The record at a position.
pub fn record_at(log: &StoredFrames, at: RecordPosition) -> Option<RawRecord<'_>> {
    let (_, view) = ChunkView::new(log.bytes(&log.chunks().get(at.chunk as usize)?.place))?;
    RawRecord::parse(view.from(at.offset as usize))
}

/// Epoch, pid and thread; for a chunk of the guard also its number and time.
pub(crate) type StreamKey = (u64, u32, u32, (u32, u64));

/// The fields that distinguish the stream of a chunk.
pub(crate) fn stream_key(chunk: &Chunk) -> StreamKey {
    // A chunk of the guard is a stream of its own, with its pieces.
    let own = match chunk.tid {
        0 => (chunk.seq, chunk.taken),
        _ => (0, 0),
    };
    (chunk.epoch, chunk.pid, chunk.tid, own)
}

/// Groups the chunks into streams. A chunk that was appended twice counts once: the later copy has
/// all records of the earlier.
pub fn streams(log: &StoredFrames) -> Vec<ThreadStream> {
    let heads: Vec<Chunk> = log.chunks().iter().map(|c| head(log, c)).collect();
    let mut copies = HashMap::new();
    for (number, chunk) in heads.iter().enumerate() {
        // A thread without a clock is distinguished by its first record.
        let first = ChunkView::new(log.bytes(&log.chunks()[number].place))
            .filter(|_| chunk.taken == 0)
            .and_then(|(_, view)| view.next(Chunk::SIZE, &mut SkippedRecords::default()))
            .map(|(_, record)| (record.time, record.op, record.fd));
        let from = log.chunks()[number].from;
        copies.insert((continued::key(chunk), first, from), number as u32);
    }
    let kept: HashSet<u32> = copies.into_values().collect();
    let mut hosts = HashMap::new();
    for chunk in heads.iter().filter(|c| c.host_pid != 0) {
        hosts.insert((chunk.epoch, chunk.pid), chunk.host_pid);
    }
    let mut streams: Vec<ThreadStream> = Vec::new();
    let mut threads: HashMap<StreamKey, usize> = HashMap::new();
    for (number, chunk) in heads
        .iter()
        .enumerate()
        .filter(|(n, _)| kept.contains(&(*n as u32)))
    {
        let guard = chunk.tid == 0;
        let key = stream_key(chunk);
        let joins = !guard || log.chunks()[number].continues();
        if let Some(stream) = threads.get(&key).filter(|_| joins) {
            streams[*stream].chunks.push(number as u32);
            continue;
        }
        threads.insert(key, streams.len());
        let pid = hosts
            .get(&(chunk.epoch, chunk.pid))
            .copied()
            .unwrap_or(chunk.pid);
        streams.push(ThreadStream {
            chunks: vec![number as u32],
            epoch: chunk.epoch,
            pid,
            tid: if chunk.tid == chunk.pid {
                pid
            } else {
                chunk.tid
            },
            inner: (pid != chunk.pid).then_some(chunk.pid),
            guard,
            start: 0,
            gated: false,
        });
    }
    for stream in &mut streams {
        stream.chunks.sort_by_key(|c| (heads[*c as usize].seq, *c));
    }
    streams
}

/// The header of a chunk, which was checked when the log was opened.
pub(crate) fn head(log: &StoredFrames, chunk: &ChunkPiece) -> Chunk {
    Chunk::read(log.bytes(&chunk.place)).unwrap_or_default()
}
