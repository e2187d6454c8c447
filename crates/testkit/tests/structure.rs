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

/// The crates of the workspace, as cargo describes them.
fn packages() -> Vec<Value> {
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
    metadata["packages"].as_array().unwrap().clone()
}

/// The texts of a crate's sources.
fn sources(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut directories = vec![root().join("crates").join(name).join("src")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => directories.push(path),
                false => found.extend(std::fs::read_to_string(&path)),
            }
        }
    }
    found
}

/// Each crate of the workspace, with the crates that its build needs. Dependencies of tests are
/// left out.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
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
    packages()
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
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["tree", "--locked", "--offline", "--edges=normal"])
        .args(["--prefix=none", "--format={lib}", "--package", package])
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
                let own = format!("backstory_{}", user.replace('-', "_"));
                let is_linked = user == "cli" || program.contains(&own);
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
        let uses = |name: &String| sources(name).iter().any(|text| text.contains(word));
        let found: Vec<String> = ranks().into_keys().filter(uses).collect();
        assert_eq!(found, allowed, "{word}");
    }
}

fn has_unit_tests(source: &str) -> bool {
    source.lines().any(|line| line.trim() == "#[test]")
}

/// True if a comment of documentation contains Rust code. As for rustdoc, that is text between
/// lines of backticks. It is also text that is indented by four spaces, at the beginning or after
/// an empty line.
fn has_examples(source: &str) -> bool {
    let rust = ["", "rust", "no_run", "should_panic", "compile_fail"];
    let mut inside = false;
    let mut blank = true;
    for line in source.lines().map(str::trim_start) {
        let comment = line.strip_prefix("///").or(line.strip_prefix("//!"));
        let Some(comment) = comment else {
            (inside, blank) = (false, true);
            continue;
        };
        let comment = comment.strip_prefix(' ').unwrap_or(comment);
        if let Some(language) = comment.trim_start().strip_prefix("```") {
            if !inside && language.split(',').all(|word| rust.contains(&word)) {
                return true;
            }
            inside = !inside;
        } else if !inside && blank && comment.starts_with("    ") {
            return true;
        }
        blank = comment.trim().is_empty();
    }
    false
}

#[test]
fn an_example_in_a_comment_is_found_between_backticks_and_by_its_indentation() {
    let examples = [
        "/// Text.\n///\n/// ```\n/// one();\n/// ```",
        "//! ```no_run\n//! one();\n//! ```",
        "/// Text.\n///\n///     one();",
        "//!     one();\n//! Text.",
    ];
    for source in examples {
        assert!(has_examples(source), "{source}");
    }
    let others = [
        "/// ```text\n/// one\n/// ```",
        "//! ```console\n//!\n//!     indented\n//! ```",
        "/// - A list,\n///     continued.",
        "// Text.\n//\n//     no documentation",
    ];
    for source in others {
        assert!(!has_examples(source), "{source}");
    }
}

