//! The trace in a pack (`.rpz`): a tar archive with `METADATA/trace.sqlite3`.
//!
//! SQLite reads files only, by their names. So the trace is copied into a temporary file.
//!
//! Invariant: memory does not grow with the pack.

use crate::LogFile;
use crate::tar::{BLOCK, is_file, is_header, name, padded, size};
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
    /// The file is an archive without a trace, whose first file has this name.
    Missing(String),
}

/// Members of a compressed archive that are looked at. A pack begins with its trace.
const FIRST_MEMBERS: usize = 16;

/// True if a file begins as a trace or a pack.
pub(super) fn is_like(beginning: &[u8]) -> bool {
    let finds = |text: &[u8]| memchr::memmem::find(beginning, text).is_some();
    match beginning.starts_with(SQLITE) {
        true => finds(b"opened_files") && finds(b"executed_files"),
        // An extended header may stand before the first member.
        false => {
            beginning.first_chunk().is_some_and(is_header)
                && (finds(b"DATA.tar.gz\0") || finds(b"METADATA/"))
        }
    }
}

/// Finds the trace of a file.
pub(super) fn trace(file: &LogFile) -> io::Result<Trace> {
    let mut source = crate::inputs::open(&file.path).map_err(io::Error::other)?;
    let mut block = [0; BLOCK];
    let read = source.read(&mut block)?;
    if block.starts_with(GZIP) {
        source.rewind()?;
        return compressed(source);
    }
    if read < BLOCK || !is_header(&block) {
        return Ok(Trace::Itself);
    }
    let mut first = None;
    loop {
        let Some(size) = size(&block) else {
            return Ok(Trace::Missing(first.unwrap_or_default()));
        };
        see_file(&mut first, &block);
        if name(&block) == TRACE {
            let mut copy = NamedTempFile::new()?;
            if io::copy(&mut source.take(size), &mut copy)? < size {
                return Err(io::Error::other("METADATA/trace.sqlite3 is cut"));
            }
            return Ok(Trace::Packed(copy));
        }
        let skipped = i64::try_from(padded(size)).map_err(io::Error::other)?;
        source.seek(SeekFrom::Current(skipped))?;
        if source.read_exact(&mut block).is_err() {
            return Err(io::Error::other(
                "the archive ends before METADATA/trace.sqlite3",
            ));
        }
    }
}

/// Keeps the name of the first file.
fn see_file(first: &mut Option<String>, block: &[u8; BLOCK]) {
    if is_file(block) {
        first.get_or_insert_with(|| String::from_utf8_lossy(name(block)).into_owned());
    }
}

/// Says what a compressed file is.
fn compressed(source: impl Read) -> io::Result<Trace> {
    let mut source = io::BufReader::new(flate2::read::MultiGzDecoder::new(source));
    let mut block = [0; BLOCK];
    let mut first = None;
    let mut is_archive = false;
    for _ in 0..FIRST_MEMBERS {
        if source.read_exact(&mut block).is_err() || !is_header(&block) {
            break;
        }
        is_archive = true;
        if name(&block) == TRACE {
            return Err(io::Error::other(
                "a pack of ReproZip before 1.0 is compressed",
            ));
        }
        see_file(&mut first, &block);
        let size = padded(size(&block).unwrap_or(0));
        io::copy(&mut (&mut source).take(size), &mut io::sink())?;
    }
    match is_archive {
        true => Ok(Trace::Missing(first.unwrap_or_default())),
        false => Err(io::Error::other("it is no archive")),
    }
}
