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

fn security() -> String {
    std::fs::read_to_string(root().join("docs/security.md")).unwrap()
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
        .unwrap_or_else(|| panic!("the page has no table '{title}'"));
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

/// Libraries of the worker that read no format of files.
const NO_READERS: [&str; 11] = [
    "blake3",
    "bytes",
    "libc",
    "rustix",
    "serde",
    "serde_json",
    "sha1",
    "similar",
    "thiserror",
    // Filters and schemas of the user, which the worker evaluates.
    "cel",
    "jsonschema",
];

/// The packages that are linked into a package of the workspace, with the lines of `depth` levels.
fn linked(package: &str, depth: &[&str]) -> BTreeSet<String> {
    let features = Command::new(root().join("scripts/tested-features"))
        .output()
        .unwrap();
    let features = String::from_utf8(features.stdout).unwrap();
    let of_program = ["--features", features.trim()];
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["tree", "--locked", "--offline", "--edges=normal"])
        .args(["--prefix=none", "--format={lib}", "--package", package])
        .args(if package == "backstory" {
            &of_program[..]
        } else {
            &[]
        })
        .args(depth)
        .current_dir(root());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.replace('-', "_")).collect()
}

/// The worker reads formats with its direct dependencies. A table has each of them that the program
/// links, too, with a reason.
#[test]
fn the_program_links_no_reader_of_file_formats_but_those_that_the_page_explains() {
    let excused: BTreeMap<String, String> = table(&security(), "library")
        .into_iter()
        .flat_map(|row| {
            let names: Vec<String> = row[0].split(", ").map(str::to_owned).collect();
            names.into_iter().map(move |name| (name, row[1].clone()))
        })
        .collect();
    let program = linked("backstory", &[]);
    assert!(program.contains("backstory_inspection"), "{program:?}");
    let readers = linked("backstory-inspect", &["--depth=1"]);
    assert!(
        readers.contains("image") && readers.contains("lopdf"),
        "{readers:?}"
    );
    let name = |library: &str| library.replace('_', "-");
    let shared: BTreeSet<String> = readers
        .intersection(&program)
        .filter(|one| !one.starts_with("backstory") && !NO_READERS.contains(&one.as_str()))
        .map(|one| name(one))
        .collect();
    assert_eq!(
        shared,
        excused.keys().cloned().collect(),
        "docs/security.md"
    );
    // The crates that use such a library are those of the row.
    for (library, crates) in excused {
        let users: Vec<String> = manifests()
            .into_iter()
            .filter(|(user, text)| {
                let is_linked = user == "cli" || program.contains(&format!("backstory_{user}"));
                is_linked && text.lines().any(|line| is_dependency(line, &library))
            })
            .map(|(user, _)| user.replace("cli", "backstory"))
            .collect();
        let mut stated: Vec<&str> = crates.split(", ").collect();
        stated.sort_unstable();
        let mut users: Vec<&str> = users.iter().map(String::as_str).collect();
        users.sort_unstable();
        assert_eq!(stated, users, "docs/security.md: {library}");
    }
}

/// The manifest of each crate.
fn manifests() -> BTreeMap<String, String> {
    let crates = ranks().into_keys();
    crates
        .map(|name| {
            let path = root().join("crates").join(&name).join("Cargo.toml");
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect()
}

fn is_dependency(line: &str, library: &str) -> bool {
    let rest = line.strip_prefix(library);
    rest.is_some_and(|rest| rest.starts_with([' ', '.']))
}

/// A crate that writes tables could read them with the same library.
#[test]
fn only_the_worker_reads_tables_and_archives_of_other_programs() {
    let readers = [
        ("SerializedFileReader", &["inspect"][..]),
        ("ParquetMetaDataReader", &["inspect"]),
        ("arrow_ipc", &["inspect"]),
        ("tar::Archive", &["inspect", "packages"]),
        (
            "GzDecoder",
            &["import", "inspect", "packages", "serve", "session"],
        ),
    ];
    for (word, allowed) in readers {
        let mut found = BTreeSet::new();
        for name in ranks().into_keys() {
            let mut directories = vec![root().join("crates").join(&name).join("src")];
            while let Some(directory) = directories.pop() {
                for entry in std::fs::read_dir(directory).into_iter().flatten() {
                    let path = entry.unwrap().path();
                    if path.is_dir() {
                        directories.push(path);
                    } else if std::fs::read_to_string(&path).is_ok_and(|text| text.contains(word)) {
                        found.insert(name.clone());
                    }
                }
            }
        }
        assert_eq!(found.iter().collect::<Vec<_>>(), allowed, "{word}");
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
