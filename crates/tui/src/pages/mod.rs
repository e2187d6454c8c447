//! Makes the content of each view from the store: one file for each.

mod byte_marks;
mod file;
mod lineage;
mod processes;
mod run;
mod run_files;
mod runs;

use crate::Result;
use crate::destination::Destination;
use crate::page::Page;
use crate::viewed_store::ViewedStore;

/// The content of a view.
///
/// # Errors
///
/// The subject is not in the store, or the store cannot be read.
pub fn page(viewed: &ViewedStore<'_>, destination: &Destination) -> Result<Page> {
    let store = viewed.store;
    match destination {
        Destination::Runs => runs::page(store),
        Destination::RunFiles(run) => run_files::page(store, run),
        Destination::RunProcesses(run) => processes::page(store, run),
        Destination::File(path) => file::page(store, path),
        Destination::Lineage(path, direction) => lineage::page(viewed, path, *direction),
    }
}
