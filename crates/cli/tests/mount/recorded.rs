//! The operations of any process below a mount are recorded.

use std::fs;
use std::process::Command;

use backstory_testkit::need::{needs, skipped};

use crate::mount::mounted::{MountedDirectory, mounted};

/// The paths of the answer to `of PATH`, relative to the directory behind the mount.
pub fn inputs(mounted: &MountedDirectory, path: &str) -> Vec<String> {
    paths_of(mounted, &[], path)
}

/// The same without what is only possible.
pub fn certain_inputs(mounted: &MountedDirectory, path: &str) -> Vec<String> {
    paths_of(mounted, &["--no-possible"], path)
}

fn paths_of(mounted: &MountedDirectory, options: &[&str], path: &str) -> Vec<String> {
    let path = mounted.behind.join(path);
    let question = ["of", "--json", path.to_str().unwrap()];
    let answer = mounted.answer(&[&question[..], options].concat());
    let prefix = format!("{}/", mounted.behind.to_str().unwrap());
    let mut found: Vec<String> = answer
        .split('"')
        .filter_map(|word| word.strip_prefix(&prefix))
        .map(str::to_owned)
        .collect();
    found.sort();
    found.dedup();
    found
}

/// A file that an unrecorded shell makes from another, with and without the kernel's passthrough.
fn made_from(what: &str, options: &[&str]) {
    let Some(mut mounted) = mounted(what, options) else {
        return;
    };
    fs::write(mounted.behind.join("a"), "3\n1\n2\n").unwrap();
    fs::write(mounted.behind.join("other"), "not used\n").unwrap();
    assert!(mounted.shell("sort a > b").status.success());
    assert!(mounted.shell("cat other > elsewhere").status.success());
    assert!(mounted.unmount().success());
    assert_eq!(inputs(&mounted, "b"), ["a", "b"]);
    assert_eq!(inputs(&mounted, "elsewhere"), ["elsewhere", "other"]);
    let show = mounted.answer(&["show", "--json"]);
    assert!(show.contains("\"complete\": true"), "{show}");
    let processes = mounted.answer(&["processes"]);
    assert!(processes.contains("sort a"), "{processes}");
    let who = mounted.answer(&["who", mounted.behind.join("a").to_str().unwrap()]);
    assert!(who.contains("sort"), "{who}");
}

#[test]
fn a_file_made_by_a_program_that_nothing_started_under_recording_has_its_origin() {
    made_from("the origin of a file made below a mount", &[]);
}

#[test]
fn a_question_during_a_mount_says_that_the_mount_has_to_end() {
    let Some(mut mounted) = mounted("a question during a mount", &[]) else {
        return;
    };
    assert!(mounted.shell("echo text > a").status.success());
    let path = mounted.behind.join("a");
    let question = ["of", path.to_str().unwrap()];
    let asked = mounted.stage.backstory(&question).output().unwrap();
    let said = String::from_utf8(asked.stderr).unwrap();
    assert!(
        said.contains("answers include it after `backstory mount` has ended"),
        "{said}"
    );
    assert!(mounted.unmount().success());
    let answer = mounted.answer(&question);
    assert!(answer.contains("made"), "{answer}");
}

#[test]
fn a_path_below_a_former_mount_point_leads_to_the_mounted_directory() {
    let Some(mut mounted) = mounted("a path below a former mount point", &[]) else {
        return;
    };
    assert!(mounted.shell("echo text > a").status.success());
    assert!(mounted.unmount().success());
    let (path, behind) = (mounted.at.join("a"), mounted.behind.join("a"));
    let (path, behind) = (path.to_str().unwrap(), behind.to_str().unwrap());
    for question in [
        &["of", path][..],
        &["uses", path],
        &["who", path],
        &["log", "--", path],
    ] {
        let asked = mounted.stage.backstory(question).output().unwrap();
        let said = String::from_utf8(asked.stderr).unwrap();
        assert_eq!(asked.status.code(), Some(1), "{question:?}: {said}");
        assert!(said.contains(behind), "{question:?}: {said}");
    }
}

#[test]
fn a_file_read_and_written_by_the_kernel_alone_has_its_origin() {
    made_from(
        "the origin of a file with passthrough",
        &["--passthrough", "on"],
    );
}

#[test]
fn undo_and_contents_say_that_a_mount_stores_no_contents() {
    let Some(mut mounted) = mounted("contents of a mount", &[]) else {
        return;
    };
    assert!(mounted.shell("echo 1 > f; echo 2 > f").status.success());
    assert!(mounted.unmount().success());
    mounted.answer(&["index", "--wait"]);
    let file = mounted.behind.join("f");
    for command in ["undo", "contents"] {
        let words = [command, file.to_str().unwrap()];
        let refused = mounted.stage.backstory(&words).output().unwrap();
        let why = String::from_utf8_lossy(&refused.stderr);
        assert!(
            !refused.status.success() && why.contains("`mount`"),
            "{command}: {why}"
        );
        assert!(!why.contains("outside of recorded runs"), "{why}");
    }
}

