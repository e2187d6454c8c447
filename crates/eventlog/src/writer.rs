//! Appends to a log.
//!
//! Invariants:
//!
//! - When a method returns `Ok`, the kernel has its frame. The frame survives the death of this
//!   process, and after [`Writer::sync`] also a power loss. So a chunk of the arena may be freed as
//!   soon as [`Writer::chunk`] has returned.
//! - Nothing is buffered here: a frame is one gathering write.
//! - The file is opened for appending, so two writers of one log cannot overwrite each other. Such
//!   writers are a keeper, and the process that resolves identities.
//! - A frame that did not fit on the disk is taken back whole.

use crate::error::Error;
use crate::frame::{self, FrameKind};
use crate::run::{ClockPoint, RunEnd, RunHeader};
use backstory_abi::{ABI_VERSION, Chunk};
use std::collections::VecDeque;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{IoSlice, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Appends frames to a log.
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
    /// The frames at the end of the file that may be taken back, the last one last: chunks and
    /// clocks, with their lengths.
    recent: VecDeque<(FrameKind, u64)>,
    /// Frames were appended since the last [`Writer::take_unsynced`].
    unsynced: bool,
}

impl Writer {
    /// Most frames that can be taken back. The space of as many of the smallest chunks suffices for
    /// an end.
    pub const RECENT: usize = 256;

    /// Makes a new log, readable by its owner only, and writes its header. The file must not exist.
    pub fn create(path: impl AsRef<Path>, header: &RunHeader) -> Result<Writer, Error> {
        let path = path.as_ref();
        let mut options = OpenOptions::new();
        let file = options
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(Error::io("create", path))?;
        let mut writer = Writer {
            file,
            path: path.to_owned(),
            recent: VecDeque::new(),
            unsynced: true,
        };
        let json = serde_json::to_vec(header).map_err(|source| writer.encode("header", source))?;
        writer.frame(FrameKind::Header, frame::VERSION, &json)?;
        Ok(writer)
    }

    /// Opens an existing log, which the caller has read, to append to it. Torn bytes at its end
    /// stay, and readers skip them.
    pub fn reopen(path: impl AsRef<Path>) -> Result<Writer, Error> {
        let path = path.as_ref();
        let file = OpenOptions::new()
            .append(true)
            .open(path)
            .map_err(Error::io("open", path))?;
        Ok(Writer {
            file,
            path: path.to_owned(),
            recent: VecDeque::new(),
            unsynced: true,
        })
    }

    /// The path of the log.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True if this log has no name any more, or if another file has the name `path`.
    pub fn is_replaced(&self, path: &Path) -> bool {
        let Ok(own) = self.file.metadata() else {
            return false;
        };
        let is_other = |there: Metadata| (there.dev(), there.ino()) != (own.dev(), own.ino());
        own.nlink() == 0 || std::fs::symlink_metadata(path).is_ok_and(is_other)
    }

    /// Appends a chunk as it is: its header and its records up to the last one. If a chunk is
    /// appended again (grown, or after a crash), readers take the later copy.
    pub fn chunk(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.frame(FrameKind::Chunk, ABI_VERSION as u16, bytes)
    }

    /// Appends the records of a chunk from `offset` on. They replace what earlier frames of this
    /// chunk have there. `bytes` are the chunk's header, then these records.
    pub fn more(&mut self, bytes: &[u8], offset: usize) -> Result<(), Error> {
        let head = Chunk::read(bytes).unwrap_or_default();
        // Readers see the piece as a chunk of its own, in which the next record is at `next`.
        let valid = head.next >= Chunk::SIZE as u64;
        let moved = || head.next.saturating_sub(offset as u64) + Chunk::SIZE as u64;
        let head = Chunk {
            next: if valid { moved() } else { head.next },
            pad: offset as u64,
            ..head
        };
        let records = bytes.get(Chunk::SIZE..).unwrap_or_default();
        let payload = [&head.to_bytes()[..], records].concat();
        self.frame(FrameKind::More, ABI_VERSION as u16, &payload)
    }

    /// Takes back the frame that this writer appended last, to make room on a full disk. Returns
    /// its kind. `None` if it was neither chunk nor clock, or if too many were taken back already.
    pub fn take_back(&mut self) -> Result<Option<FrameKind>, Error> {
        let Some((kind, bytes)) = self.recent.pop_back() else {
            return Ok(None);
        };
        self.shorten(bytes)
            .map_err(Error::io("shorten", &self.path))?;
        Ok(Some(kind))
    }

