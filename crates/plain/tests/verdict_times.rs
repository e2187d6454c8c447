//! Measures the processor time of a verdict about a program, with all its libraries.
//!
//! `BACKSTORY_MEASURE_CSV="$PWD/FILE" cargo test --release -p backstory-plain --test plain
//! -- --ignored --nocapture` prints the last row of the table of times in
//! `docs/design/guard-auto.md`. It keeps each round in FILE.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use backstory_plain::Classifier;
use backstory_testkit::need::{find, skipped};
use rustix::time::{ClockId, clock_gettime};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const PROGRAMS: [&str; 6] = ["true", "gcc", "bash", "git", "python3", "gdb"];
const ROUNDS: usize = 15;

/// A program, and the ms of each round.
struct Timed {
    name: &'static str,
    path: PathBuf,
    times: Vec<f64>,
    verdict: &'static str,
}

/// Processor time of this thread so far, in ms.
fn used() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
}

impl Timed {
    /// The program of this name on the search path.
    fn found(name: &'static str) -> Option<Timed> {
        let path = find(name);
        if path.is_none() {
            skipped("the time of a verdict", &format!("needs {name}"));
        }
        path.map(|path| Timed {
            name,
            path,
            times: Vec::new(),
            verdict: "",
        })
    }

    /// A classifier that knows nothing yet examines the program.
    fn examine(&mut self) {
        let mut classifier = Classifier::of_machine().unwrap();
        let began = used();
        let verdict = classifier.program(&self.path);
        self.times.push(used() - began);
        self.verdict = if verdict.is_ok() {
            "plain"
        } else {
            "not plain"
        };
    }
}

fn csv(all: &[Timed]) -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let build = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    let mut text = format!("# Linux-{}; a {build} build\n", kernel.trim());
    text.push_str("program,round,verdict,cpu_ms\n");
    for one in all {
        for (round, time) in one.times.iter().enumerate() {
            writeln!(text, "{},{round},{},{time:.3}", one.name, one.verdict).unwrap();
        }
    }
    text
}

#[test]
#[ignore = "prints times of this machine"]
fn verdicts_about_programs() {
    let mut all: Vec<Timed> = PROGRAMS.into_iter().filter_map(Timed::found).collect();
    for _ in 0..ROUNDS {
        all.iter_mut().for_each(Timed::examine);
    }
    for one in &all {
        let least = one.times.iter().copied().fold(f64::INFINITY, f64::min);
        println!("{:8} {least:6.1} ms, {}", one.name, one.verdict);
    }
    if let Some(file) = std::env::var_os("BACKSTORY_MEASURE_CSV") {
        let file = Path::new(&file);
        // Tests run in the directory of their package.
        assert!(file.is_absolute(), "BACKSTORY_MEASURE_CSV is not absolute");
        std::fs::write(file, csv(&all)).unwrap();
    }
}
