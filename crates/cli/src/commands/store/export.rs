//! `store export`: writes runs, the facts about their files and the stored contents into one file.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use backstory_contents::Contents;
use backstory_contents::WorkMeter;
use backstory_contents::transfer::{Kind, Writer};
use backstory_files::{Digest, VersionId, regular};
use backstory_store::facts::{self, Availability, Fact, JournalRecord};
use backstory_store::{ContentFacts, GraphStore, RunAnnotations, RunRecord, annotations};

use super::open_contents;
use crate::args::store::StoreExportArgs;
use crate::commands::Outcome;
use crate::commands::contents::whole_file;
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
    let learned = learned(&current, &runs)?;
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
    Ok(0)
}

/// The facts about the runs' files.
fn learned(current: &CurrentStore, runs: &[RunRecord]) -> Result<Vec<JournalRecord>, Failure> {
    let mut facts: HashMap<VersionId, Fact> = HashMap::new();
    let mut learned = Vec::new();
    for run in runs {
        for ident in current
            .store
            .entities(run.key)?
            .iter()
            .filter_map(|entity| entity.ident)
        {
            if let Some(fact) = current.store.fact(&ident)? {
                facts.insert(ident.version_id(), fact);
            }
        }
        learned.extend(
            current
                .store
                .directory_snapshot(&run.header.id)?
                .map(JournalRecord::Run),
        );
    }
    learned.extend(facts.into_values().map(JournalRecord::Fact));
    Ok(learned)
}

/// The stored contents among the facts, each with its size in bytes.
fn stored(learned: &[JournalRecord]) -> Vec<(Digest, u64)> {
    let mut seen: HashSet<Digest> = HashSet::new();
    let mut found = Vec::new();
    for one in learned {
        if let JournalRecord::Fact(Fact {
            digest: Some(digest),
            availability: Availability::Stored | Availability::StoredPackage(_),
            ident,
            ..
        }) = one
            && seen.insert(*digest)
        {
            found.push((*digest, u64::try_from(ident.size).unwrap_or_default()));
        }
    }
    found
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
        let stored = stored(learned);
        meter.expect(stored.iter().map(|(_, size)| size).sum());
        for (digest, _) in stored {
            let object = contents.read(&digest).map_err(io::Error::other)?;
            let (name, size) = (digest.to_string(), object.size());
            writer.section(Kind::Content, &name, size, &mut meter.reading(object))?;
        }
    }
    let facts = facts::to_bytes(learned);
    writer.section(Kind::Facts, "", facts.len() as u64, &mut facts.as_slice())?;
    for run in runs {
        let id = &run.header.id;
        let label = [run.name.as_deref(), run.note.as_deref()].map(Option::unwrap_or_default);
        let label = label.join("\n");
        writer.section(Kind::Label, id, label.len() as u64, &mut label.as_bytes())?;
        let said = current.store.annotations(id).map_err(io::Error::other)?;
        let said = annotations::to_lines(&said);
        writer.section(
            Kind::Annotations,
            id,
            said.len() as u64,
            &mut said.as_bytes(),
        )?;
        let mut log = regular::open(current.home.log_path(id))?;
        let size = log.metadata()?.len();
        writer.section(Kind::Log, id, size, &mut log)?;
    }
    writer.finish()?.flush()
}
