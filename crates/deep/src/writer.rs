//! Appends to a deep log.
//!
//! Invariant: when a method returns `Ok`, the kernel has the frame. A frame that did not fit on the
//! disk is taken back whole.

use crate::compact::compact;
use crate::error::Error;
use crate::facts::{DeepEnd, DeepHeader};
use backstory_abi::{CHUNK_SIZE, Chunk};
use backstory_eventlog::frame::{self, FrameKind, HEADER};
use backstory_eventlog::run::ClockPoint;
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use zstd::bulk::Compressor;

/// Version of the frames of a deep log.
pub const VERSION: u16 = 2;
/// Value of `pad` in the header of a chunk whose records are one zstd frame.
pub const ZSTD: u64 = 1;
/// The same for records in their compact form. This is the form of version 2.
pub const COMPACT: u64 = 2;

/// Where the records of a chunk begin in its frame.
const RECORDS: usize = HEADER + Chunk::SIZE;

/// Bytes of the disk that a deep log leaves free. On a small disk it leaves an eighth.
const LEFT_FREE: u64 = 64 << 20;

/// How much time is spent on a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// As much as a thread in the background keeps up with.
    Usual,
    /// Little, because chunks wait.
    Hurried,
}

impl Compression {
    fn level(self) -> i32 {
        match self {
            Compression::Usual => 1,
            Compression::Hurried => -5,
        }
    }
}

/// Appends frames to a deep log.
pub struct DeepWriter {
    file: File,
    path: PathBuf,
    /// Its tables would have to be made anew for each chunk otherwise, which takes longer than the
    /// chunk. `None`: there is no memory for them, and chunks are stored.
    compressor: Option<Compressor<'static>>,
    /// The records of the chunk that is being written, in their compact form.
    compact: Vec<u8>,
    /// The chunk that is being written: room for the frame's header, then its payload.
    frame: Vec<u8>,
}

impl std::fmt::Debug for DeepWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("DeepWriter").field(&self.path).finish()
    }
}

