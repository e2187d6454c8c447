//! Compares the engines: the same builds in each, by size of the store, memory, and whether each
//! commit waits for the disk.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use backstory_query::answer::Scope;
use backstory_query::{ancestry, influence};
use backstory_store::{
    ActivityKey, ConnectionFile, DatabaseFiles, EngineOptions, Error, Home, Store, StoreEngine,
    VersionMatch, open_engine,
};
use backstory_vocabulary::Word;

use crate::synthetic::{self, PROJECTS};
use crate::{csv, recorded};

/// How often each look-up is timed.
const LOOKUPS: usize = 200;

/// The numbers of a list with commas in a variable.
pub fn list(variable: &str, default: &str) -> Vec<u64> {
    let text = std::env::var(variable).unwrap_or_else(|_| default.to_owned());
    text.split(',').map(|one| one.parse().unwrap()).collect()
}

/// The engines that are measured.
pub fn measured() -> impl Iterator<Item = StoreEngine> {
    let wanted = std::env::var("BACKSTORY_MEASURE_ENGINES").unwrap_or_default();
    let wanted: Vec<String> = wanted.split_terminator(',').map(str::to_owned).collect();
    let all = StoreEngine::ALL.iter().copied();
    all.filter(move |engine| wanted.is_empty() || wanted.iter().any(|one| one == engine.word()))
}

#[test]
#[ignore = "a measurement, of some minutes"]
fn the_engines_are_compared() {
    println!(
        "engine   MB synced     edges   ingest s  cpu s  edges/s     bytes B/edge \
         | open, path, entity, process, version us | of, uses ms"
    );
    for edges in list("BACKSTORY_MEASURE_SIZES", "500000,2000000") {
        for memory in list("BACKSTORY_MEASURE_MEMORY", "32") {
            for synced in [false, true] {
                for engine in measured() {
                    let options = EngineOptions {
                        memory: Some((memory as usize) << 20),
                        synced,
                        examined: false,
                    };
                    measure(engine, &options, edges);
                }
            }
        }
    }
}

/// An empty store of an engine. `None`, with a line, if it cannot be measured here.
pub fn made(home: &Home, engine: StoreEngine, options: &EngineOptions) -> Option<Box<dyn Store>> {
    if engine == StoreEngine::Postgresql
        && let Ok(connection) = std::env::var("BACKSTORY_MEASURE_POSTGRESQL")
    {
        let file = ConnectionFile::new(&connection).unwrap();
        file.write(DatabaseFiles::of(home, engine).path()).unwrap();
    }
    match open_engine(home, engine, options) {
        Err(Error::EngineNotBuilt { .. } | Error::NoConnection { .. }) => {
            let engine = engine.word();
            println!("{engine:<10} is not in this build, or has no server");
            None
        }
        store => Some(store.unwrap()),
    }
}

#[test]
#[ignore = "a measurement, of a store that BACKSTORY_MEASURE_STORE names"]
fn the_engines_take_in_recorded_runs_with_each_size_of_memory() {
    let Some(from) = std::env::var_os("BACKSTORY_MEASURE_STORE") else {
        eprintln!("skipped: BACKSTORY_MEASURE_STORE does not name a store");
        return;
    };
    let from = Home::open_to_read(Path::new(&from)).unwrap();
    println!("engine       MB      edges  ingest s  cpu s   edges/s B/edge");
    for round in 0..list("BACKSTORY_MEASURE_ROUNDS", "1")[0] {
        for memory in list("BACKSTORY_MEASURE_MEMORY", "4,8,16,32,64,128") {
            for engine in measured() {
                let options = EngineOptions {
                    memory: Some((memory as usize) << 20),
                    ..EngineOptions::default()
                };
                take_in(&from, engine, &options, round);
            }
        }
    }
}

fn take_in(from: &Home, engine: StoreEngine, options: &EngineOptions, round: u64) {
    let tmp = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let home = Home::open(tmp.path()).unwrap();
    let Some(mut store) = made(&home, engine, options) else {
        return;
    };
    let filled = recorded::copy(from, 1, &mut *store);
    let (engine, memory) = (engine.word(), options.memory.unwrap_or_default() >> 20);
    let (elapsed, processor) = (filled.elapsed.as_secs_f64(), filled.processor.as_secs_f64());
    let (edges, bytes) = (filled.edges, store.stats().unwrap().bytes);
    println!(
        "{engine:<10} {memory:>4} {edges:>10} {elapsed:>9.3} {processor:>6.2} {:>9.0} {:>6.2}",
        edges as f64 / elapsed,
        bytes as f64 / edges as f64,
    );
    csv::add(
        "engine,memory_mb,round,edges,graph_bytes,ingest_s,cpu_s",
        &format!("{engine},{memory},{round},{edges},{bytes},{elapsed:.3},{processor:.3}"),
    );
}

