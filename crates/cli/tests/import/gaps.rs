//! An imported run says what its log does not hold, and is uncertain where the log is.

use super::Desk;
use serde_json::Value;

#[track_caller]
fn has(desk: &Desk, sentence: &str) {
    let reasons = desk.reasons();
    assert!(reasons.contains(sentence), "no {sentence:?} in {reasons}");
    assert_eq!(desk.json(&["show", "--json"])["complete"], false);
}

fn certainty(desk: &Desk, path: &str, access: &str) -> Vec<String> {
    let files = desk.json(&["files", "--all", "--json"]);
    let has = |file: &&Value| {
        file["path"].as_str().unwrap().ends_with(path)
            && file["access"]
                .as_array()
                .unwrap()
                .iter()
                .any(|of| of == access)
    };
    let found = files.as_array().unwrap().iter().filter(has);
    found
        .map(|file| file["certainty"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn children_that_strace_did_not_follow_are_counted() {
    let Some(desk) = Desk::with_strace("a log without -f") else {
        return;
    };
    let log = desk.trace("-y -ttt -s 4096", "cat /dev/null; cat /dev/null; true");
    desk.import(&[log], &[]);
    has(
        &desk,
        "strace did not follow 2 children of the command (-f)",
    );
}

#[test]
fn without_writes_in_the_log_a_write_is_only_possible() {
    let Some(desk) = Desk::with_strace("a log of some calls only") else {
        return;
    };
    let line = "echo a >> log";
    let log = desk.trace("-f -y -ttt -s 4096", line);
    desk.import(&[log], &[]);
    assert_eq!(certainty(&desk, "work/log", "write"), ["seen"]);
    assert_eq!(desk.reasons(), "[]");
    let log = desk.trace("-f -y -ttt -s 4096 -e trace=file,process", line);
    // The file itself, if it is looked up, shows that it was written.
    desk.import(&[log], &["--machine", "other"]);
    has(&desk, "the log has no reads, no writes");
    assert_eq!(certainty(&desk, "work/log", "write"), ["possible"]);
}

#[test]
fn files_of_inherited_descriptors_are_known_from_y_and_else_a_gap() {
    let Some(desk) = Desk::with_strace("inherited descriptors") else {
        return;
    };
    desk.write("in", b"b\na\n");
    let line =
        |options: &str| format!("strace -f -s 4096 {options} -o ../trace.log sort < in > out");
    let log = desk.stage.path().join("trace.log");
    desk.shell(&line("-ttt -y"));
    desk.import(std::slice::from_ref(&log), &[]);
    assert_eq!(desk.reasons(), "[]");
    assert_eq!(certainty(&desk, "work/in", "read"), ["seen"]);
    assert_eq!(certainty(&desk, "work/out", "write"), ["seen"]);
    desk.shell(&line("-ttt"));
    desk.import(&[log], &[]);
    has(
        &desk,
        "descriptors that were open before the log began are unknown (-y): 0, 1",
    );
}

#[test]
fn cut_arguments_guessed_directories_and_missing_times_are_said() {
    let Some(desk) = Desk::with_strace("a short log") else {
        return;
    };
    desk.write("in", b"x");
    // `cat` does not ask for its directory, as a shell does.
    desk.shell(
        "strace -f -o ../trace.log cat in a_file_with_a_name_that_is_longer_than_strace_prints",
    );
    let log = desk.stage.path().join("trace.log");
    desk.import(&[log], &[]);
    has(&desk, "strace cut 1 argument of programs (-s)");
    has(&desk, "relative paths are taken to begin at");
    let warnings = desk.json(&["show", "--json"])["warnings"].to_string();
    assert!(
        warnings.contains("the log has no times (-ttt)"),
        "{warnings}"
    );
}

#[test]
fn a_log_that_ends_early_is_not_complete() {
    let Some(desk) = Desk::with_strace("a cut log") else {
        return;
    };
    let log = desk.trace("-f -y -ttt -s 4096", "cat /dev/null > out; true");
    let text = std::fs::read(&log).unwrap();
    let cut = desk.write("cut.log", &text[..text.len() / 2]);
    desk.import(&[cut], &[]);
    has(&desk, "the log ends before");
    assert!(desk.json(&["show", "--json"])["exit"].is_null());
}

#[test]
fn a_directory_that_the_log_has_later_holds_from_the_beginning() {
    let Some(desk) = Desk::with_strace("a program with a relative path") else {
        return;
    };
    desk.shell("cp /bin/cat own; echo x > in");
    desk.shell("strace -f -y -ttt -s 4096 -o ../trace.log ./own in > /dev/null");
    desk.import(&[desk.stage.path().join("trace.log")], &[]);
    assert_eq!(desk.reasons(), "[]");
    assert_eq!(certainty(&desk, "work/own", "exec"), ["seen"]);
}

#[test]
fn a_log_of_a_process_that_ran_before_strace_came_is_not_complete() {
    let Some(desk) = Desk::with_strace("a log of strace -p") else {
        return;
    };
    // A pipe holds the shell until strace is there.
    desk.shell(
        "mkfifo go; sh -c 'read x < go; cat /dev/null > out; true' & \
         strace -f -y -ttt -s 4096 -p $! -o ../trace.log & \
         while ! grep -q . ../trace.log; do sleep 0.01; done; echo > go; wait",
    );
    let log = desk.stage.path().join("trace.log");
    if std::fs::read(&log).is_ok_and(|text| text.is_empty()) {
        return backstory_testkit::need::skipped("strace -p", "no process may be attached to");
    }
    desk.import(&[log], &[]);
    has(&desk, "the beginning of 1 process is not in the log");
    assert_eq!(certainty(&desk, "work/out", "write"), ["seen"]);
}
