//! An imported run lives in the store as any other.

use super::Desk;
use std::path::PathBuf;

const LOG: &[u8] =
    b"7 1700000000.0 execve(\"/bin/sh\", [\"sh\", \"-c\", \"x\"], 0x7f /* 1 var */) = 0\n\
    7 1700000000.1 brk(NULL) = 0x1000\n\
    7 1700000000.2 openat(AT_FDCWD</w>, \"in\", O_RDONLY) = 3</w/in>\n\
    7 1700000000.3 read(3</w/in>, \"a\", 10) = 1\n\
    7 1700000000.4 openat(AT_FDCWD</w>, \"out\", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 4</w/out>\n\
    7 1700000000.5 write(4</w/out>, \"a\", 1) = 1\n\
    7 1700000000.6 exit_group(5) = ?\n\
    7 1700000000.7 +++ exited with 5 +++\n";

fn imported() -> (Desk, PathBuf, String) {
    let desk = Desk::new();
    let log = desk.write("trace.log", LOG);
    let said = desk.import(std::slice::from_ref(&log), &[]);
    let run = said
        .trim()
        .strip_prefix("imported as run ")
        .unwrap()
        .to_owned();
    (desk, log, run)
}

#[test]
fn a_second_import_of_a_log_changes_nothing_and_says_so() {
    let (desk, log, run) = imported();
    let again = desk.import(std::slice::from_ref(&log), &[]);
    assert_eq!(again, format!("in the store already: run {run}\n"));
    let copy = desk.write("copy.log", LOG);
    let again = desk.import(&[copy], &["--json"]);
    let again: serde_json::Value = serde_json::from_str(&again).unwrap();
    assert_eq!(
        (&again["run"], &again["new"]),
        (&run.as_str().into(), &false.into())
    );
    assert_eq!(desk.json(&["log", "--json"]).as_array().unwrap().len(), 1);
    // In another directory the same log is another run.
    desk.import(&[log], &["--root", "/tmp"]);
    assert_eq!(desk.json(&["log", "--json"]).as_array().unwrap().len(), 2);
}

#[test]
fn the_header_says_from_which_file_the_run_was_made_and_times_are_those_of_the_log() {
    let (desk, log, run) = imported();
    let show = desk.json(&["show", "--json"]);
    let file = &show["imported"]["files"][0];
    assert_eq!(show["run"], run.as_str());
    assert_eq!(show["imported"]["format"], "strace");
    assert_eq!(file["path"], log.to_str().unwrap());
    assert_eq!(file["bytes"], LOG.len());
    assert_eq!(file["digest"], blake3::hash(LOG).to_hex().as_str());
    assert_eq!(show["started"], 1_700_000_000.0);
    assert_eq!(show["ended"], 1_700_000_000.7);
    let text = desk.backstory(&["show"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("imported     strace: "), "{text}");
}

#[test]
fn rebuild_verify_and_forget_treat_it_as_any_run() {
    let (desk, log, run) = imported();
    let files = || desk.json(&["files", "--all", "--json", &run]);
    let before = files();
    assert!(desk.backstory(&["store", "rebuild"]).status.success());
    assert_eq!(files(), before);
    let verified = desk.backstory(&["store", "verify"]);
    assert!(verified.status.success(), "{verified:?}");
    let forgotten = desk.backstory(&["forget", "--yes", "/w/in"]);
    assert!(forgotten.status.success(), "{forgotten:?}");
    assert_eq!(desk.runs(), Vec::<String>::new());
    let again = desk.import(&[log], &[]);
    assert_eq!(again, format!("imported as run {run}\n"));
    assert_eq!(files(), before);
}

#[test]
fn files_of_another_machine_are_not_looked_up_here() {
    let (desk, _, _) = imported();
    // The program of the log exists here, but the log is older than this machine's log file.
    let files = desk.json(&["files", "--all", "--json"]);
    for file in files.as_array().unwrap() {
        assert!(file["size"].is_null(), "{file}");
    }
}

#[test]
fn a_root_makes_paths_of_a_container_paths_of_this_machine() {
    let (desk, log, _) = imported();
    let root = desk.stage.directory("root").unwrap();
    let root = root.to_str().unwrap();
    desk.import(&[log], &["--root", root, "--name", "inside"]);
    let files = desk.json(&["files", "--all", "--json", "inside"]);
    let paths: Vec<&str> = files
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["path"].as_str().unwrap())
        .collect();
    assert_eq!(
        paths,
        ["bin/sh", "w/in", "w/out"].map(|path| format!("{root}/{path}"))
    );
}