fn measure(engine: StoreEngine, options: &EngineOptions, edges: u64) {
    let tmp = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let home = Home::open(tmp.path()).unwrap();
    let Some(mut store) = made(&home, engine, options) else {
        return;
    };
    let filled = synthetic::fill(&mut *store, edges);
    drop(store);
    let clock = Instant::now();
    let store = open_engine(&home, engine, options).unwrap();
    let opened = clock.elapsed();
    let bytes = store.stats().unwrap().bytes;
    let looked = time_lookups(&*store);
    let asked = time_questions(&*store);
    println!(
        "{:<7} {:>3} {:<5} {:>10} {:>9.3} {:>6.2} {:>8.0} {:>11} {:>6.2} | {:.0} {} | {}",
        engine.word(),
        options.memory.unwrap_or_default() >> 20,
        options.synced,
        filled.edges,
        filled.elapsed.as_secs_f64(),
        filled.processor.as_secs_f64(),
        filled.edges as f64 / filled.elapsed.as_secs_f64(),
        bytes,
        bytes as f64 / filled.edges as f64,
        opened.as_secs_f64() * 1e6,
        medians(looked, 1e6),
        medians(asked, 1e3),
    );
}

fn medians<const N: usize>(mut times: [Vec<Duration>; N], unit: f64) -> String {
    let median = |times: &mut Vec<Duration>| {
        times.sort();
        format!("{:.1}", times[times.len() / 2].as_secs_f64() * unit)
    };
    times.each_mut().map(median).join(" ")
}

/// Times look-ups by path, by number of an entity and of a process, and by version, spread over the
/// runs. Each is the first of its kind in the run.
fn time_lookups(store: &dyn Store) -> [Vec<Duration>; 4] {
    let mut times = [const { Vec::new() }; 4];
    let runs = store.runs().unwrap();
    for n in 0..LOOKUPS {
        let run = &runs[n * runs.len() / LOOKUPS];
        let path = path(n as u64, &format!("unit{}.o", n % 10));
        let mut clock = Instant::now();
        let mut lap = |kind: usize| {
            times[kind].push(clock.elapsed());
            clock = Instant::now();
        };
        let found = store.at_path(path.as_os_str().as_encoded_bytes()).unwrap();
        assert!(
            !found.is_empty(),
            "a store of all projects has 500,000 edges"
        );
        lap(0);
        let entity = store.entity(found[n % found.len()]).unwrap();
        store.touching(found[n % found.len()]).unwrap();
        lap(1);
        let last = run.counts.activities - 1;
        let number = (n as u64 * 7919) % (last + 1);
        let key = ActivityKey((u64::from(run.key.0) << 32) | number);
        store.activity(key).unwrap();
        store.stream(key).unwrap();
        lap(2);
        if let Some(ident) = entity.ident {
            store.same(&ident, VersionMatch::Made).unwrap();
            lap(3);
        }
    }
    times
}

/// Times `of` and `uses`.
fn time_questions(store: &dyn Store) -> [Vec<Duration>; 2] {
    let mut times = [const { Vec::new() }; 2];
    let scope = Scope {
        possible: true,
        ..Scope::default()
    };
    for n in 0..LOOKUPS as u64 / 4 {
        let clock = Instant::now();
        let asked = path(n, &format!("lib{}.a", n / PROJECTS % 10));
        ancestry(store, &asked, &scope).unwrap();
        times[0].push(clock.elapsed());
        let clock = Instant::now();
        influence(store, &path(n, &format!("unit{}.o", n % 10)), &scope).unwrap();
        times[1].push(clock.elapsed());
    }
    times
}

fn path(n: u64, name: &str) -> PathBuf {
    let project = format!("/home/user/src/project{}/build", n % PROJECTS);
    Path::new(&project).join(name)
}
