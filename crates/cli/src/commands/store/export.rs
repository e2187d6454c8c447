//! `store export`: writes runs, the facts about their files and the stored contents into one file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use backstory_contents::Contents;
use backstory_contents::WorkMeter;
use backstory_contents::transfer::Writer;
use backstory_exchange::outgoing;
use backstory_store::annotation_history::AnnotationHistory;
use backstory_store::facts::JournalRecord;
use backstory_store::{GraphStore, RunRecord};

use super::open_contents;
use crate::args::store::StoreExportArgs;
use crate::commands::Outcome;
use crate::commands::contents::whole_file;
use crate::commands::deep_programs;
use crate::contents_writer;
use crate::current_store::CurrentStore;
use crate::ending::{self, Workers};
use crate::error::{Failure, chain};
use crate::index::Busy;
use crate::text::progress::{Progress, Unit};

/// Writes the export, which is complete or absent.
pub fn run(args: StoreExportArgs, store: Option<&Path>) -> Outcome {
    ending::watch(Workers::Killed);
    let mut current = CurrentStore::open(store)?;
    contents_writer::bring_up_to_date(&current.home, &mut current.store, Busy::Wait)
        .map_err(|error| Failure::not_found(chain(&error)))?;
    let mut runs: Vec<RunRecord> = Vec::new();
    for wanted in &args.runs {
        let id = current.run(Some(wanted))?;
        if !runs.iter().any(|run| run.header.id == id) {
            runs.extend(current.store.run(&id)?);
        }
    }
    let learned = outgoing::learned(&current.home, &current.store, &runs)
        .map_err(|error| Failure::not_found(chain(&error)))?;
    let contents = open_contents(&current.home)?;
    let meter = WorkMeter::default();
    let progress = Progress::metered("writing the export", &meter, Unit::Bytes);
    whole_file(&args.output, |file| {
        let from = (contents.as_ref(), &meter);
        write(&current, &runs, &learned, from, file)
    })
    .map_err(|error| {
        Failure::not_found(format!(
            "cannot export to {}: {}",
            args.output.display(),
            chain(&error)
        ))
    })?;
    progress.end();
    deep_programs::tell_left_behind(&current.home, runs.iter().map(|run| run.header.id.as_str()));
    Ok(0)
}

/// `contents`: the stored contents, and the meter of their bytes.
fn write(
    current: &CurrentStore,
    runs: &[RunRecord],
    learned: &[JournalRecord],
    (contents, meter): (Option<&Contents>, &WorkMeter),
    file: &mut File,
) -> io::Result<()> {
    let mut writer = Writer::new(BufWriter::new(file))?;
    // Contents come first and runs last, so that an import has what a run needs when it reads the
    // run.
    if let Some(contents) = contents {
        let stored = outgoing::stored(learned);
        meter.expect(stored.iter().map(|(_, size)| size).sum());
        let digests = stored.into_iter().map(|(digest, _)| digest);
        outgoing::write_contents(&mut writer, contents, digests, meter)?;
    }
    outgoing::write_facts(&mut writer, learned)?;
    let history = AnnotationHistory::of(&current.home).map_err(io::Error::other)?;
    for run in runs {
        outgoing::write_run(
            &mut writer,
            &current.home,
            &history,
            run,
            &WorkMeter::default(),
        )?;
    }
    writer.finish()?.flush()
}
