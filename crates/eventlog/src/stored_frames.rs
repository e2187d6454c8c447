//! The frames of a log, as they stand in the file.
//!
//! In: the bytes of a log, whatever state a crash left them in. Out: the header, the end, the
//! clock's readings, and the position of each chunk. Other modules read the records.

use crate::chunk;
use crate::clock::RunClock;
use crate::continued::{self, ChunkPiece};
use crate::error::Error;
use crate::frame::{self, FrameKind, LogPiece};
use crate::map::MappedFile;
use crate::reason::Reason;
use crate::run::{ClockPoint, RunEnd, RunHeader};
use backstory_abi::Chunk;
use std::ops::Range;
use std::path::Path;

/// The smallest page of a file. The kernel stops a write of a killed process between two of them.
const PAGE: usize = 4096;

/// Counts that pass in days at any frequency. A record so far after the last clock reading was
/// overwritten.
const DAYS: u64 = 1 << 50;

/// The parts of a log that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Damage {
    /// Bytes between undamaged frames, or after the last.
    pub bytes: u64,
    /// Number of places with such bytes.
    pub places: u64,
    /// True if the header is damaged. [`Log::header`] is blank then.
    pub no_header: bool,
    /// Undamaged frames of a kind or version that this program does not know, or with unreadable
    /// content.
    pub unknown_frames: u64,
    /// Records whose thread was killed before they were valid.
    pub torn_records: u64,
    /// Records of operations that this program does not know.
    pub unknown_records: u64,
}

impl Damage {
    /// True if every byte was understood.
    pub fn is_none(&self) -> bool {
        *self == Damage::default()
    }

    /// The damage as a reason why the record is not complete. `None` if every byte was understood.
    pub fn reason(&self) -> Option<Reason> {
        if self.is_none() {
            return None;
        }
        let parts = [
            (self.bytes, "unreadable bytes"),
            (self.unknown_frames, "frames of an unknown kind"),
            (
                self.torn_records,
                "operations cut off, by a kill or a jump out of a signal handler",
            ),
            (self.unknown_records, "operations of an unknown kind"),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let what = match parts.is_empty() {
            true => "it has no header".to_owned(),
            false => parts.join(", "),
        };
        Some(Reason::LogDamaged { what })
    }
}

/// The first header in the bytes of a log. Blank if the log has no header.
pub fn first_header(log: &[u8]) -> RunHeader {
    let frames = frame::walk(log).filter_map(|piece| match piece {
        LogPiece::Frame(frame) => Some(frame),
        LogPiece::Garbage(_) => None,
    });
    let mut headers = frames
        .filter(|frame| frame.kind == Some(FrameKind::Header) && frame.version <= frame::VERSION)
        .filter_map(|frame| serde_json::from_slice(log.get(frame.payload)?).ok());
    headers.next().unwrap_or_default()
}

/// The frames of a log at the time of opening.
#[derive(Debug, Default)]
pub struct StoredFrames {
    map: MappedFile,
    header: RunHeader,
    end: Option<RunEnd>,
    chunks: Vec<ChunkPiece>,
    idents: Vec<Range<usize>>,
    resolved: bool,
    points: Vec<ClockPoint>,
    clock: RunClock,
    /// Damage of the frames alone.
    damage: Damage,
    /// The lost bytes after the last frame, which may be the beginning of one.
    rest: usize,
    /// The last frame: its place in the file, and its first bytes, which have its checksum.
    last: Option<(Range<usize>, [u8; frame::HEADER])>,
    /// The chunks and MORE frames as they were appended.
    pieces: Vec<ChunkPiece>,
}

impl StoredFrames {
    /// Opens a log: finalized, still growing, cut off or damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<StoredFrames, Error> {
        StoredFrames::later(StoredFrames::default(), path)
    }

    /// Opens a log that was opened before. Frames that were there are not read again.
    pub fn later(former: StoredFrames, path: impl AsRef<Path>) -> Result<StoredFrames, Error> {
        let path = path.as_ref();
        let map = MappedFile::open(path)?;
        let mut log = match former.begins(map.bytes()) {
            true => former,
            false => StoredFrames {
                damage: Damage {
                    no_header: true,
                    ..Damage::default()
                },
                ..StoredFrames::default()
            },
        };
        log.scan(path, map)?;
        let mut chunks = log.pieces.clone();
        continued::join(&mut chunks, |piece| {
            Chunk::read(log.bytes(&piece.place)).unwrap_or_default()
        });
        log.chunks = chunks;
        log.clock = RunClock::new(log.points.clone());
        Ok(log)
    }

    /// True if the file still has these frames. Logs are only appended to: the last one shows it.
    fn begins(&self, file: &[u8]) -> bool {
        (self.last.as_ref()).is_some_and(|(place, head)| {
            file.len() >= place.end && file[place.start..].starts_with(head)
        })
    }

