//! A process that removes or replaces files that the run has read links them itself. Their names
//! may start from the current directory or from a descriptor, whose directory may be renamed.

#![allow(clippy::unwrap_used)]

use super::harness;

use backstory_eventlog::event::{Event, Op, PreserveMethod};
use backstory_testkit::need::{needs, skipped};
use harness::kept::{Kept, kept};
use harness::{Run, text};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Output};

const PYTHON: &str = "/usr/bin/python3";
/// Files in `directory`.
const FILES: usize = 200;

/// Reads all files in `directory`. The first change after that waits until the supervisor has
/// looked at these reads. Then the process knows that the files were read.
const READ: &str = "
import os, threading
directory = os.open('directory', os.O_RDONLY)
names = [f'file{number}' for number in range(200)]
for name in names:
    os.close(os.open(name, os.O_RDONLY, dir_fd=directory))
";

/// Removes or replaces each file. The names start from `at`.
const REMOVE: &str = "
for number, name in enumerate(names):
    if number % 2:
        new = os.open('new', os.O_WRONLY | os.O_CREAT, dir_fd=at)
        os.write(new, b'another')
        os.close(new)
        os.rename('new', name, src_dir_fd=at, dst_dir_fd=at)
    else:
        os.unlink(name, dir_fd=at)
";

/// What `at` is in programs that name files by the current directory, and by a descriptor.
const IN_CURRENT: &str = "os.chdir('directory'); at = None\n";
const BELOW_DESCRIPTOR: &str = "at = directory\n";

fn content(number: usize) -> String {
    format!("content {number}")
}

/// A run in whose directory `directory` lies, and the inodes of its files.
fn run_with_files() -> (Run, Vec<u64>) {
    let run = Run::new(&["--contents", "lazy"]);
    fs::create_dir(run.path("directory")).unwrap();
    let make = |number: usize| {
        let path = run.path(&format!("directory/file{number}"));
        fs::write(&path, content(number)).unwrap();
        fs::metadata(&path).unwrap().ino()
    };
    let inodes = (0..FILES).map(make).collect();
    (run, inodes)
}

