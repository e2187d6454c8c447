//! Reads a deep log, whatever state a crash left it in.
//!
//! Opening walks the frames and reads the header of each chunk. Records are decompressed while a
//! stream is read, one chunk at a time.

use crate::compact::expanded;
use crate::damage::{DeepDamage, lost_chunks};
use crate::error::Error;
use crate::facts::{DeepEnd, DeepHeader};
use crate::read_meter::ReadMeter;
use crate::writer::{COMPACT, VERSION, ZSTD};
use backstory_abi::{CHUNK_DEEP, CHUNK_SIZE, Chunk};
use backstory_eventlog::Log;
use backstory_eventlog::frame::{self, Frame, FrameKind, LogPiece};
use backstory_eventlog::map::MappedFile;
use backstory_eventlog::run::ClockPoint;
use backstory_ordering::SmallSort;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use zstd::zstd_safe::get_frame_content_size;

/// Most bytes of the records of a chunk.
const MOST_RECORDS: usize = CHUNK_SIZE as usize - Chunk::SIZE;

/// A program in a process, as far as the deep log knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeepProcess {
    /// The number of the recorder's start in this run. It names the process in this file.
    pub epoch: u64,
    /// The process id as the supervisor saw it, and as the run's log has it.
    pub pid: u32,
    /// The process id as the program saw it.
    pub own_pid: u32,
    /// The process that made it.
    pub parent: u32,
    /// Its threads, the first one first.
    pub tids: Vec<u32>,
}

/// One chunk in the file.
#[derive(Debug, Clone)]
pub(crate) struct ChunkPlace {
    pub head: Chunk,
    records: Range<usize>,
}

/// An open deep log, with its content at the time of opening.
#[derive(Debug)]
pub struct DeepLog {
    map: MappedFile,
    header: DeepHeader,
    end: Option<DeepEnd>,
    /// The first and the last reading of the clocks: those of the file, or of the log beside it.
    readings: Option<(ClockPoint, ClockPoint)>,
    damage: DeepDamage,
    processes: Vec<DeepProcess>,
    /// The chunks of each epoch and thread, by their number.
    streams: BTreeMap<(u64, u32), BTreeMap<u32, ChunkPlace>>,
    /// Counts the bytes of the chunks that are read.
    meter: ReadMeter,
}

impl DeepLog {
    /// Opens a deep log: finished, still growing, cut off or damaged.
    ///
    /// # Errors
    /// The file cannot be read, has content and no frame of a deep log, or is of a later version.
    pub fn open(path: impl AsRef<Path>) -> Result<DeepLog, Error> {
        let path = path.as_ref();
        let map = MappedFile::open(path)?;
        let mut log = DeepLog {
            map: MappedFile::default(),
            header: DeepHeader::default(),
            end: None,
            readings: None,
            damage: DeepDamage {
                no_header: true,
                no_end: true,
                ..DeepDamage::default()
            },
            processes: Vec::new(),
            streams: BTreeMap::new(),
            meter: ReadMeter::default(),
        };
        let (mut frames, mut lost) = (0, 0u64);
        for piece in frame::walk(map.bytes()) {
            match piece {
                LogPiece::Garbage(range) => {
                    log.damage.bytes += range.len() as u64;
                    let goes_on = range.end < map.bytes().len();
                    lost = lost.saturating_add(lost_chunks(&map.bytes()[range], goes_on));
                }
                LogPiece::Frame(frame) => {
                    frames += usize::from(is_deep(&frame));
                    if frame.kind == Some(FrameKind::DeepHeader) && frame.version > VERSION {
                        return Err(Error::Newer {
                            path: path.to_owned(),
                            found: frame.version,
                            known: VERSION,
                        });
                    }
                    if log.take(&frame, map.bytes()).is_none() {
                        log.damage.unknown_frames += 1;
                        let is_chunk = frame.kind == Some(FrameKind::DeepChunk);
                        lost = lost.saturating_add(u64::from(is_chunk));
                    }
                }
            }
        }
        if frames == 0 && !map.bytes().is_empty() && !cut_in_first_frame(map.bytes()) {
            return Err(Error::NotADeepLog {
                path: path.to_owned(),
            });
        }
        log.map = map;
        log.damage.lacks_chunks = lost > log.chunks_missing_by_damage();
        log.find_processes();
        if log.damage.no_header || log.last_reading().is_none() {
            log.readings = readings_beside(path).or(log.readings);
        }
        Ok(log)
    }