impl DeepWriter {
    /// Opens a deep log to append to it. A new one is readable by its owner only, and begins with
    /// `header`. An existing one keeps its header, and torn bytes at its end, which readers skip.
    ///
    /// # Errors
    /// The file cannot be opened or written.
    pub fn open(path: &Path, header: &DeepHeader) -> Result<DeepWriter, Error> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)
            .map_err(Error::io("open", path))?;
        let mut writer = DeepWriter {
            file,
            path: path.to_owned(),
            compressor: Compressor::new(Compression::Usual.level()).ok(),
            compact: Vec::new(),
            frame: Vec::new(),
        };
        if writer.length().map_err(Error::io("look at", path))? == 0 {
            writer.json(FrameKind::DeepHeader, header)?;
        }
        Ok(writer)
    }

    /// Appends a chunk as it lay in the arena: its header, then its records.
    ///
    /// # Errors
    /// The disk is full, or failed. The chunk is not in the file.
    pub fn chunk(&mut self, bytes: &[u8], compression: Compression) -> Result<(), Error> {
        self.chunk_leaving(bytes, compression, 1)
    }

    /// The same for a chunk behind the last one that left enough room. It leaves half of that.
    ///
    /// # Errors
    /// As of [`Self::chunk`].
    pub fn last_chunk(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.chunk_leaving(bytes, Compression::Usual, 2)
    }

    /// Appends a chunk. The room that is left free is divided by `part`.
    fn chunk_leaving(
        &mut self,
        bytes: &[u8],
        compression: Compression,
        part: u64,
    ) -> Result<(), Error> {
        let Some(head) = Chunk::read(bytes) else {
            return Ok(());
        };
        let records = &bytes[Chunk::SIZE..bytes.len().min(CHUNK_SIZE as usize)];
        let mut frame = std::mem::take(&mut self.frame);
        let is_packed = self.pack(records, compression, &mut frame);
        if !is_packed {
            frame.truncate(RECORDS);
            frame.extend_from_slice(records);
        }
        let head = Chunk {
            pad: if is_packed { COMPACT } else { 0 },
            ..head
        };
        frame[HEADER..RECORDS].copy_from_slice(&head.to_bytes());
        let written = leaves(&self.file, frame.len() as u64, part)
            .map_err(Error::io("append to", &self.path))
            .and_then(|()| self.whole_frame(FrameKind::DeepChunk, &mut frame));
        self.frame = frame;
        written
    }

    /// Compresses records into a frame, behind its headers. False if that does not shorten them.
    fn pack(&mut self, records: &[u8], compression: Compression, frame: &mut Vec<u8>) -> bool {
        compact(records, &mut self.compact);
        let room = RECORDS + zstd::zstd_safe::compress_bound(self.compact.len());
        if frame.len() < room {
            frame.resize(room, 0);
        }
        let packed = self.compressor.as_mut().and_then(|compressor| {
            compressor.set_compression_level(compression.level()).ok()?;
            compressor
                .compress_to_buffer(&self.compact, &mut frame[RECORDS..])
                .ok()
        });
        match packed.filter(|&packed| packed < records.len()) {
            Some(packed) => frame.truncate(RECORDS + packed),
            None => return false,
        }
        true
    }

    /// Appends a reading of the clocks. If the file is cut off behind it, dates are known all the
    /// same.
    ///
    /// # Errors
    /// The disk is full, or failed.
    pub fn clock(&mut self, point: ClockPoint) -> Result<(), Error> {
        let (counter, real) = (point.counter.to_le_bytes(), point.real.to_le_bytes());
        self.frame(FrameKind::Clock, &[counter, real].concat())
    }

    /// Appends the last frame.
    ///
    /// # Errors
    /// The disk is full, or failed.
    pub fn end(&mut self, end: &DeepEnd) -> Result<(), Error> {
        self.json(FrameKind::DeepEnd, end)
    }

    fn json(&mut self, kind: FrameKind, value: &impl Serialize) -> Result<(), Error> {
        let json = serde_json::to_vec(value).map_err(|source| Error::Encode {
            path: self.path.clone(),
            source,
        })?;
        self.frame(kind, &json)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn frame(&mut self, kind: FrameKind, payload: &[u8]) -> Result<(), Error> {
        self.whole_frame(kind, &mut [&[0; HEADER], payload].concat())
    }

    /// Appends a frame that has room for its header before the payload.
    fn whole_frame(&mut self, kind: FrameKind, frame: &mut [u8]) -> Result<(), Error> {
        let (head, payload) = frame.split_at_mut(HEADER);
        head.copy_from_slice(&frame::header(
            kind,
            VERSION,
            payload.len() as u32,
            &[payload],
        ));
        let before = self.length().map_err(Error::io("look at", &self.path))?;
        let written = self.file.write_all(frame);
        if written.is_err() {
            // If this fails, too, readers skip the torn bytes.
            let _ = self.file.set_len(before);
        }
        written.map_err(Error::io("append to", &self.path))
    }
}

/// Fails if so many more bytes in a file would take the room that the log of the run needs. Without
/// its deep log a run is whole, and the program's own files need room, too.
///
/// # Errors
/// The disk has too little room, or its room is not known.
pub fn leaves_room(file: &File, bytes: u64) -> io::Result<()> {
    leaves(file, bytes, 1)
}

/// The same for a part of that room.
fn leaves(file: &File, bytes: u64, part: u64) -> io::Result<()> {
    let disk = rustix::fs::fstatvfs(file)?;
    let size = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
    let reserve = LEFT_FREE.min(size(disk.f_blocks) / 8) / part;
    match size(disk.f_bavail) < reserve.saturating_add(bytes) {
        true => Err(io::Error::other(format!(
            "the disk has less than {} kB left, which the run's log may need",
            reserve / 1000
        ))),
        false => Ok(()),
    }
}
