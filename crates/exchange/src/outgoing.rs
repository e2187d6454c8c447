//! Archives of runs that leave a store: the sections of each run, and the contents of its files.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Write};

use backstory_contents::transfer::{Kind, Writer};
use backstory_contents::{Contents, WorkMeter};
use backstory_eventlog::Log;
use backstory_files::{Digest, Ident, VersionId, regular};
use backstory_store::annotation_history::AnnotationHistory;
use backstory_store::facts::{self, Availability, Fact, JournalRecord};
use backstory_store::{Home, RunRecord, Store, annotations};
use backstory_vocabulary::ContentsMode;

use crate::parcel::ReceivedLog;
use crate::signature;
use crate::{Error, Parcel, Result};

/// The facts about the runs' files, and the runs' directory snapshots.
pub fn learned(home: &Home, store: &dyn Store, runs: &[RunRecord]) -> Result<Vec<JournalRecord>> {
    let mut facts: HashMap<VersionId, Fact> = HashMap::new();
    let mut learned = Vec::new();
    for run in runs {
        let entities = store.entities(run.key)?;
        let idents = entities.iter().filter_map(|entity| entity.ident);
        for ident in idents.chain(preserved(home, run)?) {
            if let Some(fact) = store.fact(&ident)? {
                facts.insert(ident.version_id(), fact);
            }
        }
        let snapshot = store.directory_snapshot(&run.header.id)?;
        learned.extend(snapshot.map(JournalRecord::Run));
    }
    let mut facts: Vec<Fact> = facts.into_values().collect();
    note_lost(home, &mut facts)?;
    learned.extend(facts.into_iter().map(JournalRecord::Fact));
    Ok(learned)
}

/// A content that was left in another store, and is not there any more, cannot leave this one: its
/// facts say why.
fn note_lost(home: &Home, facts: &mut [Fact]) -> Result<()> {
    let contents = match Contents::open(&home.contents_dir()) {
        Ok(contents) if contents.has_places() => contents,
        Ok(_) | Err(backstory_contents::Error::None(_)) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    for fact in facts
        .iter_mut()
        .filter(|fact| fact.availability.is_stored())
    {
        let Some(digest) = fact.digest else { continue };
        let Some(why) = contents.lost(&digest)? else {
            continue;
        };
        fact.availability = Availability::Missing(why);
    }
    Ok(())
}

/// The versions that a run with `--contents=all` preserved. The graph does not have all of them.
fn preserved(home: &Home, run: &RunRecord) -> Result<Vec<Ident>> {
    let path = home.log_path(&run.header.id);
    if run.header.modes.contents != Some(ContentsMode::All) || !path.exists() {
        return Ok(Vec::new());
    }
    let log = Log::open(&path)?;
    Ok(log.preserved().map(|kept| kept.ident).collect())
}

/// The stored contents among the facts, each with its size in bytes.
pub fn stored(learned: &[JournalRecord]) -> Vec<(Digest, u64)> {
    let mut seen: HashSet<Digest> = HashSet::new();
    let mut found = Vec::new();
    for one in learned {
        if let JournalRecord::Fact(fact) = one
            && let Some(digest) = fact.digest
            && fact.availability.is_stored()
            && seen.insert(digest)
        {
            found.push((digest, u64::try_from(fact.ident.size).unwrap_or_default()));
        }
    }
    found
}

/// Writes the contents of these digests. `meter` counts their bytes.
pub fn write_contents<W: Write>(
    writer: &mut Writer<W>,
    contents: &Contents,
    digests: impl IntoIterator<Item = Digest>,
    meter: &WorkMeter,
) -> io::Result<()> {
    for digest in digests {
        let object = contents.read(&digest).map_err(io::Error::other)?;
        let (name, size) = (digest.to_string(), object.size());
        writer.section(Kind::Content, &name, size, &mut meter.reading(object))?;
    }
    Ok(())
}

/// Writes facts.
pub fn write_facts<W: Write>(writer: &mut Writer<W>, learned: &[JournalRecord]) -> io::Result<()> {
    let facts = facts::to_bytes(learned);
    writer.section(Kind::Facts, "", facts.len() as u64, &mut facts.as_slice())
}

/// Writes the annotations of a run with their history, and its signatures.
pub fn write_annotations<W: Write>(
    writer: &mut Writer<W>,
    home: &Home,
    history: &AnnotationHistory,
    run: &str,
) -> io::Result<()> {
    let records: Vec<_> = history.of_run(run).collect();
    let lines = annotations::to_lines(&records);
    write_notes(writer, run, &lines, &signature::of_run(home, run).concat())
}

/// Writes lines of annotations, and signatures one after the other.
pub(crate) fn write_notes<W: Write>(
    writer: &mut Writer<W>,
    run: &str,
    lines: &str,
    signatures: &str,
) -> io::Result<()> {
    write_text(writer, Kind::Annotations, run, lines)?;
    match signatures.is_empty() {
        true => Ok(()),
        false => write_text(writer, Kind::Signatures, run, signatures),
    }
}

/// Writes the facts and the label of an archive that was read, with further annotations and
/// signatures, and the log of one of its runs.
pub(crate) fn write_received<W: Write>(
    writer: &mut Writer<W>,
    parcel: &Parcel,
    log: &ReceivedLog,
    (lines, signatures): (&str, &str),
) -> io::Result<()> {
    let run = &log.run;
    write_facts(writer, &parcel.learned)?;
    let labels = parcel.labels.iter().filter(|(of, _)| of == run);
    for (_, text) in labels {
        write_text(writer, Kind::Label, run, text)?;
    }
    write_notes(writer, run, lines, signatures)?;
    let mut file = File::open(&log.file.path)?;
    let size = file.metadata()?.len();
    writer.section(Kind::Log, run, size, &mut file)
}

/// Writes the label, the annotations, the signatures and the log of a run. `meter` counts the bytes
/// of the log.
pub fn write_run<W: Write>(
    writer: &mut Writer<W>,
    home: &Home,
    history: &AnnotationHistory,
    run: &RunRecord,
    meter: &WorkMeter,
) -> io::Result<()> {
    let id = &run.header.id;
    let label = [run.name.as_deref(), run.note.as_deref()].map(Option::unwrap_or_default);
    write_text(writer, Kind::Label, id, &label.join("\n"))?;
    write_annotations(writer, home, history, id)?;
    let log = regular::open(home.log_path(id))?;
    let size = log.metadata()?.len();
    writer.section(Kind::Log, id, size, &mut meter.reading(log))
}

fn write_text<W: Write>(
    writer: &mut Writer<W>,
    kind: Kind,
    name: &str,
    text: &str,
) -> io::Result<()> {
    writer.section(kind, name, text.len() as u64, &mut text.as_bytes())
}

/// Writes an archive to a stream.
pub(crate) fn archive<'w>(
    out: &'w mut dyn Write,
    write: impl FnOnce(&mut Writer<&'w mut dyn Write>) -> io::Result<()>,
) -> Result<()> {
    let fail = |source| Error::Io {
        doing: "write",
        object: "an archive of runs".to_owned(),
        source,
    };
    let mut writer = Writer::new(out).map_err(fail)?;
    write(&mut writer)
        .and_then(|()| writer.finish()?.flush())
        .map_err(fail)
}