/// Records a program that reads the files and then makes these changes.
#[track_caller]
fn record(run: &Run, changes: &str) -> Output {
    let output = run.record(&[PYTHON, "-c", &format!("{READ}{changes}")]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    output
}

/// Asserts that each content is preserved as it was before these changes. `is_in` says in which
/// directory the file with a number may then have been. Returns how many contents the process
/// linked itself. `None` without Python.
#[track_caller]
fn own_links(changes: &str, is_in: impl Fn(usize, &str) -> bool) -> Option<usize> {
    if !needs("links by the process itself", &[PYTHON]) {
        return None;
    }
    let (run, inodes) = run_with_files();
    record(&run, changes);
    let kept = kept(&run);
    for (number, inode) in inodes.into_iter().enumerate() {
        let is_it = |one: &&Kept| one.ident.is_some_and(|ident| ident.ino == inode);
        let found = kept.iter().find(is_it);
        let found = found.unwrap_or_else(|| panic!("file{number} is not kept: {changes}"));
        assert_eq!(
            found.bytes.as_deref(),
            Ok(content(number).as_bytes()),
            "{changes}"
        );
        assert_eq!(found.ident.unwrap().nlink, 1, "{changes}");
        let path = found.path.strip_prefix(run.dir.path()).unwrap();
        let directory = path.parent().unwrap().to_str().unwrap();
        assert!(
            is_in(number, directory) && path.ends_with(format!("file{number}")),
            "file{number} is at {}: {changes}",
            path.display()
        );
    }
    run.assert_tidy();
    Some(recorded_links(&run))
}

/// How many contents processes of the run linked themselves.
fn recorded_links(run: &Run) -> usize {
    let own = |event: &&Event| {
        matches!(
            event.op,
            Op::Preserved {
                how: Some(PreserveMethod::OwnLink),
                ..
            }
        )
    };
    run.events().iter().filter(own).count()
}

/// Asserts that a process linked nearly all files itself. The first change sends a request.
#[track_caller]
fn are_nearly_all(own: Option<usize>) {
    let is_so = own.is_none_or(|own| (150..FILES).contains(&own));
    assert!(is_so, "{own:?} own links");
}

#[test]
fn a_process_that_removes_many_files_links_them_itself() {
    let changes = format!("{IN_CURRENT}{REMOVE}");
    are_nearly_all(own_links(&changes, |_, name| name == "directory"));
}

#[test]
fn a_process_that_removes_files_below_a_descriptor_links_them_itself() {
    let changes = format!("{BELOW_DESCRIPTOR}{REMOVE}");
    are_nearly_all(own_links(&changes, |_, name| name == "directory"));
}

/// The kernel marks the path of a removed directory. A directory may really have such a name.
#[test]
fn a_file_is_linked_by_its_path_at_that_time_after_its_directory_was_renamed() {
    // Other files lie at the former paths.
    const CHANGES: &str = "
os.unlink(names[0], dir_fd=directory)
os.rename('directory', moved)
os.mkdir('directory')
for name in names[1:]:
    os.close(os.open(f'directory/{name}', os.O_WRONLY | os.O_CREAT))
for name in names[1:]:
    os.unlink(name, dir_fd=directory)
";
    for moved in ["moved", "directory (deleted)"] {
        let changes = format!("moved = '{moved}'\n{CHANGES}");
        are_nearly_all(own_links(&changes, |number, name| {
            name == if number == 0 { "directory" } else { moved }
        }));
    }
}

#[test]
fn a_content_is_preserved_while_a_thread_renames_its_directory() {
    const CHANGES: &str = "
os.unlink(names[0], dir_fd=directory)
done = threading.Event()
def rename():
    while not done.is_set():
        os.rename('directory', 'moved')
        os.rename('moved', 'directory')
other = threading.Thread(target=rename)
other.start()
for name in names[1:]:
    os.unlink(name, dir_fd=directory)
done.set()
other.join()
";
    are_nearly_all(own_links(CHANGES, |_, name| {
        ["directory", "moved"].contains(&name)
    }));
}

/// Another directory with files of the same names is mounted over that of the descriptor.
#[test]
fn no_link_is_recorded_by_a_path_that_leads_to_another_file() {
    const CHANGES: &str = "
import subprocess
for number, name in enumerate(names):
    if number == 20:
        subprocess.run(['mount', '--bind', 'other', 'directory'], check=True)
    os.unlink(name, dir_fd=directory)
";
    let what = "links below a mount";
    if !needs(what, &[PYTHON, "unshare", "mount"]) {
        return;
    }
    let mut probe = Command::new("unshare");
    probe.args(["-Urm", "mount", "-t", "tmpfs", "none", "/mnt"]);
    if !probe.status().is_ok_and(|status| status.success()) {
        return skipped(what, "nothing can be mounted here");
    }
    let (run, _) = run_with_files();
    fs::create_dir(run.path("other")).unwrap();
    for number in 0..FILES {
        fs::write(run.path(&format!("other/file{number}")), "another").unwrap();
    }
    let program = format!("{READ}{CHANGES}");
    let session = run.command(&[PYTHON, "-c", &program]);
    let mut command = Command::new("unshare");
    command
        .arg("-Urm")
        .arg(session.get_program())
        .args(session.get_args())
        .current_dir(run.dir.path())
        .env_remove("LD_LIBRARY_PATH");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let own = recorded_links(&run);
    assert!((1..20).contains(&own), "{own} own links");
}

#[test]
fn a_file_below_a_descriptor_whose_path_is_too_long_is_preserved_by_a_request() {
    let long = ["x", "y", "z"].map(|name| name.repeat(200)).join("/");
    let changes = format!(
        "
os.unlink(names[0], dir_fd=directory)
os.makedirs('{long}')
os.rename('directory', '{long}/directory')
for name in names[1:]:
    os.unlink(name, dir_fd=directory)
"
    );
    let moved = format!("{long}/directory");
    let own = own_links(&changes, |number, name| {
        name == if number == 0 {
            "directory"
        } else {
            moved.as_str()
        }
    });
    assert!(own.is_none_or(|own| own == 0), "{own:?} own links");
}

/// A second name would share the change of the content.
#[test]
fn a_file_that_is_truncated_below_a_descriptor_is_preserved_by_a_request() {
    const CHANGES: &str = "
for name in names:
    os.close(os.open(name, os.O_WRONLY | os.O_TRUNC, dir_fd=directory))
";
    let own = own_links(CHANGES, |_, name| name == "directory");
    assert!(own.is_none_or(|own| own == 0), "{own:?} own links");
}

#[test]
fn a_removal_that_fails_leaves_the_link_count_as_it_was() {
    const CHANGES: &str = "
os.mkdir('other')
for number, name in enumerate(names):
    if number < 10:
        os.unlink(name, dir_fd=at)
        continue
    try:
        os.rename('other', name, dst_dir_fd=at)
    except NotADirectoryError:
        print(os.stat(name, dir_fd=at).st_nlink, end=' ')
";
    if !needs("links by the process itself", &[PYTHON]) {
        return;
    }
    for at in [IN_CURRENT, BELOW_DESCRIPTOR] {
        let (run, _) = run_with_files();
        let output = record(&run, &format!("{at}{CHANGES}"));
        assert_eq!(text(&output.stdout), "1 ".repeat(FILES - 10), "{at}");
    }
}
