//! `store import`: adds runs from a file that `store export` wrote.
//!
//! [`Incoming`] checks everything in the file, and adds what is new. Runs and facts that the store
//! has already stay as they are.
//!
//! If the import is killed at any moment, it has added some contents and perhaps some runs, each
//! completely. A second import adds the rest.

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::Path;

use backstory_contents::WorkMeter;
use backstory_exchange::{Accepted, Error, Incoming, Parcel, remove_left_files};
use backstory_store::annotation_history::{self, StampedAnnotation};
use backstory_store::{self as store, Home, Label, Store, open_store};

use super::keep_lock;
use crate::args::store::StoreImportArgs;
use crate::commands::{Outcome, answer};
use crate::error::{Failure, chain};
use crate::index::{self, Busy};
use crate::json::{self, Value};
use crate::text::progress::{Progress, Unit};

/// Adds the runs of the file to the store.
pub fn run(args: StoreImportArgs, store: Option<&Path>) -> Outcome {
    let home = Home::locate(store)?;
    let mut database = open_store(&home)?;
    let lock = keep_lock(&home)?;
    remove_left_files(&home);
    let meter = WorkMeter::default();
    let progress = Progress::metered("importing", &meter, Unit::Bytes);
    let (done, annotations) =
        import(&args.file, &home, &mut database, &meter).map_err(|error| {
            Failure::not_found(format!(
                "cannot import {}: {}",
                args.file.display(),
                chain(&error)
            ))
        })?;
    drop(lock);
    index::bring_up_to_date(&home, &mut database, Busy::Wait, true)
        .map_err(|error| Failure::not_found(chain(&error)))?;
    annotation_history::merge(&home, annotations)?;
    store::catch_up_annotations(&home, &mut database)?;
    annotation_history::apply_labels(&home, &mut database)?;
    progress.end();
    answer(|out| match args.json {
        true => json::object(
            out,
            vec![
                ("runs", Value::array(&done.added)),
                ("known", Value::array(&done.known)),
            ],
        ),
        false => {
            writeln!(out, "imported: {}", list(&done.added))?;
            match done.known.is_empty() {
                true => Ok(()),
                false => writeln!(out, "in the store already: {}", list(&done.known)),
            }
        }
    })
}

fn list(runs: &[String]) -> String {
    match runs.is_empty() {
        true => "nothing".to_owned(),
        false => runs.join(" "),
    }
}

/// Adds the runs of the file. Returns them, and the annotations of those that are new.
fn import(
    path: &Path,
    home: &Home,
    database: &mut dyn Store,
    meter: &WorkMeter,
) -> Result<(Accepted, Vec<StampedAnnotation>), Error> {
    let fail = |source| Error::Io {
        doing: "read",
        object: path.display().to_string(),
        source,
    };
    let file = File::open(path).map_err(fail)?;
    meter.expect(file.metadata().map_err(fail)?.len());
    let incoming = Incoming::new(home, None)?;
    let mut parcel = incoming.read(BufReader::new(meter.reading(file)))?;
    let mut annotations = std::mem::take(&mut parcel.annotations);
    annotations.extend(labels(&parcel, &annotations));
    let accepted = incoming.add(parcel, database, true)?;
    // Of the runs that the store had already, the owner's annotations stay.
    annotations.retain(|one| accepted.added.contains(&one.run));
    Ok((accepted, annotations))
}

/// The names and notes that have no history, as in a file of an older program.
fn labels(parcel: &Parcel, annotations: &[StampedAnnotation]) -> Vec<StampedAnnotation> {
    let mut found = Vec::new();
    for (run, text) in &parcel.labels {
        let (name, note) = text.split_once('\n').unwrap_or((text, ""));
        for (label, text) in [(Label::Name, name), (Label::Note, note)] {
            let record = StampedAnnotation::label(run, label, Some(text));
            let has_history =
                |one: &StampedAnnotation| (&one.run, &one.kind) == (run, &record.kind);
            if !text.is_empty() && !annotations.iter().any(has_history) {
                found.push(StampedAnnotation { at: 1, ..record });
            }
        }
    }
    found
}
