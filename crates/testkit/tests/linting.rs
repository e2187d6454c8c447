//! `scripts/rustc-and-clippy`, by which cargo lints the crates that it compiles.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use backstory_testkit::need::needs;
use tempfile::TempDir;

/// Arguments for a library, and for its tests.
const LIBRARY: [&str; 2] = ["--crate-type=lib", "--emit=dep-info,metadata,link"];
const TESTS: [&str; 2] = ["--test", "--emit=dep-info,link"];

/// A crate with this source, compiled as cargo would do it with a rustc of rustup. `None`, with a
/// notice, if clippy is not installed.
fn compiled(target: [&str; 2], source: &str) -> Option<(Output, TempDir)> {
    let rustc = Path::new(env!("CARGO")).with_file_name("rustc");
    compiled_by(&rustc, target, source)
}

/// The same with another name of rustc.
fn compiled_by(name: &Path, target: [&str; 2], source: &str) -> Option<(Output, TempDir)> {
    let rustc = Path::new(env!("CARGO")).with_file_name("rustc");
    let clippy = rustc.with_file_name("clippy-driver");
    if !needs("lints in the build", &[clippy.to_str().unwrap()]) {
        return None;
    }
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"));
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("one.rs");
    fs::write(&file, source).unwrap();
    let programs = rustc.parent().unwrap().to_owned();
    let others = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(programs).chain(std::env::split_paths(&others));
    let path = std::env::join_paths(path).unwrap();
    let output = Command::new(crates.join("../../scripts/rustc-and-clippy"))
        .arg(name)
        .args(["--crate-name", "one", "--edition=2024"])
        .args(target)
        .args(["-C", "extra-filename=-1"])
        .arg("--out-dir")
        .arg(place.path())
        .arg(file)
        .env("CARGO_MANIFEST_DIR", crates)
        .env("PATH", path)
        .env("CARGO_BIN_EXE_one-program", "/one")
        .output()
        .unwrap();
    Some((output, place))
}

#[test]
fn a_finding_of_clippy_and_a_warning_of_rustc_fail_the_crate() {
    for (source, finding) in [
        (
            "pub fn same(x: bool) -> bool { x == true }",
            "bool_comparison",
        ),
        ("pub fn none() { let one = 1; }", "unused variable"),
    ] {
        for target in [LIBRARY, TESTS] {
            let Some((output, _place)) = compiled(target, source) else {
                return;
            };
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success(), "{target:?}: {source}");
            assert!(said.contains(finding), "{target:?}: {source}: {said}");
        }
    }
}

#[test]
fn a_crate_without_findings_is_compiled_and_depends_on_the_settings_of_clippy() {
    let source = "pub const ONE: &str = env!(\"CARGO_BIN_EXE_one-program\");";
    for (target, compiled_file) in [(LIBRARY, "libone-1.rlib"), (TESTS, "one-1")] {
        let Some((output, place)) = compiled(target, source) else {
            return;
        };
        assert!(output.status.success(), "{output:?}");
        let file = |name: &str| place.path().join(name);
        assert!(file(compiled_file).exists(), "{target:?}");
        assert!(!file("one-1.linted").exists(), "{target:?}");
        let sources = fs::read_to_string(file("one-1.d")).unwrap();
        assert!(sources.contains("one.rs"), "{sources}");
        assert!(sources.contains("clippy.toml"), "{sources}");
    }
}

#[test]
fn a_rustc_of_the_path_has_its_clippy_there() {
    let source = "pub fn same(x: bool) -> bool { x == true }";
    let Some((output, _place)) = compiled_by(Path::new("rustc"), LIBRARY, source) else {
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("bool_comparison"), "{said}");
}
