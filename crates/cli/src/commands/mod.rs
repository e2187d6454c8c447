//! One file for each command: takes the arguments, queries the store, prints the answer.

use std::os::unix::ffi::OsStrExt;

pub mod account;
pub mod answer;
pub mod blame;
pub mod byte_origins;
pub mod compare;
pub mod compile;
pub mod complete_words;
pub mod contents;
mod database_history;
mod deciding_files;
mod deep_programs;
pub mod diff;
pub mod doctor;
pub mod emit;
pub mod export;
mod file_choice;
pub mod files;
pub mod forget;
pub mod generate;
pub mod git_note;
pub mod hunt;
pub mod import;
pub mod inputs;
pub mod inspect;
mod judged_records;
pub mod lake;
pub mod lineage;
pub mod log;
pub mod manage;
pub mod mount;
pub mod network;
mod open_watches;
mod own_calls;
mod own_files;
mod path_log;
pub mod pause;
pub mod peers;
pub mod pipeline;
pub mod policy;
pub mod processes;
pub mod query;
pub mod record;
mod reference;
pub mod refine;
pub mod remote_side;
pub mod replay;
pub mod requests;
pub mod rerun;
mod run_summary;
pub mod scene;
pub mod schema;
#[cfg(feature = "serve")]
pub mod serve;
#[cfg(not(feature = "serve"))]
#[path = "serve_absent.rs"]
pub mod serve;
pub mod shell;
pub mod show;
mod source_run;
pub mod spade;
pub mod status;
mod step_files;
pub mod store;
mod stored_contents;
pub mod tag;
pub mod timeline;
pub mod tui;
mod undeclared_inputs;
pub mod undo;
pub mod watch;
mod watch_database;
pub mod who;

use backstory_workflow::paths::relative;

use crate::error::Failure;
use crate::pager::Output;
use crate::text::paths::shown;

/// The result of a command: an exit status or a failure.
pub type Outcome = Result<u8, Failure>;

/// Lets a command write its answer, through a pager where the user wants one, and flushes it.
fn answer(write: impl FnOnce(&mut Output) -> std::io::Result<()>) -> Outcome {
    let mut out = Output::start();
    let written = write(&mut out);
    out.end(written)?;
    Ok(0)
}

/// A path for a reader: relative if it is below the current directory.
fn near(path: &[u8]) -> String {
    shown(relative(path, &here()))
}

/// The current directory, for printed commands that need no `cd`. Empty if it was removed.
fn here() -> Vec<u8> {
    std::env::current_dir()
        .map(|dir| dir.as_os_str().as_bytes().to_vec())
        .unwrap_or_default()
}