    /// How many chunks are missing before later ones of their threads, if only damage can have
    /// removed them. A full disk leaves such gaps, too, and hides the chunks that damage removed
    /// from the ends of threads. So none counts then.
    fn chunks_missing_by_damage(&self) -> u64 {
        let end = self.end.as_ref();
        if end.is_some_and(|end| end.shallow_because.is_some()) {
            return 0;
        }
        let missing = self.streams.values().map(|chunks| {
            let last = chunks.keys().next_back();
            let all = last.map_or(0, |last| u64::from(*last) + 1);
            all - chunks.len() as u64
        });
        missing.sum()
    }

    /// The same log, whose readers count with this meter.
    #[must_use]
    pub fn metered(self, meter: &ReadMeter) -> DeepLog {
        DeepLog {
            meter: meter.clone(),
            ..self
        }
    }

    /// A reader begins to read all chunks.
    pub(crate) fn begin_pass(&self) {
        let bytes = self.all_chunks().map(|chunk| chunk.records.len() as u64);
        self.meter.expect(bytes.sum());
    }

    /// Takes a frame. `None` if it cannot be understood.
    fn take(&mut self, frame: &Frame, file: &[u8]) -> Option<()> {
        let content = file.get(frame.payload.clone())?;
        if frame.version > VERSION {
            return None;
        }
        match frame.kind? {
            FrameKind::DeepHeader => {
                // A process that took over appends to the same file, and writes no header.
                self.header = serde_json::from_slice(content).ok()?;
                self.damage.no_header = false;
            }
            FrameKind::DeepEnd => {
                self.end = Some(serde_json::from_slice(content).ok()?);
                self.damage.no_end = false;
            }
            FrameKind::Clock => {
                let (words, []) = content.as_chunks::<8>() else {
                    return None;
                };
                let &[counter, real] = words else { return None };
                let point = ClockPoint {
                    counter: u64::from_le_bytes(counter),
                    real: i64::from_le_bytes(real),
                };
                let first = self.readings.map_or(point, |(first, _)| first);
                self.readings = Some((first, point));
            }
            FrameKind::DeepChunk => {
                let head = Chunk::read(content).filter(|head| head.flags & CHUNK_DEEP != 0)?;
                let records = frame.payload.start + Chunk::SIZE..frame.payload.end;
                let chunks = self.streams.entry((head.epoch, head.tid)).or_default();
                let place = ChunkPlace { head, records };
                // A drainer that died may have appended a chunk that another one appended again.
                match chunks.get(&head.seq) {
                    Some(known) if known.head.next >= head.next => {}
                    _ => drop(chunks.insert(head.seq, place)),
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn find_processes(&mut self) {
        for ((epoch, tid), chunks) in &self.streams {
            let Some(head) = chunks.values().next().map(|chunk| chunk.head) else {
                continue;
            };
            let pid = match head.host_pid {
                0 => head.pid,
                pid => pid,
            };
            match self.processes.last_mut().filter(|p| p.epoch == *epoch) {
                Some(process) => process.tids.push(*tid),
                None => self.processes.push(DeepProcess {
                    epoch: *epoch,
                    pid,
                    own_pid: head.pid,
                    parent: head.ppid,
                    tids: vec![*tid],
                }),
            }
        }
        for process in &mut self.processes {
            let first = process.own_pid;
            process.tids.sort_small_by_key(|tid| (*tid != first, *tid));
        }
    }

    /// The facts known before the command started. Blank if that frame is damaged.
    pub fn header(&self) -> &DeepHeader {
        &self.header
    }

    /// The end. `None` if the file was cut off.
    pub fn end(&self) -> Option<&DeepEnd> {
        self.end.as_ref()
    }

    /// The parts that could not be read. Missing chunks of a thread are gaps of its stream instead.
    pub fn damage(&self) -> DeepDamage {
        self.damage
    }

    /// The programs in processes that were recorded deeply, in the order of their beginning.
    pub fn processes(&self) -> &[DeepProcess] {
        &self.processes
    }

    /// True if the chunks of a thread follow each other from the first one on.
    pub(crate) fn has_all_chunks(&self, epoch: u64, tid: u32) -> bool {
        let numbers = self.streams.get(&(epoch, tid)).into_iter().flatten();
        numbers
            .enumerate()
            .all(|(index, (seq, _))| index == *seq as usize)
    }

    /// The first reading of the clocks: the counter, and ns since 1970. It is that of the header,
    /// unless the header is damaged.
    pub fn first_reading(&self) -> (u64, i64) {
        let point = |point: ClockPoint| (point.counter, point.real);
        let first = self.readings.map(|(first, _)| point(first));
        match self.damage.no_header {
            true => first.or(self.last_reading()).unwrap_or_default(),
            false => (self.header.counter, self.header.real),
        }
    }

    /// The last reading of the clocks, as [`Self::first_reading`]. `None`: the file was cut off
    /// before the first one.
    pub fn last_reading(&self) -> Option<(u64, i64)> {
        let end = self.end.as_ref().map(|end| (end.counter, end.real));
        let last = self.readings.map(|(_, last)| (last.counter, last.real));
        end.or(last)
    }

    /// False if nothing tells how fast the counter counts. All times are then the same.
    pub fn has_dates(&self) -> bool {
        let last = self.last_reading();
        last.is_some_and(|(counter, _)| counter > self.first_reading().0)
    }

    /// A counter of this file as ns since 1970.
    pub fn time_of(&self, counter: u64) -> i64 {
        let begin = self.first_reading();
        let end = self.last_reading();
        let (from, to) = (i128::from(begin.0), end.map_or(begin, |end| end));
        let counts = i128::from(to.0) - from;
        if counts <= 0 {
            return begin.1;
        }
        let since = (i128::from(counter) - from) * i128::from(to.1 - begin.1) / counts;
        begin.1.saturating_add(since as i64)
    }

    /// Bytes of the file.
    pub fn len(&self) -> usize {
        self.map.bytes().len()
    }

    /// True for a file without any byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of the file.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.map.bytes()
    }

    /// The chunks of all threads.
    pub(crate) fn all_chunks(&self) -> impl Iterator<Item = &ChunkPlace> {
        self.streams.values().flat_map(BTreeMap::values)
    }

    /// The chunks of a thread, by their number.
    pub(crate) fn chunks(
        &self,
        epoch: u64,
        tid: u32,
    ) -> impl DoubleEndedIterator<Item = &ChunkPlace> {
        let chunks = self.streams.get(&(epoch, tid));
        chunks.into_iter().flat_map(BTreeMap::values)
    }

    /// The records of a chunk. `None` if they cannot be decompressed.
    pub(crate) fn records(&self, place: &ChunkPlace) -> Option<Vec<u8>> {
        let packed = self.packed_records(place)?;
        match place.head.pad {
            COMPACT => expanded(&packed, MOST_RECORDS),
            _ => Some(packed),
        }
    }

    /// The same as they were before compression: in their compact form, if the log has it.
    pub(crate) fn packed_records(&self, place: &ChunkPlace) -> Option<Vec<u8>> {
        let stored = self.map.bytes().get(place.records.clone())?;
        self.meter.add(stored.len() as u64);
        match place.head.pad {
            0 => Some(stored[..stored.len().min(MOST_RECORDS)].to_vec()),
            ZSTD => zstd::bulk::decompress(stored, MOST_RECORDS).ok(),
            // Only a record that is no record is longer in this form.
            COMPACT => zstd::bulk::decompress(stored, 2 * MOST_RECORDS).ok(),
            _ => None,
        }
    }

    /// Bytes of the records of a chunk before compression.
    pub(crate) fn uncompressed(&self, place: &ChunkPlace) -> u64 {
        let stored = self.map.bytes().get(place.records.clone());
        let compact = stored.filter(|_| place.head.pad == COMPACT);
        let size = compact.and_then(|stored| get_frame_content_size(stored).ok().flatten());
        let end = place.head.next.min(u64::from(CHUNK_SIZE));
        let size = size.map(|size| size.min(2 * u64::from(CHUNK_SIZE)));
        size.unwrap_or_else(|| end.saturating_sub(Chunk::SIZE as u64))
    }
}

/// The first and the last reading of the clocks in the log of the run, beside its deep log. A run
/// that is still recorded has it under another name.
fn readings_beside(path: &Path) -> Option<(ClockPoint, ClockPoint)> {
    let names = ["log", "log.part"].into_iter();
    let mut logs = names.filter_map(|name| Log::open(path.with_extension(name)).ok());
    let log = logs.next()?;
    let all = log.readings();
    Some((*all.first()?, *all.last()?))
}

fn is_deep(frame: &Frame) -> bool {
    matches!(
        frame.kind,
        Some(FrameKind::DeepHeader | FrameKind::DeepChunk | FrameKind::DeepEnd)
    )
}

/// True if a file without any frame may be the beginning of one.
fn cut_in_first_frame(file: &[u8]) -> bool {
    let start = &file[..file.len().min(frame::MAGIC.len())];
    frame::MAGIC.starts_with(start)
}
