//! The lists of derived views with the entries of a user's `tools.toml`. Each list can be extended,
//! and each entry is judged as the embedded ones.
//!
//! The knowledge of a process is installed once. So these tests are a program of their own.
#![allow(clippy::unwrap_used)]

#[path = "../../../workflow/tests/literal/scene.rs"]
mod scene;
#[path = "../judgement/used.rs"]
mod used;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use backstory_workflow::tools::{ToolKnowledge, install};

use used::Used;

/// A directory for the files that the user's file names by their whole path.
fn place() -> &'static Path {
    static PLACE: OnceLock<tempfile::TempDir> = OnceLock::new();
    PLACE
        .get_or_init(|| {
            let place = tempfile::tempdir().unwrap();
            install_users_file(place.path());
            place
        })
        .path()
}

/// The user's file, with `DIR` for the directory.
const FILE: &str = "
[derived]
everybody = ['DIR/motd']
library_indexes = ['DIR/ld.so.cache']
indexes = ['/word-index/']
accounts = ['DIR/people']
account_switches = ['DIR/people.conf']
account_listers = ['list-people']
package_lists = ['DIR/packages/']
package_readers = ['spackle']
module_finders = ['finder']
dependency_files = ['.needs']
";

fn install_users_file(directory: &Path) {
    let text = FILE.replace("DIR", directory.to_str().unwrap());
    let (knowledge, warnings) = ToolKnowledge::extended(&text, Path::new("tools.toml"));
    assert_eq!(warnings, [""; 0]);
    install(knowledge);
}

/// The path of a file that the user's file names.
fn named(name: &str) -> String {
    place().join(name).to_str().unwrap().to_owned()
}

fn by(program: &str) -> Used {
    place();
    Used::by(&[&[program]])
}

#[test]
fn every_list_of_derived_views_has_an_entry_of_the_user_here() {
    let keys = |text: &str| -> BTreeSet<String> {
        let derived = text.split("[derived]").nth(1).unwrap();
        let lines = derived.lines().filter(|line| !line.starts_with('#'));
        let keys = lines.filter_map(|line| line.split_once(" = ["));
        keys.map(|(key, _)| key.to_owned()).collect()
    };
    assert_eq!(
        keys(FILE),
        keys(include_str!("../../../workflow/tools.toml"))
    );
}

#[test]
fn a_users_file_that_every_program_opens_decides_nothing() {
    by("tool").read_changed(&named("motd")).is_current();
    by("tool")
        .read_changed(&named("other"))
        .is_stale_because_of(&named("other"));
}

#[test]
fn a_users_index_decides_nothing() {
    let used = by("tool");
    used.read("word-index/a")
        .write("word-index/a", "changed since\n");
    used.is_current();
}

#[test]
fn a_users_list_of_accounts_counts_for_its_listers_and_without_its_switch() {
    let (people, switch) = (named("people"), named("people.conf"));
    by("tool")
        .read_changed(&people)
        .is_stale_because_of(&people);
    let used = by("tool");
    let path = place().join("people.conf");
    std::fs::write(&path, "").unwrap();
    used.read_unchanged(&switch)
        .read_changed(&people)
        .is_current();
    let used = by("list-people");
    used.read_unchanged(&switch);
    used.read_changed(&people).is_stale_because_of(&people);
}

#[test]
fn a_users_list_of_packages_decides_nothing_for_the_users_package_reader() {
    let path = named("packages/all");
    by("spackle").read_changed(&path).is_current();
    by("tool").read_changed(&path).is_stale_because_of(&path);
}

#[test]
fn a_users_module_finder_looks_for_the_names_it_needs_only() {
    let run = |program: &str| {
        let used = by(program);
        used.listed("site-packages", &["known"]);
        used.write("site-packages/other", "");
        used
    };
    run("finder").is_current();
    run("tool").is_stale_because_of("site-packages/other");
}

#[test]
fn a_users_dependency_file_decides_nothing_for_a_builder() {
    let used = by("make");
    used.read("a.needs").write("a.needs", "changed since\n");
    used.is_current();
}

/// A library of the machine in two versions, and an index of it that `ldconfig` made.
fn indexed(to: &str) -> Option<PathBuf> {
    let directory = place().join("lib");
    std::fs::create_dir_all(&directory).unwrap();
    let libraries = [
        "/lib/x86_64-linux-gnu/libc.so.6",
        "/lib64/libc.so.6",
        "/lib/libc.so.6",
    ];
    let libc = libraries.iter().find(|path| Path::new(path).exists())?;
    for name in ["libc.so.6.0", "libc.so.6.1"] {
        if !directory.join(name).exists() {
            std::fs::copy(libc, directory.join(name)).unwrap();
        }
    }
    let link = directory.join("libc.so.6");
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(to, link).unwrap();
    let config = place().join("ld.so.conf");
    std::fs::write(&config, format!("{}\n", directory.display())).unwrap();
    let mut command = Command::new("/sbin/ldconfig");
    command
        .arg("-X")
        .arg("-f")
        .arg(config)
        .arg("-C")
        .arg(place().join("ld.so.cache"));
    command.status().ok()?.success().then_some(directory)
}

#[test]
fn a_library_that_the_loader_finds_elsewhere_counts_for_a_users_index() {
    let Some(directory) = indexed("libc.so.6.0") else {
        backstory_testkit::need::skipped(
            "libraries that the loader finds",
            "needs ldconfig and libc.so.6",
        );
        return;
    };
    let path = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let run = || {
        let used = by("tool");
        used.loaded(&path("libc.so.6.0"), &path("libc.so.6"));
        used.read_changed(&named("ld.so.cache"));
        used
    };
    run().is_current();
    indexed("libc.so.6.1");
    run().is_stale_because_of(&path("libc.so.6.0"));
}
