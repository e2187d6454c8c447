//! Reading a log, whatever state a crash left it in.
//!
//! Invariant: a log cut at any byte opens, and so does one with garbage anywhere in it; every undamaged frame is read, and
//! [`Log::damage`] says what was not. Only a file with content and no frame at all, or of a later format, is refused.

use crate::chunk::{self, Skipped};
use crate::clock::Clock;
use crate::error::Error;
use crate::frame::{self, Kind, Piece};
use crate::identities::Identities;
use crate::index::Index;
use crate::map::Map;
use crate::merge::Events;
use crate::reason::Reason;
use crate::run::{ClockPoint, RunEnd, RunHeader};
use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

/// Counts that pass in days, whatever the frequency: what lies so far after the last clock reading was scribbled over.
const DAYS: u64 = 1 << 50;

/// What of a log could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Damage {
    /// Bytes between undamaged frames, or after the last.
    pub bytes: u64,
    /// Places where such bytes are.
    pub places: u64,
    /// The header is not among the undamaged frames; [`Log::header`] is a blank.
    pub no_header: bool,
    /// Undamaged frames of a kind or version that this program does not know, or whose content it can't read.
    pub unknown_frames: u64,
    /// Records that a thread was killed in before they said anything.
    pub torn_records: u64,
    /// Records of operations that this program does not know.
    pub unknown_records: u64,
}

impl Damage {
    /// True if every byte was understood.
    pub fn is_none(&self) -> bool {
        *self == Damage::default()
    }

    /// What could not be read, as a reason why the record is not complete. `None` if every byte was understood.
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

/// An open log: what it held when it was opened.
#[derive(Debug)]
pub struct Log {
    map: Map,
    header: RunHeader,
    end: Option<RunEnd>,
    chunks: Vec<Range<usize>>,
    idents: Vec<Range<usize>>,
    resolved: bool,
    points: Vec<ClockPoint>,
    clock: Clock,
    damage: Damage,
    index: OnceLock<Index>,
}

impl Log {
    /// Opens a log: finalized, still growing, cut off or damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Log, Error> {
        let path = path.as_ref();
        let map = Map::open(path)?;
        let mut log = Log {
            map,
            header: RunHeader::default(),
            end: None,
            chunks: Vec::new(),
            idents: Vec::new(),
            resolved: false,
            points: Vec::new(),
            clock: Clock::default(),
            damage: Damage {
                no_header: true,
                ..Damage::default()
            },
            index: OnceLock::new(),
        };
        log.scan(path)?;
        log.clock = Clock::new(log.points.clone());
        Ok(log)
    }

    fn scan(&mut self, path: &Path) -> Result<(), Error> {
        let map = std::mem::replace(&mut self.map, Map::nothing());
        let mut frames = 0;
        for piece in frame::walk(map.bytes()) {
            match piece {
                Piece::Garbage(range) => {
                    self.damage.places += 1;
                    self.damage.bytes += range.len() as u64;
                }
                Piece::Frame(frame) => {
                    frames += 1;
                    if frame.kind == Some(Kind::Header) && frame.version > frame::VERSION {
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
                }
            }
        }
        let start = &map.bytes()[..map.bytes().len().min(frame::MAGIC.len())];
        if frames == 0 && !frame::MAGIC.starts_with(start) {
            return Err(Error::NotALog {
                path: path.to_owned(),
            });
        }
        self.map = map;
        Ok(())
    }

    /// Notes what a frame says; none if it can't be understood.
    fn take(&mut self, frame: &frame::Frame, content: &[u8]) -> Option<()> {
        let known = match frame.kind? {
            Kind::Chunk | Kind::Idents | Kind::Resolved => backstory_abi::ABI_VERSION as u16,
            Kind::Header | Kind::Clock | Kind::End => frame::VERSION,
        };
        if frame.version > known {
            return None;
        }
        match frame.kind? {
            Kind::Header => {
                let header = serde_json::from_slice(content).ok()?;
                // The first one counts: nobody writes a second.
                if self.damage.no_header {
                    self.header = header;
                    self.damage.no_header = false;
                }
            }
            Kind::Chunk => {
                // Offsets in chunks are small numbers; no recorder's chunk is larger.
                chunk::View::new(content)
                    .filter(|_| content.len() <= backstory_abi::CHUNK_SIZE as usize)?;
                self.chunks.push(frame.payload.clone());
            }
            Kind::Clock => {
                let counter = u64::from_le_bytes(*content.first_chunk()?);
                let real = i64::from_le_bytes(*content.get(8..)?.first_chunk()?);
                self.points.push(ClockPoint { counter, real });
            }
            Kind::Idents => self.idents.push(frame.payload.clone()),
            Kind::Resolved => {
                self.idents.push(frame.payload.clone());
                self.resolved = true;
            }
            Kind::End => self.end = Some(serde_json::from_slice(content).ok()?),
        }
        Some(())
    }

    /// What was known before the command started; blank if that frame is damaged (see [`Damage::no_header`]).
    pub fn header(&self) -> &RunHeader {
        &self.header
    }

    /// How the run ended, if the log got that far.
    pub fn end(&self) -> Option<&RunEnd> {
        self.end.as_ref()
    }

    /// True if identities of the paths in it have been taken after the end.
    pub fn resolved(&self) -> bool {
        self.resolved
    }

    /// What could not be read. Walks all records at first use.
    pub fn damage(&self) -> Damage {
        let Skipped { torn, unknown } = self.index().skipped;
        Damage {
            torn_records: torn,
            unknown_records: unknown,
            ..self.damage
        }
    }

    /// True if nothing is known to be missing.
    pub(crate) fn is_whole(&self) -> bool {
        self.damage().is_none() && self.end.as_ref().is_none_or(|e| e.lost == 0)
    }

    /// Every event, all threads merged in order of time. Memory is bounded by the number of threads and processes, not of events.
    pub fn events(&self) -> Events<'_> {
        Events::new(self, self.index())
    }

    /// What the file system said of paths after the end.
    pub fn identities(&self) -> Identities {
        Identities::read(self.idents.iter().map(|place| self.bytes(place)))
    }

    /// Bytes of the log.
    pub fn len(&self) -> usize {
        self.map.bytes().len()
    }

    /// True if it has no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A record's counter, unless it is one that no clock of this machine can have shown: then none.
    pub(crate) fn plausible(&self, counter: u64) -> Option<u64> {
        let latest = self
            .points
            .last()
            .map_or(u64::MAX, |p| p.counter.saturating_add(DAYS));
        (counter <= latest).then_some(counter)
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn points(&self) -> &[ClockPoint] {
        &self.points
    }

    pub(crate) fn chunks(&self) -> &[Range<usize>] {
        &self.chunks
    }

    pub(crate) fn idents(&self) -> &[Range<usize>] {
        &self.idents
    }

    pub(crate) fn bytes(&self, place: &Range<usize>) -> &[u8] {
        self.map.bytes().get(place.clone()).unwrap_or(&[])
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::new(self))
    }
}
