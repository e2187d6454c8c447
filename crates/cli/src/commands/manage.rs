//! `rm`, `name`, `note` and `index`: change a store.

use std::path::Path;

use backstory_store::annotation_history::{self, StampedAnnotation};
use backstory_store::{EngineControl, GraphStore, Home, Label, open_store};
use backstory_sys::Rests;

use super::Outcome;
use super::record::check_name;
use super::store::{limits, reclaim, sealing};
use crate::args::program::IndexArgs;
use crate::args::runs::{NameArgs, NoteArgs, RmArgs};
use crate::checkout;
use crate::contents_writer;
use crate::current_store::CurrentStore;
use crate::delivery;
use crate::error::{Failure, chain, complain};
use crate::handover;
use crate::index::{self, Busy};
use crate::inspection_queue;
use crate::remote;
use crate::running_runs;
use crate::shell_policy::ShellPolicy;

/// Removes runs: their graphs and their logs.
pub fn rm(args: RmArgs, store: Option<&Path>) -> Outcome {
    let mut current = CurrentStore::open(store)?;
    // All runs are looked up before the first is removed, so that a wrong name removes nothing.
    let mut runs = Vec::new();
    for wanted in &args.runs {
        let run = match index::bad(&current.home, wanted) {
            Some(bad) => bad.run,
            None => current.run(Some(wanted))?,
        };
        if !runs.contains(&run) {
            runs.push(run);
        }
    }
    for run in runs {
        reclaim::remove(&mut current, &run)?;
    }
    Ok(0)
}

/// Names a run.
pub fn name(args: NameArgs, store: Option<&Path>) -> Outcome {
    if !args.name.is_empty() {
        check_name(&args.name)?;
    }
    let mut current = CurrentStore::open(store)?;
    let run = current.run(Some(&args.run))?;
    label(&mut current, &run, Label::Name, &args.name)
}

/// Attaches a note to a run.
pub fn note(args: NoteArgs, store: Option<&Path>) -> Outcome {
    let mut current = CurrentStore::open(store)?;
    let run = current.run(Some(&args.run))?;
    label(&mut current, &run, Label::Note, &args.text)
}

/// Sets a label, or removes it if the text is empty. The database comes first: it refuses the run
/// of another user of a group. The journal keeps the history, for other stores.
fn label(current: &mut CurrentStore, run: &str, label: Label, text: &str) -> Outcome {
    let text = Some(text).filter(|text| !text.is_empty());
    current.store.set_label(run, label, text)?;
    let record = StampedAnnotation::label(run, label, text);
    annotation_history::append_newest(&current.home, vec![record])?;
    Ok(0)
}

/// Brings the store up to date. A background indexer prints no errors: it marks runs that failed,
/// and the next question reports them.
///
/// In the background, a store that is not there has been removed after the run. It is not made
/// again.
pub fn index(args: IndexArgs, store: Option<&Path>) -> Outcome {
    let place = Home::directory(store)?;
    if !args.wait && matches!(place.try_exists(), Ok(false)) {
        return Ok(0);
    }
    let home = Home::open(&place)?;
    // Whoever takes the work over may do a part of it. The successor waits, and does the rest.
    let mut successor = index::in_background(&home);
    successor.push("--wait".into());
    handover::watch(successor);
    if args.wait {
        running_runs::let_logs_be_finished(&home);
    }
    let mut store = open_store(&home)?;
    let busy = if args.wait { Busy::Wait } else { Busy::Leave };
    let rests = Rests::begin();
    let failed = index::bring_up_to_date(&home, &mut store, busy, args.wait)
        .map_err(|error| Failure::not_found(chain(&error)))?;
    for bad in &failed {
        complain(&bad.to_string());
    }
    // The state of a work tree changes soon, so that it comes before the contents.
    checkout::complete(&home, &mut store)?;
    contents_writer::bring_up_to_date(&home, &mut store, busy)
        .map_err(|error| Failure::not_found(chain(&error)))?;
    // The next steps talk to other programs by libraries that may not expect a signal.
    drop(rests);
    if let Err(failure) = sealing::seal_each_run(&home, &*store) {
        complain(&failure.line);
    }
    // Other processes may have the database open, so that closing it here would not write the
    // checkpoint.
    if store.has_long_log() {
        store.bring_in_log()?;
    }
    for failure in delivery::deliver(&home, &*store, busy)? {
        complain(&failure);
    }
    let policy = ShellPolicy::load();
    inspection_queue::look_at_new_runs(&home, store, &policy, busy)?;
    remote::returning::fetch(&home, busy)?;
    limits::keep_in_background(&home, &policy)?;
    Ok(u8::from(!failed.is_empty()))
}
