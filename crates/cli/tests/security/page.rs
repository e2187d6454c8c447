//! `docs/security.md` names every file with unsafe code, and no other.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn sources(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
}

/// Blocks, functions and implementations outside tests, in files of the libraries and the program.
fn has_unsafe(path: &Path) -> bool {
    let text = fs::read_to_string(path).unwrap();
    let code = text
        .split("\n#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or_default();
    code.lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .any(|line| {
            ["unsafe {", "unsafe impl", "unsafe fn", "unsafe extern"]
                .iter()
                .any(|u| line.contains(u))
        })
}

#[test]
fn every_file_with_unsafe_code_is_listed_with_its_invariant() {
    let root = root();
    let mut files = Vec::new();
    for member in fs::read_dir(root.join("crates")).unwrap() {
        let source = member.unwrap().path().join("src");
        if source.is_dir() {
            sources(&source, &mut files);
        }
    }
    let inside = |path: &PathBuf| path.strip_prefix(&root).unwrap().display().to_string();
    let found: BTreeSet<String> = files
        .iter()
        .filter(|path| has_unsafe(path))
        .map(inside)
        .collect();
    let page = fs::read_to_string(root.join("docs/security.md")).unwrap();
    let table = page.split("## Unsafe code").nth(1).unwrap();
    let rows = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `crates/"));
    let rows = rows.map(|row| row.split_once("` | ").unwrap());
    let listed: BTreeSet<String> = rows
        .map(|(file, invariant)| {
            assert!(invariant.len() > 20, "{file} has no invariant");
            format!("crates/{file}")
        })
        .collect();
    assert_eq!(found, listed);
    for file in &found {
        let text = fs::read_to_string(root.join(file)).unwrap();
        assert!(
            text.contains("allow(unsafe_code)"),
            "{file} does not say so"
        );
    }
}
