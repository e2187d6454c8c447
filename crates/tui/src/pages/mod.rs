//! Makes the content of each view from the store: one file for each.

mod file;
mod lineage;
mod processes;
mod run;
mod run_files;
mod runs;

use backstory_store::Store;

use crate::Result;
use crate::destination::Destination;
use crate::page::Page;

/// The content of a view.
///
/// # Errors
///
/// The subject is not in the store, or the store cannot be read.
pub fn page(store: &dyn Store, destination: &Destination) -> Result<Page> {
    match destination {
        Destination::Runs => runs::page(store),
        Destination::RunFiles(run) => run_files::page(store, run),
        Destination::RunProcesses(run) => processes::page(store, run),
        Destination::File(path) => file::page(store, path),
        Destination::Lineage(path, direction) => lineage::page(store, path, *direction),
    }
}
