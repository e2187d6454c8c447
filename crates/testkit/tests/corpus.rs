//! The corpus itself, without backstory: its commands do the same every time, alone and under
//! strace.

#[path = "../../cli/tests/oracle/corpus.rs"]
mod oracle_corpus;

use std::collections::HashSet;
use std::io;
use std::path::Path;

use backstory_testkit::need::{needs, say};
use backstory_testkit::oracle::{Bench, Case};
use backstory_testkit::snapshot;
use backstory_testkit::stage::Stage;
use backstory_testkit::strace::End;
use backstory_testkit::{fixtures, oracle};

fn bench() -> Bench {
    let stage = Stage::new("/bin/true").expect("a place");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for fixture in fixtures::build(target).expect("fixtures compile") {
        stage.install(&fixture).expect("a fixture is staged");
    }
    Bench::new(stage)
}

fn complaints(bench: &Bench, case: &Case) -> Vec<String> {
    let lines = compare(bench, case).unwrap_or_else(|error| vec![error.to_string()]);
    lines
        .iter()
        .map(|l| format!("{}: {l}", case.name))
        .collect()
}

fn compare(bench: &Bench, case: &Case) -> io::Result<Vec<String>> {
    let plain = bench.plain(case)?;
    let (traced, trace) = bench.traced(case)?;
    let mut lines = Vec::new();
    if plain.status != traced.status {
        lines.push(format!(
            "status {} alone, {} traced",
            plain.code(),
            traced.code()
        ));
    }
    if !case.restless {
        lines.extend(snapshot::differences(&plain.files, &traced.files));
        if (&plain.stdout, &plain.stderr) != (&traced.stdout, &traced.stderr) {
            lines.push(format!(
                "output {:?} alone, {:?} traced",
                shown(&plain),
                shown(&traced)
            ));
        }
    }
    if plain.stdout.is_empty() && trace.facts.len() < 4 {
        lines.push("a trace without facts".into());
    }
    if trace.processes.iter().any(|p| p.end == End::Unknown) {
        lines.push("a process without an end".into());
    }
    if std::env::var_os("BACKSTORY_ORACLE_SHOW").is_some() {
        say(&format!(
            "{}: {} {}",
            case.name,
            plain.code(),
            shown(&plain)
        ));
        for fact in &trace.facts {
            let names: Vec<_> = fact
                .names
                .iter()
                .map(|n| String::from_utf8_lossy(n))
                .collect();
            let kind = if fact.required {
                "required"
            } else {
                "permitted"
            };
            say(&format!(
                "  {kind} {:?} {names:?} ({})",
                fact.words, fact.call
            ));
        }
        for process in &trace.processes {
            say(&format!("  {process:?}"));
        }
    }
    Ok(lines)
}

fn shown(outcome: &oracle::Outcome) -> String {
    let text = [outcome.stdout.as_slice(), outcome.stderr.as_slice()].concat();
    String::from_utf8_lossy(&text).chars().take(300).collect()
}

/// A part of them. A command that differs would also differ when it is recorded, for which all are
/// tested.
#[test]
fn commands_of_the_corpus_do_the_same_every_time() {
    do_the_same(oracle_corpus::one_of(4));
}

#[test]
#[ignore = "half a minute, as the same test of fewer commands"]
fn every_command_of_the_corpus_does_the_same_every_time() {
    do_the_same(oracle_corpus::all());
}

fn do_the_same(cases: impl Iterator<Item = &'static Case>) {
    if !needs("the corpus", &["strace"]) {
        return;
    }
    let bench = bench();
    let only = std::env::var("BACKSTORY_ORACLE_ONLY").unwrap_or_default();
    let chosen = cases.filter(|c| c.name.contains(&only) && needs(c.name, c.needs));
    let wrong: Vec<String> = chosen.flat_map(|case| complaints(&bench, case)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_corpus_has_sixty_commands_with_names_of_their_own() {
    let names: Vec<_> = oracle_corpus::all().map(|c| c.name).collect();
    assert!(names.len() >= 60);
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
}
