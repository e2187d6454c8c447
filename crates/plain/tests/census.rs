//! Counts the plain programs of a directory, and the reasons of those that are not plain.
//!
//! `BACKSTORY_CENSUS=/usr/bin cargo test --release -p backstory-plain --test plain -- --ignored
//! --nocapture` prints the table of `docs/design/guard-auto.md`.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use backstory_plain::{Classifier, Entry, NotPlain};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Instant;

/// The reason without the names in it.
fn kind(reason: &NotPlain) -> String {
    match reason {
        NotPlain::Unseen { function, .. } => format!("uses {function}"),
        NotPlain::EntersKernel {
            entry: Entry::At(_),
            ..
        } => "enters the kernel".to_owned(),
        NotPlain::EntersKernel { .. } => "perhaps enters the kernel".to_owned(),
        other => {
            let text = format!("{other:?}");
            let end = text.find(|c: char| !c.is_alphanumeric());
            text[..end.unwrap_or(text.len())].to_owned()
        }
    }
}

#[test]
#[ignore = "prints a table about this machine"]
fn the_programs_of_a_directory() {
    let dir = std::env::var("BACKSTORY_CENSUS").unwrap_or("/usr/bin".to_owned());
    let files = fs::read_dir(&dir).unwrap();
    let files = files.filter_map(|entry| fs::canonicalize(entry.unwrap().path()).ok());
    let programs: BTreeSet<PathBuf> = files
        .filter(|path| {
            let meta = fs::metadata(path).unwrap();
            meta.is_file() && meta.permissions().mode() & 0o111 != 0
        })
        .collect();
    let mut classifier = Classifier::of_machine().unwrap();
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut times: Vec<(f64, String)> = Vec::new();
    for path in &programs {
        let began = Instant::now();
        let verdict = classifier.program(path);
        times.push((
            began.elapsed().as_secs_f64() * 1e3,
            path.display().to_string(),
        ));
        let reason = verdict.as_ref().err();
        let names = reasons
            .entry(reason.map_or("plain".to_owned(), kind))
            .or_default();
        let why = reason.map_or(String::new(), |reason| format!(" ({reason})"));
        names.push(format!("{}{why}", path.display()));
    }
    println!("{} programs of {dir}", programs.len());
    for (kind, names) in &reasons {
        let some = names.iter().filter(|_| kind != "plain").take(3);
        let some: Vec<&str> = some.map(String::as_str).collect();
        println!("{:5} {kind}: {}", names.len(), some.join(", "));
    }
    times.sort_by(|a, b| b.0.total_cmp(&a.0));
    let all: f64 = times.iter().map(|(time, _)| time).sum();
    println!("{all:.0} ms in all, median {:.2}", times[times.len() / 2].0);
    for (time, path) in times.iter().take(5) {
        println!("{time:8.1} ms {path}");
    }
}
