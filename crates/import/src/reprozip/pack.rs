//! The trace in a pack (`.rpz`): a tar archive with `METADATA/trace.sqlite3`.
//!
//! SQLite reads files only, by their names. So the trace is copied into a temporary file.
//!
//! Invariant: memory does not grow with the pack.

use crate::LogFile;
use crate::tar::{BLOCK, is_header, name, size};
use std::io::{self, Read, Seek, SeekFrom};
use tempfile::NamedTempFile;

/// The name of the trace.
const TRACE: &[u8] = b"METADATA/trace.sqlite3";
/// The first bytes of a file that gzip compressed.
const GZIP: &[u8] = &[0x1f, 0x8b];
/// The first bytes of a database of SQLite.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// The trace of a file: the file itself, or a copy of the trace in a pack.
pub(super) enum Trace {
    /// The file is the trace.
    Itself,
    /// The file is a pack. The copy is removed when this is dropped.
    Packed(NamedTempFile),
}

/// Finds the trace of a file.
pub(super) fn trace(file: &LogFile) -> io::Result<Trace> {
    let mut source = crate::inputs::open(&file.path).map_err(io::Error::other)?;
    let mut block = [0; BLOCK];
    let read = source.read(&mut block)?;
    if read < BLOCK || block.starts_with(SQLITE) {
        return Ok(Trace::Itself);
    }
    if block.starts_with(GZIP) {
        return Err(io::Error::other(
            "a pack of ReproZip before 1.0 is compressed: unpack METADATA/trace.sqlite3 of it",
        ));
    }
    if !is_header(&block) {
        return Ok(Trace::Itself);
    }
    loop {
        let Some(size) = size(&block) else {
            return Err(io::Error::other(
                "the archive ends before METADATA/trace.sqlite3",
            ));
        };
        if name(&block) == TRACE {
            let mut copy = NamedTempFile::new()?;
            if io::copy(&mut source.take(size), &mut copy)? < size {
                return Err(io::Error::other("METADATA/trace.sqlite3 is cut"));
            }
            return Ok(Trace::Packed(copy));
        }
        let padded = size.div_ceil(BLOCK as u64).saturating_mul(BLOCK as u64);
        let skipped = i64::try_from(padded).map_err(io::Error::other)?;
        source.seek(SeekFrom::Current(skipped))?;
        if source.read_exact(&mut block).is_err() {
            block = [0; BLOCK];
        }
    }
}
