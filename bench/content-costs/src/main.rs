//! Measures parts of the work on contents, for `backstory-bench hashing` and `naming`.
//!
//! | arguments | what is measured |
//! | --- | --- |
//! | `hash ROUNDS` | BLAKE3 of one buffer, by one thread and by several |
//! | `name ROUNDS DIR WORKTREE` | storing the files of a git work tree, and naming them |
//!
//! `name` makes its stores in the directory DIR. Both print CSV: each line has the wall time of a
//! measurement, and the processor time of all threads. All ways take turns.

mod hashing;
mod meter;
mod naming;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: content-costs hash ROUNDS | name ROUNDS DIR WORKTREE";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("content-costs: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<(), Box<dyn Error>> {
    match words {
        ["--version"] => println!("content-costs {}", env!("CARGO_PKG_VERSION")),
        ["hash", rounds] => hashing::measure(rounds.parse()?),
        ["name", rounds, stores, tree] => {
            naming::measure(rounds.parse()?, Path::new(stores), Path::new(tree))?
        }
        _ => return Err(USAGE.into()),
    }
    Ok(())
}