#[test]
fn values_of_secrets_do_not_get_into_the_log_of_the_run() {
    let desk = Desk::new();
    let log = b"7 1700000000.0 execve(\"/bin/x\", [\"x\", \"--password=hunter2\"], [\"API_TOKEN=hunter2\", \"A=b\"]) = 0\n\
        7 1700000000.1 brk(NULL) = 0x1000\n7 1700000000.7 +++ exited with 0 +++\n";
    let path = desk.write("trace.log", log);
    desk.import(&[path], &[]);
    for name in desk.runs() {
        let bytes = std::fs::read(desk.stage.store().join("runs").join(name)).unwrap();
        assert!(!bytes.windows(7).any(|part| part == b"hunter2"));
        assert!(bytes.windows(3).any(|part| part == b"A=b"));
    }
}

#[test]
fn of_leads_from_an_imported_run_to_recorded_runs_and_back() {
    let Some(desk) = Desk::with_strace("a recorded run between imported runs") else {
        return;
    };
    desk.write("first", b"x");
    let best = "-f -y -ttt -s 4096";
    let log = desk.trace(best, "cat first > second");
    desk.import(&[log], &[]);
    let recorded = desk.backstory(&["record", "--wait", "--", "cp", "second", "third"]);
    assert!(recorded.status.success(), "{recorded:?}");
    let log = desk.trace(best, "cat third > fourth");
    desk.import(&[log], &[]);
    let answer = |args: &[&str]| String::from_utf8(desk.backstory(args).stdout).unwrap();
    let of = answer(&["of", "fourth"]);
    let uses = answer(&["uses", "first"]);
    for step in [
        "cat first > second",
        "cp second third",
        "cat third > fourth",
    ] {
        assert!(of.contains(step), "no {step} in {of}");
        assert!(uses.contains(step), "no {step} in {uses}");
    }
}

#[test]
fn a_step_of_an_imported_run_runs_again_in_the_callers_environment() {
    let Some(desk) = Desk::with_strace("rerun of an imported run") else {
        return;
    };
    desk.write("in", b"1");
    desk.write("tool", b"{ cat in; printf %s \"$HOME\"; } > out\n");
    let log = desk.trace("-f -y -ttt -s 4096", "sh tool");
    desk.import(&[log], &[]);
    desk.write("in", b"2");
    let rerun = desk.backstory(&["rerun", "--yes", "out"]);
    assert!(rerun.status.success(), "{rerun:?}");
    let home = desk.stage.path().join("home");
    let wanted = format!("2{}", home.display());
    assert_eq!(
        std::fs::read_to_string(desk.work().join("out")).unwrap(),
        wanted
    );
}

#[test]
fn gc_removes_what_a_killed_import_left_and_nothing_of_a_running_one() {
    let (desk, ..) = imported();
    let runs = desk.stage.store().join("runs");
    for name in ["aaaaaaaa", "bbbbbbbb"] {
        for end in ["import", "import.lock"] {
            let file = runs.join(format!("{name}.{end}"));
            std::fs::write(&file, "").unwrap();
            desk.stage.user().owns(&file).unwrap();
        }
    }
    let running = std::fs::File::open(runs.join("bbbbbbbb.import.lock")).unwrap();
    running.lock().unwrap();
    assert!(desk.backstory(&["store", "gc"]).status.success());
    let mut left = desk.runs();
    left.retain(|name| name.contains(".import"));
    left.sort();
    assert_eq!(left, ["bbbbbbbb.import", "bbbbbbbb.import.lock"]);
}
