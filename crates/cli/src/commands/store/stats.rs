//! `store stats`: prints how much is in the store, and what takes the space.

use backstory_deep::{DeepLog, Volume};
use backstory_store::{ContentFacts, Maintenance, StoreEngine};
use std::fs;
use std::io::Write;
use std::path::Path;

use backstory_store::facts::{Availability, Fact};
use backstory_vocabulary::Word;

use super::open_contents;
use crate::args::store::StoreStatsArgs;
use crate::commands::{Outcome, answer};
use crate::current_store::CurrentStore;
use crate::error::Failure;
use crate::json::{self, Value};
use crate::text::when::size;

/// How much smaller the stored contents are than the versions that the store itself holds.
fn ratio(versions: u64, contents: &backstory_contents::ContentsSize) -> f64 {
    match contents.stored {
        0 => 1.0,
        stored => versions.saturating_sub(contents.elsewhere_raw) as f64 / stored as f64,
    }
}

/// Prints the sizes.
pub fn run(args: StoreStatsArgs, store: Option<&Path>) -> Outcome {
    let current = CurrentStore::open(store)?;
    let graph = current.store.stats()?;
    let contents = match open_contents(&current.home)? {
        Some(contents) => contents.stats()?,
        None => backstory_contents::ContentsSize::default(),
    };
    let RunBytes {
        logs,
        deep_logs,
        preserved,
    } = sizes(&current.home.runs_dir());
    let facts_bytes = fs::metadata(current.home.facts_path()).map_or(0, |meta| meta.len());
    let VersionCounts {
        kept,
        packaged,
        missing,
        bytes: versions,
    } = VersionCounts::of(&current.store.facts()?);
    let ratio = ratio(versions, &contents);
    let counts = graph.counts;
    let engine = StoreEngine::of(&current.home)?;
    let volume = volume_of(&current.home.runs_dir(), args.deep)?;
    answer(|out| match args.json {
        true => json::object(
            out,
            vec![
                ("runs", graph.runs.into()),
                ("processes", counts.activities.into()),
                ("entities", counts.entities.into()),
                ("edges", counts.edges.into()),
                ("graph_bytes", graph.bytes.into()),
                ("engine", engine.word().into()),
                ("log_bytes", logs.into()),
                ("deep_log_bytes", deep_logs.into()),
                ("deep", volume.map_or(Value::Null, volume_json)),
                ("preserved_bytes", preserved.into()),
                ("facts_bytes", facts_bytes.into()),
                (
                    "contents",
                    Value::Object(vec![
                        ("objects", contents.objects.into()),
                        ("bytes", contents.raw.into()),
                        ("stored_bytes", contents.stored.into()),
                        ("disk_bytes", contents.disk.into()),
                        ("packs", contents.packs.into()),
                        ("elsewhere", contents.elsewhere.into()),
                        ("elsewhere_bytes", contents.elsewhere_raw.into()),
                        ("versions_kept", kept.into()),
                        ("versions_packaged", packaged.into()),
                        ("versions_missing", missing.into()),
                        ("versions_bytes", versions.into()),
                    ]),
                ),
            ],
        ),
        false => {
            let mut line = |key: &str, value: String| writeln!(out, "{key:<10} {value}");
            if engine != StoreEngine::Sqlite {
                line("engine", engine.to_string())?;
            }
            line("runs", graph.runs.to_string())?;
            line(
                "graph",
                format!(
                    "{} ({} processes, {} versions, {} edges)",
                    size(graph.bytes),
                    counts.activities,
                    counts.entities,
                    counts.edges
                ),
            )?;
            line("logs", size(logs))?;
            if deep_logs > 0 {
                line("deep logs", size(deep_logs))?;
            }
            if let Some(volume) = volume {
                line("deep I/O", volume_text(volume))?;
            }
            if preserved > 0 {
                line(
                    "preserved",
                    format!("{} (not yet among the contents)", size(preserved)),
                )?;
            }
            line("facts", size(facts_bytes))?;
            line("contents", contents_text(&contents))?;
            if contents.elsewhere > 0 {
                line("elsewhere", elsewhere_text(&contents))?;
            }
            line(
                "versions",
                format!(
                    "{kept} stored ({}, {ratio:.1} times the space they take), {packaged} in packages, {missing} not stored",
                    size(versions)
                ),
            )
        }
    })
}

fn volume_json(volume: Volume) -> Value {
    Value::Object(vec![
        ("record_bytes", volume.records.into()),
        ("stored_io_bytes", volume.stored.into()),
        ("io_bytes", volume.moved.into()),
    ])
}

fn contents_text(contents: &backstory_contents::ContentsSize) -> String {
    format!(
        "{} ({} objects of {})",
        size(contents.disk),
        contents.objects,
        size(contents.raw)
    )
}

fn elsewhere_text(contents: &backstory_contents::ContentsSize) -> String {
    let noun = if contents.elsewhere == 1 {
        "content"
    } else {
        "contents"
    };
    format!(
        "{} {noun} of {} left in other stores, such as git-annex or the cache of DVC",
        contents.elsewhere,
        size(contents.elsewhere_raw)
    )
}

fn volume_text(volume: Volume) -> String {
    format!(
        "{} ({} of records before compression, {} of them I/O)",
        size(volume.moved),
        size(volume.records),
        size(volume.stored)
    )
}

/// Reads all deep logs, if they are asked for.
fn volume_of(runs: &Path, asked: bool) -> Result<Option<Volume>, Failure> {
    if !asked {
        return Ok(None);
    }
    let mut volume = Volume::default();
    for entry in fs::read_dir(runs).into_iter().flatten().flatten() {
        if entry.path().extension().is_some_and(|end| end == "deep") {
            let log = DeepLog::open(entry.path());
            let log = log.map_err(|error| Failure::not_found(error.to_string()))?;
            volume += log.volume();
        }
    }
    Ok(Some(volume))
}

/// The number of versions by where their contents are.
struct VersionCounts {
    kept: usize,
    packaged: usize,
    missing: usize,
    /// The bytes of all stored versions, if each were a copy.
    bytes: u64,
}

impl VersionCounts {
    fn of(facts: &[Fact]) -> VersionCounts {
        let held = |wanted: fn(&Availability) -> bool| {
            facts
                .iter()
                .filter(|fact| wanted(&fact.availability))
                .count()
        };
        let stored = facts.iter().filter(|fact| fact.availability.is_stored());
        VersionCounts {
            kept: held(Availability::is_stored),
            packaged: held(|held| matches!(held, Availability::Package(_))),
            missing: held(|held| matches!(held, Availability::Missing(_))),
            bytes: stored.map(|fact| fact.ident.size.max(0) as u64).sum(),
        }
    }
}

/// Bytes of the files of runs.
#[derive(Debug, Default)]
struct RunBytes {
    logs: u64,
    deep_logs: u64,
    /// Of preserved files that wait to be stored.
    preserved: u64,
}

fn sizes(runs: &Path) -> RunBytes {
    let mut bytes = RunBytes::default();
    for entry in fs::read_dir(runs).into_iter().flatten().flatten() {
        let Ok(meta) = entry.metadata() else { continue };
        if meta.is_dir() {
            let files = fs::read_dir(entry.path()).into_iter().flatten().flatten();
            bytes.preserved += files
                .filter_map(|file| file.metadata().ok())
                .map(|meta| meta.len())
                .sum::<u64>();
        } else if entry.path().extension().is_some_and(|end| end == "deep") {
            bytes.deep_logs += meta.len();
        } else {
            bytes.logs += meta.len();
        }
    }
    bytes
}
