//! Ingestion of logs, in its parts: reading the log, folding it, and the engine's own part.
//!
//! Each part is measured by a pass of its own over the same logs. The engine's own part is the
//! processor time of a whole ingestion, less that of reading and folding alone.

use std::ops::AddAssign;
use std::path::Path;
use std::time::Duration;

use backstory_eventlog::event::{Bytes, Time};
use backstory_eventlog::{Identities, Log};
use backstory_files::Ident;
use backstory_graph::{self as graph, FinalState, memory::NullSink};
use backstory_store::{EngineOptions, Home, StoreEngine};
use backstory_vocabulary::Word;

use crate::csv;
use crate::engines::{list, made, measured};
use crate::report::processor_time;

/// The identities in a log. Preserved contents are not measured.
struct LoggedIdentities(Identities);

impl FinalState for LoggedIdentities {
    fn identity(&self, path: &[u8], follow: bool) -> Option<Option<Ident>> {
        self.0.of(path, follow)
    }

    fn preserved(&self, _: &[u8], _: Time) -> Option<(Time, Ident)> {
        None
    }

    fn interpreter(&self, path: &[u8]) -> Option<Bytes> {
        self.0.interpreter(path).map(Into::into)
    }

    fn link_text(&self, path: &[u8]) -> Option<Bytes> {
        self.0.link_text(path).map(Into::into)
    }
}

/// Processor times.
#[derive(Default, Clone, Copy)]
struct IngestionParts {
    read: Duration,
    folded: Duration,
    whole: Duration,
    edges: u64,
    bytes: u64,
}

impl AddAssign for IngestionParts {
    fn add_assign(&mut self, other: IngestionParts) {
        self.read += other.read;
        self.folded += other.folded;
        self.whole += other.whole;
        self.edges += other.edges;
        self.bytes += other.bytes;
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let begun = processor_time();
    work();
    processor_time() - begun
}

/// Reads a log without folding it, and folds it without a store.
fn read_and_fold(path: &Path) -> IngestionParts {
    let read = timed(|| {
        let log = Log::open(path).unwrap();
        assert!(log.events().count() > 0, "{}", path.display());
    });
    let folded = timed(|| {
        let log = Log::open(path).unwrap();
        let known = LoggedIdentities(log.identities());
        graph::fold(log.header(), log.end(), log.events(), &known, &mut NullSink).unwrap();
    });
    IngestionParts {
        read,
        folded,
        bytes: std::fs::metadata(path).unwrap().len(),
        ..IngestionParts::default()
    }
}

/// Takes a log into an engine.
fn ingest(store: &mut dyn backstory_store::Store, path: &Path) -> IngestionParts {
    let whole = timed(|| {
        let log = Log::open(path).unwrap();
        let known = LoggedIdentities(log.identities());
        let end = log.end().cloned().unwrap_or_default();
        store
            .append(log.header(), &end, 0, &mut |sink| {
                graph::fold(log.header(), Some(&end), log.events(), &known, sink)
            })
            .unwrap();
    });
    IngestionParts {
        whole,
        ..IngestionParts::default()
    }
}

#[test]
#[ignore = "a measurement, of the logs of a store that BACKSTORY_MEASURE_STORE names"]
fn the_parts_of_ingestion_are_measured() {
    let Some(from) = std::env::var_os("BACKSTORY_MEASURE_STORE") else {
        eprintln!("skipped: BACKSTORY_MEASURE_STORE does not name a store");
        return;
    };
    let from = Home::open_to_read(Path::new(&from)).unwrap();
    let logs = std::fs::read_dir(from.runs_dir()).unwrap();
    let mut logs: Vec<_> = logs.map(|entry| entry.unwrap().path()).collect();
    logs.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    println!("engine      log MB      edges  read s  fold s whole s engine s  edges/s own B/edge");
    for round in 0..list("BACKSTORY_MEASURE_ROUNDS", "5")[0] {
        for engine in measured() {
            let tmp = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
            let home = Home::open(tmp.path()).unwrap();
            let Some(mut store) = made(&home, engine, &EngineOptions::default()) else {
                continue;
            };
            let mut parts = IngestionParts::default();
            for log in &logs {
                parts += read_and_fold(log);
                parts += ingest(&mut *store, log);
            }
            let stats = store.stats().unwrap();
            parts.edges = stats.counts.edges;
            print(engine, round, &parts, stats.bytes);
        }
    }
}

fn print(engine: StoreEngine, round: u64, parts: &IngestionParts, stored: u64) {
    let own = parts.whole.saturating_sub(parts.folded).as_secs_f64();
    let read = parts.read.as_secs_f64();
    let fold = parts.folded.saturating_sub(parts.read).as_secs_f64();
    let whole = parts.whole.as_secs_f64();
    let (engine, edges, bytes) = (engine.word(), parts.edges, parts.bytes);
    println!(
        "{engine:<10} {:>7.1} {edges:>10} {read:>7.3} {fold:>7.3} {whole:>7.3} {own:>8.3} {:>12.0} \
         {:>6.2}  round {round}",
        bytes as f64 / 1e6,
        edges as f64 / own,
        stored as f64 / edges as f64,
    );
    csv::add(
        "engine,round,log_bytes,edges,graph_bytes,read_cpu_s,fold_cpu_s,engine_cpu_s,whole_cpu_s",
        &format!(
            "{engine},{round},{bytes},{edges},{stored},{read:.3},{fold:.3},{own:.3},{whole:.3}"
        ),
    );
}
