//! The git work trees that a run uses: which commit, which branch, which changed files.
//!
//! 1. Before its command starts, `record` reads the commit and the branch of the current
//!    directory's work tree from `.git` itself. That takes some small files. A directory that is in
//!    no work tree costs one look-up for each directory above it.
//! 2. After the run, the background indexer asks `git status` which tracked files differ, and reads
//!    the commits of the other work trees whose files the run used. `git` knows every format of its
//!    index, every filter and every attribute, and takes longer than `record` may.
//!
//! Each run is examined once: a mark says how far the indexer is ([`ExaminedRuns`]).
//!
//! Invariant: neither step changes a work tree, runs a program that its configuration names as a
//! monitor, or fails the recording.

mod examined_runs;

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use backstory_eventlog::event::Time;
use backstory_git_objects::work_tree::{self, is_hash};
use backstory_graph::model::EntityKind;
use backstory_query::answer::Access;
use backstory_query::{self as query, Checkout};
use backstory_store::annotations::{self, Annotation, AnnotationRecord};
use backstory_store::{AnnotationKind, Home, RunKey, RunRecord, Store, catch_up_annotations};
use backstory_workflow::paths::{is_system, is_tool, parent};

use rustc_hash::FxHashMap;

use crate::text::when;
use examined_runs::ExaminedRuns;

/// A work tree is compared with its commit only if its run ended at most this long ago, in ns.
/// Later it says nothing about the run.
const FRESH: i64 = 600_000_000_000;

/// New runs whose other work trees are looked for.
const NEWEST: usize = 3;

/// Work trees of one run.
const MOST: usize = 8;

/// Changed files that are named.
const NAMED: usize = 50;

/// The commit and the branch of the work tree that a directory is in. `None` if it is in none.
pub fn at(dir: &Path) -> Option<Checkout> {
    let root = work_tree::root(dir)?;
    let head = work_tree::head(root)?;
    let branch = head.reference.as_deref();
    Some(Checkout {
        root: root.to_str()?.to_owned(),
        branch: branch.and_then(|name| Some(name.strip_prefix("refs/heads/")?.to_owned())),
        commit: head.commit,
        unread: head.unread,
        ..Checkout::default()
    })
}

/// The directory of the objects of the work tree that a directory is in. `None` if it is in none.
pub fn objects(dir: &Path) -> Option<PathBuf> {
    work_tree::objects(work_tree::root(dir)?)
}

/// The hash of a revision in the current directory's repository.
pub fn resolve(revision: &str) -> Option<String> {
    let asked = format!("{revision}^{{commit}}");
    let output = git(Path::new("."))
        .args([
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &asked,
        ])
        .output()
        .ok()?;
    let hash = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    is_hash(&hash).then_some(hash)
}

/// `git` that neither writes nor starts a monitor.
pub fn git(dir: &Path) -> Command {
    let mut git = Command::new("git");
    git.args(["--no-optional-locks", "-c", "core.fsmonitor=false", "-C"])
        .arg(dir)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    git
}

/// Completes the work trees of the runs that have just been recorded. Reads the annotations of
/// these runs alone.
pub fn complete(home: &Home, store: &mut dyn Store) -> Result<(), backstory_store::Error> {
    catch_up_annotations(home, store)?;
    let examined = ExaminedRuns::read(home, store)?;
    let new = examined.others(store)?;
    let mut found: Vec<AnnotationRecord> = Vec::new();
    for (number, run) in new.iter().enumerate() {
        let trees = completed(store, *run, number < NEWEST)?;
        found.extend(trees.into_iter().map(AnnotationRecord::Set));
    }
    if !found.is_empty() {
        annotations::append(home, &found)?;
        catch_up_annotations(home, store)?;
    }
    examined.advance(store, &new)
}

/// The work trees of a run that are not examined yet, and their states. `is_newest`: also those
/// that only the files of the run show.
fn completed(
    store: &dyn Store,
    run: RunKey,
    is_newest: bool,
) -> Result<Vec<Annotation>, backstory_store::Error> {
    let Some(id) = store.run_id(run)? else {
        return Ok(Vec::new());
    };
    let known = store.annotations(&id)?;
    let known = known.iter().filter_map(Checkout::of);
    let mut trees: Vec<Checkout> = known.filter(|checkout| !checkout.examined).collect();
    if trees.is_empty() && !is_newest {
        return Ok(Vec::new());
    }
    let Some(run) = store.run_by_key(run)? else {
        return Ok(Vec::new());
    };
    let is_fresh = when::now().saturating_sub(run.end.ended) < FRESH;
    if is_newest && is_fresh {
        trees.extend(others(store, &run)?);
    }
    for checkout in &mut trees {
        checkout.examined = true;
        if is_fresh {
            checkout.changed = changed(store, &run, checkout);
        }
    }
    Ok(trees.iter().map(|one| one.annotation(&id)).collect())
}

