//! `store`: manages the store as a whole: size, integrity, free space, exchange of runs.

mod export;
mod gc;
mod import;
mod stats;

use std::fs::File;
use std::path::Path;

use backstory_contents::Contents;
use backstory_store::Home;

use super::{Outcome, answer};
use crate::args::store::{StoreCommand, StoreVerifyArgs};
use crate::current_store::CurrentStore;
use crate::error::{Failure, chain};
use crate::index::{Busy, take_lock};
use crate::json::{self, Value};
use crate::text::progress::Progress;

/// Runs a command of `store`.
pub fn run(command: StoreCommand, store: Option<&Path>) -> Outcome {
    match command {
        StoreCommand::Stats(args) => stats::run(args, store),
        StoreCommand::Verify(args) => verify(args, store),
        StoreCommand::Gc(args) => gc::run(args, store),
        StoreCommand::Export(args) => export::run(args, store),
        StoreCommand::Import(args) => import::run(args, store),
    }
}

/// The directory of contents. `None` if no content was ever stored.
fn contents(home: &Home) -> Result<Option<Contents>, Failure> {
    match Contents::open(&home.contents_dir()) {
        Ok(contents) => Ok(Some(contents)),
        Err(backstory_contents::Error::None(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Takes the lock for adding facts and removing contents.
fn keep_lock(home: &Home) -> Result<Option<File>, Failure> {
    let what = "waiting for another backstory process to store contents";
    take_lock(home.keep_lock_path(), Busy::Wait, what)
        .map_err(|error| Failure::not_found(chain(&error)))
}

/// Reads all contents and lists the damaged ones.
fn verify(args: StoreVerifyArgs, store: Option<&Path>) -> Outcome {
    let current = CurrentStore::open(store)?;
    let damages = match contents(&current.home)? {
        Some(contents) => {
            let progress = Progress::start("reading all contents");
            let damages = contents.verify(&mut |_, _| {})?;
            progress.end();
            damages
        }
        None => Vec::new(),
    };
    let sound = damages.is_empty();
    answer(|out| match args.json {
        true => json::lines(
            out,
            damages.iter().map(|damage| {
                Value::Object(vec![
                    ("path", damage.path.display().to_string().as_str().into()),
                    ("digest", damage.digest.into()),
                    ("what", (&damage.what).into()),
                ])
            }),
        ),
        false if sound => writeln!(out, "all contents are intact"),
        false => damages.iter().try_for_each(|damage| {
            let digest = damage
                .digest
                .map(|digest| format!("content {digest}, "))
                .unwrap_or_default();
            writeln!(out, "{}: {digest}{}", damage.path.display(), damage.what)
        }),
    })?;
    Ok(u8::from(!sound))
}

use std::io::Write;
