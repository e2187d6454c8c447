//! Entry points for the fuzzers in `fuzz/`, and for the tests that replay their findings. They
//! reach the code of this crate that reads bytes which a recorded program controls.
//!
//! Recording never uses this module. Absent: expectations, which the fuzz targets assert.

use crate::drain::{ChunkSelection, Drainer};
use crate::redact::Secrets;
use crate::{Error, redact};
use backstory_abi as abi;
use backstory_arena::Arena;
use backstory_arena::{ChunkSupply, ChunkWriter};
use backstory_eventlog::Writer;
use backstory_eventlog::run::{RunEnd, RunHeader};
use std::path::Path;
use std::sync::Arc;

pub use backstory_guard::fuzz_entry::call;

/// Drains an arena that a program has overwritten, into the new log `log`. `header` overwrites the
/// arena's first page, `chunks` the first chunks. Returns the number of operations that the
/// supervisor counts as lost.
pub fn drain(id: &str, header: &[u8], chunks: &[&[u8]], log: &Path) -> Result<u64, Error> {
    let arena = Arena::create(id, abi::ARENA_GUARDED)?;
    arena.remove();
    let stock = ChunkSupply::new(arena);
    let writer = Writer::create(log, &RunHeader::default()).map_err(Error::log("create", log))?;
    let mut drainer = Drainer::new(
        Arc::clone(&stock),
        writer,
        Secrets::new(&["MINE*".to_owned()]),
    );
    for chunk in chunks {
        if let Some(index) = stock.arena.take() {
            let length = chunk.len().min(abi::CHUNK_SIZE as usize);
            stock
                .arena
                .write(index, 0, chunk.get(..length).unwrap_or_default());
        }
    }
    stock.arena.scribble(header);
    let mut own = ChunkWriter::new(Arc::clone(&stock));
    let mut builder = backstory_eventlog::record::RecordBuilder::new();
    for which in [
        ChunkSelection::Finished,
        ChunkSelection::Finished,
        ChunkSelection::All,
    ] {
        use backstory_arena::RecordSink;
        own.append(
            builder
                .start(abi::op::KILL, backstory_sys::clock::counter())
                .result(0)
                .finish(),
        );
        stock.arena.keep_stocked();
        drainer.pass(which);
        for index in [0, 5, 63, 4095, u32::MAX] {
            stock.arena.announce(index as usize, 1);
        }
    }
    drop(own);
    drainer.pass(ChunkSelection::All);
    let end = drainer.finish(|drainer| RunEnd {
        lost: drainer.lost(),
        ..RunEnd::default()
    });
    Ok(end.lost)
}

/// The redacted entry of an environment variable, with one more pattern of secret names.
pub fn redacted(pattern: &str, entry: &[u8]) -> Vec<u8> {
    let secrets = redact::Secrets::new(&[pattern.to_owned()]);
    secrets.environment(&[entry.to_vec()]).concat()
}

/// The redacted arguments of a command, with one more pattern of secret names.
pub fn redacted_command(pattern: &str, command: &[Vec<u8>]) -> Vec<Vec<u8>> {
    redact::Secrets::new(&[pattern.to_owned()]).command(command)
}