/// The directories with files of the user's own. Each directory is judged once, and not each of its
/// files: a run can have used thousands of them.
#[derive(Debug, Default)]
struct UserDirectories {
    found: BTreeSet<Vec<u8>>,
    /// The directories that were met. False for one whose files are all judged by that.
    is_open: FxHashMap<Vec<u8>, bool>,
}

impl UserDirectories {
    /// Adds the directory of a file, unless `is_known` has it or the file belongs to the system or
    /// to a tool.
    fn add(&mut self, file: &[u8], is_known: &dyn Fn(&[u8]) -> bool) {
        let directory = parent(file);
        let is_open = match self.is_open.get_mut(directory) {
            Some(is_open) => is_open,
            None => {
                // The path of a directory shows it for all files there.
                let below = [directory, b"/"].concat();
                let is_open = !is_known(&below) && !is_others(&below);
                self.is_open.entry(directory.to_vec()).or_insert(is_open)
            }
        };
        if *is_open && !is_others(file) {
            *is_open = false;
            self.found.insert(directory.to_vec());
        }
    }
}

/// True if the path belongs to the system or to a tool.
fn is_others(path: &[u8]) -> bool {
    is_system(path) || is_tool(path)
}

/// True if the path lies in one of the work trees with these roots.
fn is_in(roots: &[String], path: &[u8]) -> bool {
    let below = |root: &String| {
        let rest = path.strip_prefix(root.as_bytes());
        rest.is_some_and(|rest| rest.starts_with(b"/"))
    };
    roots.iter().any(below)
}

/// True if files in this directory, whose path ends with a slash, may lie in a work tree without
/// one of these roots.
fn leads_elsewhere(directory: &[u8], roots: &[String]) -> bool {
    if !directory.starts_with(b"/") || is_in(roots, directory) || is_others(directory) {
        return false;
    }
    let found = work_tree::root(Path::new(OsStr::from_bytes(parent(directory))));
    found.is_some_and(|root| !roots.iter().any(|known| root == Path::new(known)))
}

/// The work trees, except those known already, whose files the run used.
fn others(store: &dyn Store, run: &RunRecord) -> Result<Vec<Checkout>, backstory_store::Error> {
    let known = store.annotations(&run.header.id)?;
    let known: Vec<String> = known
        .into_iter()
        .filter(|one| one.kind == AnnotationKind::Checkout)
        .map(|one| one.key)
        .collect();
    // Most runs use no other work tree. Their directories say so, and are fewer than their files.
    let directories = store.directories_of(run.key)?;
    if !directories.iter().any(|dir| leads_elsewhere(dir, &known)) {
        return Ok(Vec::new());
    }
    let is_known = |path: &[u8]| is_in(&known, path);
    let mut dirs = UserDirectories::default();
    for entity in store.entities(run.key)? {
        if entity.kind == EntityKind::File && entity.path.starts_with(b"/") {
            dirs.add(&entity.path, &is_known);
        }
    }
    let mut found: Vec<Checkout> = Vec::new();
    for dir in dirs.found {
        let checkout = at(Path::new(OsStr::from_bytes(&dir)));
        let new = |one: &Checkout| {
            !known.contains(&one.root) && found.iter().all(|other| other.root != one.root)
        };
        if let Some(checkout) = checkout.filter(new) {
            found.push(checkout);
        }
        if found.len() == MOST {
            break;
        }
    }
    Ok(found)
}

/// The tracked files that differ from the commit, without those that the run wrote, and without
/// those that were changed after the run. `None` if `git` cannot say, if another commit is checked
/// out by now, or if all that differs was changed after the run.
fn changed(store: &dyn Store, run: &RunRecord, checkout: &Checkout) -> Option<Vec<String>> {
    let root = Path::new(&checkout.root);
    if at(root)?.commit != checkout.commit {
        return None;
    }
    let output = git(root)
        .args(["status", "--porcelain=v1", "-z", "-uno", "--no-renames"])
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    if output.stdout.is_empty() {
        return Some(Vec::new());
    }
    let written = written(store, run)?;
    let entries = output.stdout.split(|&byte| byte == 0);
    let (mut found, mut later) = (Vec::new(), false);
    for name in entries.filter_map(|entry| entry.get(3..)) {
        let path = root.join(OsStr::from_bytes(name));
        if written.contains(path.as_os_str().as_bytes()) {
            continue;
        }
        match changed_after(&path, run.end.ended) {
            true => later = true,
            false => found.push(String::from_utf8_lossy(name).into_owned()),
        }
    }
    if later && found.is_empty() {
        return None;
    }
    if found.len() > NAMED {
        let more = found.len() - NAMED;
        found.truncate(NAMED);
        found.push(format!("… and {more} more"));
    }
    Some(found)
}