/// Cargo would compile each crate for unit tests, and once more for examples, although it has none.
#[test]
fn a_manifest_turns_off_unit_tests_and_examples_exactly_where_there_are_none() {
    for package in packages() {
        let name = directory(&package);
        let sources = sources(&name);
        let targets = package["targets"].as_array().unwrap();
        let of_kind = |kind: &'static str| {
            let is_kind = move |target: &&Value| {
                let kinds = target["kind"].as_array().unwrap();
                kinds.iter().any(|one| one == kind)
            };
            targets.iter().filter(is_kind)
        };
        let tested = sources.iter().any(|text| has_unit_tests(text));
        for library in of_kind("lib") {
            assert_eq!(library["test"], tested, "{name}: `test` of its library");
            let shown = sources.iter().any(|text| has_examples(text));
            assert_eq!(library["doctest"], shown, "{name}: `doctest`");
        }
        // Beside a library, a program has no modules of its own.
        let alone = of_kind("lib").next().is_none();
        for program in of_kind("bin") {
            let main = std::fs::read_to_string(program["src_path"].as_str().unwrap()).unwrap();
            let tested = if alone { tested } else { has_unit_tests(&main) };
            assert_eq!(program["test"], tested, "{name}: {}", program["name"]);
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

/// Test programs beside the one of their crate, each with its reason.
const FURTHER_PROGRAMS: [(&str, &str, &str); 7] = [
    ("cli", "cli", "two processors compile both programs at once"),
    ("reconstruct", "engine", "it has its own `main`"),
    ("reconstruct", "memory", "it has its own allocator"),
    (
        "session",
        "contents_auto",
        "it has the tests of other modules in another mode",
    ),
    ("serve", "measure", "it only measures"),
    (
        "currency",
        "extended",
        "its tests share one compiled program",
    ),
    ("query", "measure", "it only measures"),
];

/// The modules that a file declares, as the names of their files.
fn declared(source: &str) -> impl Iterator<Item = &str> {
    source.lines().filter_map(|line| {
        let (visibility, name) = line.split_once("mod ")?;
        let is_declaration = visibility.is_empty() || visibility.starts_with("pub");
        name.strip_suffix(';').filter(|_| is_declaration)
    })
}

/// The files below these directories that none of the test programs has.
fn forgotten(tests: Vec<PathBuf>, programs: &[PathBuf]) -> BTreeSet<PathBuf> {
    let mut known: Vec<PathBuf> = programs.to_vec();
    let mut at = 0;
    while at < known.len() {
        let file = known[at].clone();
        let text = std::fs::read_to_string(&file).unwrap();
        let is_root = programs.contains(&file) || file.ends_with("mod.rs");
        let mut beside = file.parent().unwrap().to_owned();
        let paths = text
            .lines()
            .filter_map(|line| line.strip_prefix("#[path = \""));
        let paths = paths.filter_map(|line| line.strip_suffix("\"]"));
        known.extend(paths.map(|path| beside.join(path)));
        if !is_root {
            beside.push(file.file_stem().unwrap());
        }
        for name in declared(&text) {
            let found = [format!("{name}.rs"), format!("{name}/mod.rs")];
            known.extend(
                found
                    .map(|path| beside.join(path))
                    .into_iter()
                    .filter(|path| path.exists()),
            );
        }
        at += 1;
    }
    let known: BTreeSet<_> = known
        .iter()
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    let mut all = BTreeSet::new();
    let mut directories = tests;
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => directories.push(path),
                false if path.extension().is_some_and(|ending| ending == "rs") => {
                    all.insert(path.canonicalize().unwrap());
                }
                false => {}
            }
        }
    }
    all.difference(&known).cloned().collect()
}

/// Each further program is linked and started on its own, and repeats what the tests share.
#[test]
fn a_crate_has_one_test_program_which_has_each_file_of_tests() {
    let (mut further, mut programs, mut directories) = (BTreeSet::new(), Vec::new(), Vec::new());
    for package in packages() {
        let name = directory(&package);
        let targets = package["targets"].as_array().unwrap().iter();
        let tests: Vec<PathBuf> = targets
            .filter(|target| target["kind"][0] == "test")
            .map(|target| PathBuf::from(target["src_path"].as_str().unwrap()))
            .collect();
        let listed = |target: &Value| {
            let target = target["name"].as_str().unwrap();
            FURTHER_PROGRAMS
                .iter()
                .find(|(owner, program, _)| *owner == name && *program == target)
        };
        let targets = package["targets"].as_array().unwrap().iter();
        let excused: Vec<_> = targets.filter_map(listed).collect();
        assert!(tests.len() <= 1 + excused.len(), "{name}: {tests:?}");
        further.extend(excused);
        programs.extend(tests);
        directories.push(root().join("crates").join(&name).join("tests"));
    }
    // A crate can have files for the tests of others.
    let lost = forgotten(directories, &programs);
    assert!(lost.is_empty(), "no test program has {lost:?}");
    let all: BTreeSet<_> = FURTHER_PROGRAMS.iter().collect();
    assert_eq!(further, all, "programs that are gone");
}
