//! `undo` and `redo`: every version of a file comes back, or a message says why it does not.

use std::fs;

use backstory_testkit::need::needs;

use super::Place;

#[test]
fn undo_and_redo_walk_through_the_recorded_versions_of_a_file() {
    let place = Place::new();
    for line in ["one", "two", "one"] {
        place.keep(&format!("echo {line} > notes.txt"), &["--contents=all"]);
    }
    let file = place.work().join("notes.txt");
    let content = || fs::read_to_string(&file).unwrap();
    let run = |command: &str| place.run(&[command, "notes.txt"]);
    let planned = place.run(&["undo", "notes.txt", "--dry-run"]);
    assert!(planned.out.contains("would become"), "{planned:?}");
    assert_eq!(content(), "one\n");
    for (command, wanted) in [
        ("undo", "two\n"),
        ("undo", "one\n"),
        ("redo", "two\n"),
        ("redo", "one\n"),
    ] {
        let answer = run(command);
        assert_eq!(
            (answer.status, content().as_str()),
            (0, wanted),
            "{answer:?}"
        );
    }
    let last = run("redo");
    assert!(
        last.status == 1 && last.err.contains("no later version"),
        "{last:?}"
    );
    fs::remove_file(&file).unwrap();
    assert_eq!(run("undo").status, 0);
    assert_eq!(content(), "one\n");
}

#[test]
fn undo_leaves_a_file_alone_that_was_changed_outside_of_recorded_runs() {
    let place = Place::new();
    for line in ["one", "two"] {
        place.keep(&format!("echo {line} > notes.txt"), &["--contents=all"]);
    }
    place.write("notes.txt", "my own words\n");
    let answer = place.run(&["undo", "notes.txt"]);
    assert_eq!(answer.status, 1);
    assert!(answer.err.contains("would be lost"), "{}", answer.err);
    let content = fs::read_to_string(place.work().join("notes.txt")).unwrap();
    assert_eq!(content, "my own words\n");
}

impl Place {
    /// Goes back from the present content of `notes.txt` to the oldest. Returns all contents, the
    /// newest first.
    fn undone(&self) -> Vec<String> {
        let file = self.work().join("notes.txt");
        let mut contents: Vec<String> = fs::read_to_string(&file).into_iter().collect();
        loop {
            let answer = self.run(&["undo", "notes.txt"]);
            if answer.status != 0 {
                assert!(answer.err.contains("no former version"), "{answer:?}");
                return contents;
            }
            contents.push(fs::read_to_string(&file).unwrap());
        }
    }
}

#[test]
fn every_version_that_a_run_wrote_comes_back() {
    let all = ["one\n", "three\n", "eleven\n", "seventeen\n"];
    let script = "for word in one three eleven seventeen; do CHANGE; done";
    let python = "python3 -c 'for word in [\"one\", \"three\", \"eleven\", \"seventeen\"]:
    with open(\"notes.txt\", MODE) as file: file.write(word + \"\\n\")'";
    let appended = [
        "one\n",
        "one\nthree\n",
        "one\nthree\neleven\n",
        "one\nthree\neleven\nseventeen\n",
    ];
    // The guard does not see closes, so each version is written by a program of its own.
    let static_program = script.replace("CHANGE", "busybox sh -c \"echo $word > notes.txt\"");
    for (line, wanted) in [
        (script.replace("CHANGE", "echo $word > notes.txt"), all),
        (
            script.replace("CHANGE", "echo $word >> notes.txt"),
            appended,
        ),
        (
            script.replace("CHANGE", "echo $word > new; mv new notes.txt"),
            all,
        ),
        (
            script.replace("CHANGE", "rm -f notes.txt; echo $word > notes.txt"),
            all,
        ),
        (python.replace("MODE", "\"w\""), all),
        (python.replace("MODE", "\"a\""), appended),
        (static_program, all),
    ] {
        let tool = ["busybox", "python3"]
            .into_iter()
            .find(|tool| line.contains(tool));
        if tool.is_some_and(|tool| !needs("versions of one process", &[tool])) {
            continue;
        }
        let place = Place::new();
        place.keep(&line, &["--contents=all"]);
        let newest_first: Vec<&str> = wanted.into_iter().rev().collect();
        assert_eq!(place.undone(), newest_first, "{line}");
    }
}

#[test]
fn a_file_made_by_hand_comes_back_although_no_run_had_read_it() {
    for change in [
        "echo new > notes.txt",
        "echo new > other; mv other notes.txt",
        "rm notes.txt; echo new > notes.txt",
        "cp other.txt notes.txt",
        "python3 -c 'open(\"notes.txt\", \"r+\").write(\"new\\n\")'; truncate -s 4 notes.txt",
        "python3 -c 'import os; os.rename(\"other.txt\", \"notes.txt\")'",
        "busybox sh -c 'echo new > notes.txt'",
        "busybox mv other.txt notes.txt",
    ] {
        let tool = ["busybox", "python3"]
            .into_iter()
            .find(|tool| change.starts_with(tool));
        if tool.is_some_and(|tool| !needs("a file made by hand", &[tool])) {
            continue;
        }
        let place = Place::new();
        place.write_aged("notes.txt", "written by hand\n");
        place.write_aged("other.txt", "new\n");
        place.keep(change, &["--contents=all"]);
        let undone = place.undone();
        assert_eq!(
            undone.first().map(String::as_str),
            Some("new\n"),
            "{change}"
        );
        assert_eq!(
            undone.last().map(String::as_str),
            Some("written by hand\n"),
            "{change}"
        );
    }
}

#[test]
fn undo_says_why_there_is_no_former_version_and_what_helps() {
    let place = Place::new();
    place.write_aged("notes.txt", "written by hand\n");
    place.keep("echo new > notes.txt", &["--contents=lazy"]);
    place.run(&["undo", "notes.txt"]).is_error(
        1,
        &[
            "no former version of notes.txt",
            "no recorded command had read",
            "--contents=all",
        ],
    );
    let other = Place::new();
    other.keep(
        "sh -c 'echo one > notes.txt'; sh -c 'echo three > notes.txt'",
        &["--contents=lazy"],
    );
    other.run(&["undo", "notes.txt"]).is_error(
        1,
        &[
            "no former version of notes.txt",
            "1 recorded version cannot",
            "--contents=all",
        ],
    );
}

#[test]
fn after_record_with_wait_all_contents_are_stored() {
    let place = Place::new();
    for word in ["one", "three"] {
        let line = format!("echo {word} > notes.txt");
        let record = [
            "record",
            "--wait",
            "--contents=all",
            "--",
            "sh",
            "-c",
            &line,
        ];
        assert_eq!(place.run(&record).status, 0);
        let shown = place.json(&["show", "--json"]);
        assert_eq!(shown["contents"]["settled"], true, "{shown}");
    }
}