/// True if the status of a file changed after a time.
fn changed_after(path: &Path, time: Time) -> bool {
    let found = fs::symlink_metadata(path);
    found.is_ok_and(|found| found.ctime() * 1_000_000_000 + found.ctime_nsec() > time)
}

/// The files that the run changed.
fn written(store: &dyn Store, run: &RunRecord) -> Option<HashSet<Box<[u8]>>> {
    let files = query::files(store, &run.header.id).ok()?;
    let changes =
        |access: &Access| matches!(access, Access::Write | Access::Rename | Access::Delete);
    let changed = files
        .into_iter()
        .filter(|file| file.access.iter().any(changes));
    Some(changed.map(|file| file.path[..].into()).collect())
}

/// `main @ 1a2b3c4d5e, changed: a.c b.c`
pub fn text(checkout: &Checkout) -> String {
    let branch = checkout.branch.as_deref().unwrap_or("no branch");
    let place = match (&checkout.commit, &checkout.unread) {
        (Some(commit), _) => format!("{branch} @ {}", &commit[..commit.len().min(10)]),
        (None, Some(unread)) => format!("{branch}, whose commit is not known ({unread})"),
        (None, None) => format!("{branch}, which has no commit yet"),
    };
    let state = match &checkout.changed {
        Some(changed) if changed.is_empty() => String::new(),
        Some(changed) => {
            let named = changed.iter().take(3).map(String::as_str);
            let more = match changed.len() {
                0..=3 => String::new(),
                count => format!(" and {} more", count - 3),
            };
            format!(", changed: {}{more}", named.collect::<Vec<_>>().join(" "))
        }
        None if checkout.examined => ", changes unknown".to_owned(),
        None => String::new(),
    };
    format!("{place}{state}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_with_own_files_are_those_that_each_file_shows() {
        let files = [
            "/home/u/app/main.py",
            "/home/u/app/main.pyc",
            "/home/u/app/__pycache__/main.py",
            "/home/u/compiled/a.pyc",
            "/home/u/compiled/b.pyc",
            "/home/u/mixed/a.pyc",
            "/home/u/mixed/a.py",
            "/home/u/.cache/x",
            "/home/u/known/x",
            "/home/u/known/below/x",
            "/home/u/known-not/x",
            "/target/debug/incremental/a-1/s-x/x",
            "/target/debug/incremental/a-1/s-x-1",
            "/target/debug/incremental/a-1/other",
            "/usr/bin/x",
            "/usr/local/bin/x",
            "/x",
        ];
        let is_known = |path: &[u8]| path.starts_with(b"/home/u/known/");
        let mut expected = BTreeSet::new();
        let mut dirs = UserDirectories::default();
        for file in files.iter().chain(&files).map(|file| file.as_bytes()) {
            if !is_system(file) && !is_tool(file) && !is_known(file) {
                expected.insert(parent(file).to_vec());
            }
            dirs.add(file, &is_known);
        }
        assert_eq!(dirs.found, expected);
        assert!(expected.contains(&b"/home/u/mixed"[..]) && expected.len() < 8);
    }

    #[test]
    fn only_a_directory_in_an_unknown_work_tree_leads_elsewhere() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().to_str().unwrap();
        for root in ["known", "other"] {
            fs::create_dir_all(dir.path().join(root).join(".git")).unwrap();
        }
        let known = [format!("{top}/known")];
        let leads = |path: &str| leads_elsewhere(path.as_bytes(), &known);
        let below = |path: &str| leads(&format!("{top}/{path}"));
        assert!(below("other/") && below("other/sub/"));
        assert!(!below("known/") && !below("known/sub/"));
        assert!(!below("other/.cache/x/") && !leads("/usr/lib/") && !leads(""));
        // The directory for temporary files may itself be in a work tree.
        let is_in_another = work_tree::root(dir.path()).is_some();
        assert_eq!(below("none/"), is_in_another);
    }
}
