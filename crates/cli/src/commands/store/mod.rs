//! `store`: manages the store as a whole: size, integrity, free space, exchange of runs.

pub mod contents_budget;
pub mod evidence;
mod exchange;
mod export;
mod gc;
mod import;
mod least_valuable;
pub mod limits;
pub mod migrate;
mod rebuild;
pub mod reclaim;
pub mod sealing;
mod stats;
mod verify;

pub use exchange::{PROGRAM, Selector};

use std::path::Path;

use backstory_contents::Contents;
use backstory_store::Home;

use super::{Outcome, answer};
use crate::args::store::StoreCommand;
use crate::error::{Failure, chain};
use crate::handover::HeldLock;
use crate::index::{Busy, take_lock};

/// Runs a command of `store`.
pub fn run(command: StoreCommand, store: Option<&Path>) -> Outcome {
    match command {
        StoreCommand::Stats(args) => stats::run(args, store),
        StoreCommand::Verify(args) => match args.evidence {
            Some(_) => evidence::verify(args, store),
            None => verify::run(args, store),
        },
        StoreCommand::Seal(args) => evidence::seal(args, store),
        StoreCommand::Rebuild(args) => rebuild::run(args, store),
        StoreCommand::Migrate(args) => migrate::run(args, store),
        StoreCommand::Gc(args) => gc::run(args, store),
        StoreCommand::Export(args) => export::run(args, store),
        StoreCommand::Import(args) => import::run(args, store),
        StoreCommand::Push(args) => exchange::push(args, store),
        StoreCommand::Pull(args) => exchange::pull(args, store),
        StoreCommand::Ship(args) => super::lake::ship(args, store),
        StoreCommand::ServePeer(args) => exchange::serve_peer(args, store),
    }
}

/// The directory of contents. `None` if no content was ever stored.
pub fn open_contents(home: &Home) -> Result<Option<Contents>, Failure> {
    match Contents::open(&home.contents_dir()) {
        Ok(contents) => Ok(Some(contents)),
        Err(backstory_contents::Error::None(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Takes the lock for adding facts and removing contents.
fn keep_lock(home: &Home) -> Result<Option<HeldLock>, Failure> {
    let what = "waiting for another backstory process to store contents";
    take_lock(home.keep_lock_path(), Busy::Wait, what)
        .map_err(|error| Failure::not_found(chain(&error)))
}

/// Takes the locks of the indexer and of the writer of contents: the database is replaced while
/// both are held.
fn database_locks(home: &Home) -> Result<(Option<HeldLock>, Option<HeldLock>), Failure> {
    let what = "waiting for another backstory process to index the newest runs";
    let indexes = take_lock(home.lock_path(), Busy::Wait, what)
        .map_err(|error| Failure::not_found(chain(&error)))?;
    Ok((indexes, keep_lock(home)?))
}