#[test]
fn a_program_has_the_files_that_it_inherits_open() {
    let Some(mut mounted) = mounted("redirected files below a mount", &[]) else {
        return;
    };
    fs::write(mounted.behind.join("a"), "3\n1\n2\n").unwrap();
    assert!(mounted.shell("tr 1 9 < a > b").status.success());
    assert!(mounted.unmount().success());
    assert_eq!(inputs(&mounted, "b"), ["a", "b"]);
    let who = mounted.answer(&["who", mounted.behind.join("a").to_str().unwrap()]);
    assert!(who.contains("tr 1 9"), "{who}");
}

/// The first pid and user namespaces of a machine have these numbers (`PROC_PID_INIT_INO`,
/// `PROC_USER_INIT_INO`).
fn kernel_tells_of_execs() -> bool {
    let namespace = |name: &str| fs::read_link(format!("/proc/self/ns/{name}")).ok();
    namespace("pid") == Some("pid:[4026531836]".into())
        && namespace("user") == Some("user:[4026531837]".into())
}

#[test]
fn a_program_that_writes_an_inherited_file_through_the_kernel_is_its_origin() {
    let what = "inherited files with passthrough";
    if !needs(what, &["python3"]) {
        return;
    }
    if !kernel_tells_of_execs() {
        skipped(what, "needs the first namespaces of the machine");
        return;
    }
    let Some(mut mounted) = mounted(what, &["--passthrough", "on"]) else {
        return;
    };
    fs::write(mounted.behind.join("a"), "text\n").unwrap();
    let script = "import sys; sys.stdout.write(sys.stdin.read())";
    let done = mounted.shell(&format!("python3 -c '{script}' < a > b"));
    assert!(done.status.success(), "{done:?}");
    assert!(mounted.unmount().success());
    assert_eq!(inputs(&mounted, "b"), ["a", "b"]);
    let who = mounted.answer(&["who", mounted.behind.join("b").to_str().unwrap()]);
    assert!(who.contains("python3"), "{who}");
}

#[test]
fn a_file_keeps_its_origin_when_it_is_renamed_and_linked() {
    let Some(mut mounted) = mounted("renamed files below a mount", &[]) else {
        return;
    };
    fs::write(mounted.behind.join("a"), "text\n").unwrap();
    let done = mounted.shell("cp a new; mv new b; ln b c; rm b; cat c > d");
    assert!(done.status.success(), "{done:?}");
    assert!(mounted.unmount().success());
    let found = inputs(&mounted, "d");
    assert!(found.contains(&"a".to_owned()), "{found:?}");
    assert!(
        found.iter().all(|path| !path.contains("deleted")),
        "{found:?}"
    );
}

#[test]
fn a_process_of_another_user_is_recorded() {
    if !needs("processes of other users below a mount", &["setpriv"]) {
        return;
    }
    let Some(mut mounted) = mounted("processes of other users below a mount", &[]) else {
        return;
    };
    fs::write(mounted.behind.join("a"), "text\n").unwrap();
    let done = mounted
        .shell("chmod 777 .; setpriv --reuid 1234 --regid 1234 --clear-groups sh -c 'cat a > b'");
    assert!(done.status.success(), "{done:?}");
    assert!(mounted.unmount().success());
    assert_eq!(inputs(&mounted, "b"), ["a", "b"]);
}

#[test]
fn a_server_that_reads_after_it_wrote_makes_nothing_from_what_it_reads_later() {
    let Some(mut mounted) = mounted("the order of a daemon's files", &[]) else {
        return;
    };
    fs::write(mounted.behind.join("a"), "text\n").unwrap();
    fs::write(mounted.behind.join("later"), "text\n").unwrap();
    let script = "
import time
text = open('a').read()
with open('b', 'w') as out: out.write(text)
open('later').read()
time.sleep(0.1)
";
    let python = Command::new("python3")
        .args(["-c", script])
        .current_dir(&mounted.at)
        .status()
        .unwrap();
    assert!(python.success());
    assert!(mounted.unmount().success());
    assert_eq!(inputs(&mounted, "b"), ["a", "b"]);
}

/// Works in a directory whose path is longer than any that the kernel tells.
const DEEP: &str = "
import os
for _ in range(30):
    os.mkdir('n' * 200)
    os.chdir('n' * 200)
open('deepest', 'w').write('deep')
os.rename('deepest', 'renamed')
print(open('renamed').read())";

#[test]
fn operations_below_a_path_that_is_too_long_are_done_and_counted_as_lost() {
    let what = "a path that is too long";
    if !needs(what, &["python3"]) {
        return;
    }
    let Some(mut mounted) = mounted(what, &[]) else {
        return;
    };
    let mut python = Command::new("python3");
    let deep = python.args(["-c", DEEP]).current_dir(&mounted.at);
    let output = deep.output().unwrap();
    assert_eq!(output.stdout, b"deep\n", "{output:?}");
    assert!(mounted.unmount().success());
    let show = mounted.answer(&["show", "--json"]);
    assert!(show.contains("\"complete\": false"), "{show}");
    assert!(show.contains(" operations could not be logged"), "{show}");
    // No path is made up.
    let files = mounted.answer(&["files", "--json"]);
    for name in ["\"/deepest\"", "\"/renamed\""] {
        assert!(!files.contains(name), "{files}");
    }
}
