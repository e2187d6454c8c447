//! Answers the requests of recorders for tables of functions (`record --functions`).
//!
//! In: addresses at which recorded processes run code. One thread finds the file that is mapped
//! there, makes its table, logs its functions, and passes the table to the process, which waits.
//!
//! Invariants:
//!
//! - The log has the name of a function before a process can log a call of it.
//! - A process waits as long as its file takes to be read, and no receiver waits.

use backstory_abi::{CallerIds, op};
use backstory_arena::{ChunkSupply, ChunkWriter, RecordSink};
use backstory_eventlog::record::RecordBuilder;
use backstory_functions::{FileTable, FunctionCatalogue, FunctionPatterns, UnmatchedPattern};
use backstory_guard::ParkedCall;
use backstory_sys::clock;
use backstory_sys::mappings::Mapping;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// A request: the process, the address, and the call that waits.
type TableRequest = (u32, u64, ParkedCall);

/// The thread that makes tables.
pub(crate) struct FunctionTables {
    requests: Mutex<Sender<TableRequest>>,
    catalogue: Arc<Mutex<FunctionCatalogue>>,
}

impl FunctionTables {
    /// Starts the thread. It ends with this.
    pub(crate) fn start(
        patterns: FunctionPatterns,
        stock: &Arc<ChunkSupply>,
    ) -> std::io::Result<FunctionTables> {
        let (requests, arriving) = channel();
        let catalogue = Arc::new(Mutex::new(FunctionCatalogue::new(patterns)));
        let (stock, shared) = (Arc::clone(stock), Arc::clone(&catalogue));
        std::thread::Builder::new()
            .name("functions".into())
            .spawn(move || answer_all(&arriving, &shared, &stock))?;
        Ok(FunctionTables {
            requests: Mutex::new(requests),
            catalogue,
        })
    }

    /// The patterns for which no compiled function was recorded.
    pub(crate) fn unmatched(&self) -> Vec<UnmatchedPattern> {
        let catalogue = self
            .catalogue
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        catalogue.unmatched()
    }

    /// Passes a request on. The call waits until it is answered.
    pub(crate) fn request(&self, pid: u32, address: u64, parked: ParkedCall) {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        // If the thread has ended, the call is dropped and answered so.
        let _ = requests.send((pid, address, parked));
    }
}

fn answer_all(
    requests: &Receiver<TableRequest>,
    catalogue: &Mutex<FunctionCatalogue>,
    stock: &Arc<ChunkSupply>,
) {
    for (pid, address, parked) in requests {
        let Some((path, mut file)) = mapped_file(pid, address) else {
            continue;
        };
        let found = catalogue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .table(&path, &mut file);
        // An unreadable file has no functions.
        let Ok(Some((table, is_new))) = found else {
            continue;
        };
        if is_new {
            // The chunk goes into the log when the writer is dropped.
            log_functions(&table, pid, &mut ChunkWriter::new(Arc::clone(stock)));
        }
        parked.answer_descriptor(table.memory.as_fd());
    }
}

fn log_functions(table: &FileTable, pid: u32, out: &mut ChunkWriter) {
    let mut builder = RecordBuilder::new();
    for (number, function) in &table.functions {
        let record = builder
            .start(op::FUNCTION, clock::counter())
            .caller(CallerIds::of_process(pid))
            .fd(*number as i32)
            .string(function.name.as_bytes())
            .string(function.location.as_bytes())
            .string(function.kind.as_bytes())
            .result(0)
            .finish();
        out.append(record);
    }
}

/// The file that a process has mapped at an address, opened, and its path as the process has it.
fn mapped_file(pid: u32, address: u64) -> Option<(PathBuf, File)> {
    let maps = fs::read(format!("/proc/{pid}/maps")).ok()?;
    let mapping = Mapping::of_files(&maps).find(|mapping| mapping.contains(address))?;
    let path = PathBuf::from(OsStr::from_bytes(mapping.name));
    mapping.open(pid).map(|file| (path, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_an_address_is_found_in_the_maps_of_a_process() {
        let address = the_file_of_an_address_is_found_in_the_maps_of_a_process as *const () as u64;
        let (path, _) = mapped_file(std::process::id(), address).unwrap();
        assert_eq!(path, std::env::current_exe().unwrap());
        assert!(mapped_file(std::process::id(), 0).is_none());
    }
}
