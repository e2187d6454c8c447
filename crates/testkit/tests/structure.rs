//! The structure of the source tree is as `ARCHITECTURE.md` says.
//!
//! The tables of that page are parsed, so that the page is the only statement of ranks and
//! invariants.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn architecture() -> String {
    std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap()
}

/// The rows of the first table whose first column has this title, cell by cell, without backticks.
fn table(page: &str, title: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Vec<String> {
        let line = line.trim().trim_matches('|');
        line.split(" | ")
            .map(|cell| cell.trim().replace('`', ""))
            .collect()
    };
    let mut lines = page.lines();
    lines
        .find(|line| line.starts_with('|') && cells(line)[0] == title)
        .unwrap_or_else(|| panic!("ARCHITECTURE.md has no table '{title}'"));
    lines
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .map(cells)
        .collect()
}

/// The rank of each crate; `None` for crates that only tests use.
fn ranks() -> BTreeMap<String, Option<u32>> {
    let rows = table(&architecture(), "rank").into_iter();
    rows.map(|row| (row[1].clone(), row[0].parse().ok()))
        .collect()
}

/// The name of a package's directory below `crates/`.
fn directory(package: &Value) -> String {
    let manifest = Path::new(package["manifest_path"].as_str().unwrap());
    let directory = manifest.parent().unwrap().file_name().unwrap();
    directory.to_str().unwrap().to_owned()
}

/// Each crate of the workspace, with the crates that its build needs. Dependencies of tests are
/// left out.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--format-version=1",
            "--locked",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let needs = |package: &Value| -> BTreeSet<String> {
        let all = package["dependencies"].as_array().unwrap().iter();
        let built = all.filter(|one| one["kind"] != "dev" && !one["path"].is_null());
        built
            .map(|one| {
                let path = Path::new(one["path"].as_str().unwrap());
                path.file_name().unwrap().to_str().unwrap().to_owned()
            })
            .collect()
    };
    packages
        .iter()
        .map(|package| (directory(package), needs(package)))
        .collect()
}

#[test]
fn a_crate_depends_on_crates_of_a_lower_rank_only() {
    let (ranks, dependencies) = (ranks(), dependencies());
    let crates: BTreeSet<_> = dependencies.keys().collect();
    assert_eq!(
        ranks.keys().collect::<BTreeSet<_>>(),
        crates,
        "the table and the workspace"
    );
    let mut wrong = Vec::new();
    for (name, needed) in &dependencies {
        for other in needed {
            let lower = match (ranks[name], ranks[other]) {
                (Some(rank), Some(below)) => below < rank,
                // A crate for tests may use any crate. No crate may be built with one.
                (None, Some(_)) => true,
                (_, None) => false,
            };
            if !lower {
                wrong.push(format!(
                    "{name} ({:?}) needs {other} ({:?})",
                    ranks[name], ranks[other]
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `graph`, `store`, `query` and the crates above them work on any log, however it was captured.
#[test]
fn the_crates_from_graph_to_replay_need_nothing_of_the_capture_side() {
    let dependencies = dependencies();
    for name in [
        "graph", "store", "query", "contents", "workflow", "currency", "export", "replay",
    ] {
        for capture in ["arena", "guard", "preserve", "session", "recorder", "sys"] {
            assert!(
                !dependencies[name].contains(capture),
                "{name} needs {capture}"
            );
        }
    }
}

#[test]
fn no_two_files_of_a_crate_import_each_other() {
    let output = Command::new("python3")
        .arg(root().join("scripts/lint-cycles"))
        .args(ranks().into_keys())
        .output()
        .unwrap();
    let found = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{found}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn every_invariant_names_a_test_that_exists() {
    let rows = table(&architecture(), "invariant");
    assert!(rows.len() > 10, "{rows:?}");
    for row in rows {
        let [invariant, test, file] = row.as_slice() else {
            panic!("{row:?}");
        };
        let source = std::fs::read_to_string(root().join(file));
        let source = source.unwrap_or_else(|error| panic!("{invariant}: {file}: {error}"));
        // The keyword of Python, or that of Rust.
        let names = ["def", "fn"].map(|keyword| format!("{keyword} {test}("));
        assert!(
            names.iter().any(|name| source.contains(name)),
            "{invariant}: no test {test} in {file}"
        );
    }
}

#[test]
fn every_path_that_the_architecture_names_exists() {
    let page = architecture();
    let missing: Vec<&str> = page
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|code| code.starts_with("crates/") && !code.contains(' '))
        .filter(|path| !root().join(path).exists() && !root().join(format!("{path}.rs")).exists())
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