    /// Reads the frames behind the last one.
    fn scan(&mut self, path: &Path, map: MappedFile) -> Result<(), Error> {
        let begin = self.last.as_ref().map_or(0, |(place, _)| place.end);
        let mut between = 0..0;
        for piece in frame::walk_from(map.bytes(), begin) {
            match piece {
                LogPiece::Garbage(range) => between = range,
                LogPiece::Frame(frame) => {
                    let garbage = self.lost(map.bytes(), std::mem::take(&mut between));
                    self.damage.places += u64::from(garbage > 0);
                    self.damage.bytes += garbage as u64;
                    if frame.kind == Some(FrameKind::Header) && frame.version > frame::VERSION {
                        let (found, known) = (frame.version, frame::VERSION);
                        return Err(Error::Newer {
                            path: path.to_owned(),
                            found,
                            known,
                        });
                    }
                    let content = map.bytes().get(frame.payload.clone()).unwrap_or(&[]);
                    if self.take(&frame, content).is_none() {
                        self.damage.unknown_frames += 1;
                    }
                    let place = frame.payload.start - frame::HEADER..frame.payload.end;
                    let head = map.bytes()[place.clone()].first_chunk().copied();
                    self.last = head.map(|head| (place, head));
                }
            }
        }
        self.rest = self.lost(map.bytes(), between);
        let start = &map.bytes()[..map.bytes().len().min(frame::MAGIC.len())];
        if self.last.is_none() && !frame::MAGIC.starts_with(start) {
            return Err(Error::NotALog {
                path: path.to_owned(),
            });
        }
        self.map = map;
        Ok(())
    }

    /// How many of these bytes without a frame are damage. Unfinished identities behind the end do
    /// not count: they are taken again. If a frame follows, they end between two pages.
    fn lost(&self, file: &[u8], garbage: Range<usize>) -> usize {
        let is_last = garbage.end == file.len();
        let may_be_cut = self.end.is_some() && (is_last || garbage.end.is_multiple_of(PAGE));
        match may_be_cut && frame::is_cut_identities(&file[garbage.clone()]) {
            true => 0,
            false => garbage.len(),
        }
    }

    /// Takes the content of a frame. `None` if it cannot be understood.
    fn take(&mut self, frame: &frame::Frame, content: &[u8]) -> Option<()> {
        let known = match frame.kind? {
            FrameKind::Chunk | FrameKind::More | FrameKind::Idents | FrameKind::Resolved => {
                backstory_abi::ABI_VERSION as u16
            }
            FrameKind::Header | FrameKind::Clock | FrameKind::End => frame::VERSION,
            FrameKind::DeepHeader | FrameKind::DeepChunk | FrameKind::DeepEnd => return None,
        };
        if frame.version > known {
            return None;
        }
        match frame.kind? {
            FrameKind::Header => {
                let header = serde_json::from_slice(content).ok()?;
                // The first one counts: no process writes a second.
                if self.damage.no_header {
                    self.header = header;
                    self.damage.no_header = false;
                }
            }
            kind @ (FrameKind::Chunk | FrameKind::More) => {
                // Offsets in chunks are small numbers, because no recorder's chunk is larger.
                chunk::ChunkView::new(content)
                    .filter(|_| content.len() <= backstory_abi::CHUNK_SIZE as usize)?;
                let piece = ChunkPiece::new(kind, frame.payload.clone(), content);
                self.pieces.push(piece);
            }
            FrameKind::Clock => {
                let counter = u64::from_le_bytes(*content.first_chunk()?);
                let real = i64::from_le_bytes(*content.get(8..)?.first_chunk()?);
                self.points.push(ClockPoint { counter, real });
            }
            FrameKind::Idents => self.idents.push(frame.payload.clone()),
            FrameKind::Resolved => {
                self.idents.push(frame.payload.clone());
                self.resolved = true;
            }
            FrameKind::End => self.end = Some(serde_json::from_slice(content).ok()?),
            FrameKind::DeepHeader | FrameKind::DeepChunk | FrameKind::DeepEnd => return None,
        }
        Some(())
    }

    /// The facts known before the command started. Blank if that frame is damaged (see
    /// [`Damage::no_header`]).
    pub fn header(&self) -> &RunHeader {
        &self.header
    }

    /// The end of the run. `None` if the log has no end.
    pub fn end(&self) -> Option<&RunEnd> {
        self.end.as_ref()
    }

    /// True if the identities of its paths have been taken after the end.
    pub fn resolved(&self) -> bool {
        self.resolved
    }

    /// Bytes of the log.
    pub fn len(&self) -> usize {
        self.map.bytes().len()
    }

    /// The parts of the frames that could not be read.
    pub fn damage(&self) -> Damage {
        Damage {
            bytes: self.damage.bytes + self.rest as u64,
            places: self.damage.places + u64::from(self.rest > 0),
            ..self.damage
        }
    }

    /// The greatest counter that a clock of this machine can have shown.
    pub fn latest(&self) -> u64 {
        (self.points.last()).map_or(u64::MAX, |point| point.counter.saturating_add(DAYS))
    }

    /// A record's counter. `None` if no clock of this machine can have shown it.
    pub fn plausible(&self, counter: u64) -> Option<u64> {
        (counter <= self.latest()).then_some(counter)
    }

    pub fn clock(&self) -> &RunClock {
        &self.clock
    }

    pub fn points(&self) -> &[ClockPoint] {
        &self.points
    }

    /// The chunks, and the pieces of chunks that were appended in several frames.
    pub(crate) fn chunks(&self) -> &[ChunkPiece] {
        &self.chunks
    }

    /// Forgets pieces of chunks that are not to be read again. The position of a piece tells it.
    pub(crate) fn forget(&mut self, is_over: impl Fn(&ChunkPiece, &Chunk) -> bool) {
        let map = &self.map;
        self.pieces.retain(|piece| {
            let bytes = map.bytes().get(piece.place.clone()).unwrap_or(&[]);
            !is_over(piece, &Chunk::read(bytes).unwrap_or_default())
        });
    }

    pub fn idents(&self) -> &[Range<usize>] {
        &self.idents
    }

    pub fn bytes(&self, place: &Range<usize>) -> &[u8] {
        self.map.bytes().get(place.clone()).unwrap_or(&[])
    }
}