    /// Cuts off the last frame. No other process appends to a log without an end.
    fn shorten(&self, bytes: u64) -> std::io::Result<()> {
        let length = self.file.metadata()?.len();
        self.file.set_len(length.saturating_sub(bytes))
    }

    /// Appends a pair of clock readings. Two or more are needed to convert counters to time: one at
    /// the start, one at the end, and some between. A reading also bounds the counters of all
    /// chunks appended before it.
    pub fn clock(&mut self, point: ClockPoint) -> Result<(), Error> {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&point.counter.to_le_bytes());
        bytes[8..].copy_from_slice(&point.real.to_le_bytes());
        self.frame(FrameKind::Clock, frame::VERSION, &bytes)
    }

    /// Appends `IDENT` records of a resolver in progress; [`Writer::resolved`] must follow.
    pub fn idents(&mut self, records: &[u8]) -> Result<(), Error> {
        let mut rest = records;
        while !rest.is_empty() {
            let (head, tail) = rest.split_at(whole_records(rest));
            self.frame(FrameKind::Idents, ABI_VERSION as u16, head)?;
            rest = tail;
        }
        Ok(())
    }

    /// Appends the last `IDENT` records taken after the end, and marks the log's identities as
    /// resolved.
    pub fn resolved(&mut self, records: &[u8]) -> Result<(), Error> {
        self.idents(records)?;
        self.frame(FrameKind::Resolved, ABI_VERSION as u16, &[])
    }

    /// Appends the end of the run. Readers take the last one.
    pub fn end(&mut self, end: &RunEnd) -> Result<(), Error> {
        let json = serde_json::to_vec(end).map_err(|source| self.encode("end", source))?;
        self.frame(FrameKind::End, frame::VERSION, &json)
    }

    /// Makes everything appended so far survive a power loss.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.file.sync_data().map_err(Error::io("sync", &self.path))
    }

    /// A second handle of the file, so that another thread can make it durable (fdatasync(2)).
    pub fn second_handle(&self) -> std::io::Result<File> {
        self.file.try_clone()
    }

    /// True if frames were appended since the last call.
    pub fn take_unsynced(&mut self) -> bool {
        std::mem::take(&mut self.unsynced)
    }

    fn encode(&self, what: &'static str, source: serde_json::Error) -> Error {
        Error::Encode {
            what,
            path: self.path.clone(),
            source,
        }
    }

    fn frame(&mut self, kind: FrameKind, version: u16, payload: &[u8]) -> Result<(), Error> {
        let length = u32::try_from(payload.len()).map_err(|_| Error::TooLong {
            path: self.path.clone(),
            bytes: payload.len(),
        })?;
        let head = frame::header(kind, version, length, &[payload]);
        self.unsynced = true;
        self.write(&head, payload)
            .map_err(Error::io("append to", &self.path))?;
        self.remember(kind, (frame::HEADER + payload.len()) as u64);
        Ok(())
    }

    /// Remembers a frame that can be taken back.
    fn remember(&mut self, kind: FrameKind, bytes: u64) {
        if !matches!(kind, FrameKind::Chunk | FrameKind::More | FrameKind::Clock) {
            self.recent.clear();
            return;
        }
        if self.recent.len() == Writer::RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((kind, bytes));
    }

    /// Writes both pieces by one system call where the kernel takes them at once, as it does unless
    /// the disk is full.
    fn write(&mut self, head: &[u8], payload: &[u8]) -> std::io::Result<()> {
        let mut pieces = [IoSlice::new(head), IoSlice::new(payload)];
        let mut rest = &mut pieces[..];
        let mut written = 0;
        while !rest.is_empty() {
            let failed = match self.file.write_vectored(rest) {
                Ok(0) => std::io::ErrorKind::WriteZero.into(),
                Ok(n) => {
                    written += n as u64;
                    IoSlice::advance_slices(&mut rest, n);
                    continue;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            if written > 0 && self.shorten(written).is_err() {
                // Readers skip the torn bytes. The frames before them cannot be cut off any more.
                self.recent.clear();
            }
            return Err(failed);
        }
        Ok(())
    }
}

/// The number of these bytes for one frame: as many whole records as fit, and at least one.
fn whole_records(records: &[u8]) -> usize {
    let mut end = 0;
    while let Some(record) = records.get(end..).and_then(backstory_abi::Record::read) {
        let next = end + usize::from(record.size);
        if record.size == 0 || next > records.len() || (end > 0 && next > frame::IDENTS) {
            break;
        }
        end = next;
    }
    if end == 0 { records.len() } else { end }
}
