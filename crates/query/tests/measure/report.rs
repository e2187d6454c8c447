//! Times questions and prints tables.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use backstory_query::answer::Scope;
use backstory_query::{ancestry, influence};
use backstory_store::{Home, Maintenance, SqliteStore};

/// Processor time of this process. Unlike elapsed time, it does not count what other processes do
/// on the machine.
pub fn processor_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// A question about one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// `of`: what the file was made from.
    Ancestry,
    /// `of --lookups`: the same, with the files that were only looked at.
    AncestryWithLookups,
    /// `uses`: what was made from the file.
    Influence,
}

/// Asks about each of `paths` and prints the median times: on a store that was just opened, and on
/// one that has answered questions before.
pub fn time_questions(home: &Home, question: Question, paths: &[PathBuf]) {
    let scope = Scope {
        possible: true,
        lookups: question == Question::AncestryWithLookups,
        ..Scope::default()
    };
    let (mut warm, mut links, mut cold) = (Vec::new(), Vec::new(), Vec::new());
    let begun = processor_time();
    let mut store = SqliteStore::open(home).unwrap();
    for (i, path) in paths.iter().enumerate() {
        let just_opened = i % 20 == 0;
        if just_opened {
            store = SqliteStore::open(home).unwrap();
        }
        let clock = Instant::now();
        let lineage = match question {
            Question::Ancestry | Question::AncestryWithLookups => ancestry(&store, path, &scope),
            Question::Influence => influence(&store, path, &scope),
        };
        let taken = clock.elapsed();
        links.push(lineage.unwrap().links.len());
        if just_opened { &mut cold } else { &mut warm }.push(taken);
    }
    let mean = (processor_time() - begun) / paths.len() as u32;
    warm.sort();
    cold.sort();
    links.sort_unstable();
    println!(
        "{question:?}, {} files: warm median {:?}, 99 % {:?}; cold median {:?}; mean processor time {mean:?}; \
         {} to {} links, median {}",
        paths.len(),
        warm[warm.len() / 2],
        warm[warm.len() * 99 / 100],
        cold[cold.len() / 2],
        links[0],
        links[links.len() - 1],
        links[links.len() / 2],
    );
}

/// Prints how many bytes the store takes, and how they are divided among the tables.
pub fn print_room(home: &Home) {
    let stats = SqliteStore::open(home).unwrap().stats().unwrap();
    let edges = stats.counts.edges as f64;
    println!(
        "{} runs, {} processes, {} entities, {} edges; {} bytes, {:.2} per edge",
        stats.runs,
        stats.counts.activities,
        stats.counts.entities,
        stats.counts.edges,
        stats.bytes,
        stats.bytes as f64 / edges
    );
    let db = rusqlite::Connection::open(home.database_path()).unwrap();
    let tables =
        "SELECT name, sum(pgsize), sum(payload) FROM dbstat GROUP BY name ORDER BY 2 DESC LIMIT 10";
    let mut select = db.prepare(tables).unwrap();
    let mut rows = select.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let name: String = row.get(0).unwrap();
        let (size, payload): (f64, f64) = (row.get(1).unwrap(), row.get(2).unwrap());
        println!(
            "  {name:<28}{size:9} bytes, {:6.2} per edge, {:3.0} % of them used",
            size / edges,
            payload / size * 100.0
        );
    }
}
