//! An export that is executed freezes no words that a change may make wrong. If something decided
//! on the commands of a run, the whole command of the run is exported.

use std::fs;

use backstory_testkit::need::needs;

use super::{Answer, Place};

/// Scripts that make `o`, each with a change after which another execution makes another `o`.
const DECIDED: [(&str, &str); 10] = [
    // Words from the content of a file.
    ("head -n $(cat n) data > o", "echo 1 > n"),
    ("N=$(cat n); head -n $N data > o", "echo 1 > n"),
    (". ./settings; head -n $W data > o", "echo W=1 > settings"),
    // Conditions.
    (
        "if grep -q 3 n; then sort data > o; else cat data > o; fi",
        "echo 1 > n",
    ),
    (
        "if test -e more; then cat data > o; else sort data > o; fi",
        "touch more",
    ),
    // Names in a directory.
    ("cat d/* > o", "echo z > d/z"),
    // The mode of a result, which an own check shows here.
    (
        "cat n > o; chmod 755 o; ls -l o | cut -c 1-10 >> o",
        "echo 1 > n",
    ),
    // The place in an open file.
    ("(head -c 2 > begin; cat) < data > o", "echo first > data"),
    // A directory behind a link.
    ("(cd link && cat a) > o", "rm link; ln -s e link"),
    // A file that is added to.
    (
        "for i in $(cat n); do tail -n $i data >> o; done",
        "echo 1 > n",
    ),
];

/// A place with the files that the scripts read.
fn place() -> Place {
    let place = Place::with_files(&[
        ("data", "c\nb\na\nd\n"),
        ("n", "3\n"),
        ("settings", "W=2\n"),
        ("d/a", "in d\n"),
        ("e/a", "in e\n"),
    ]);
    std::os::unix::fs::symlink("d", place.path("link")).unwrap();
    place
}

fn ran(place: &Place, words: &[&str]) -> Answer {
    let mut command = place.stage.command(words[0]);
    let command = command.args(&words[1..]).current_dir(place.work());
    Answer::of(command.stdin(std::process::Stdio::null()).output().unwrap())
}

fn o(place: &Place) -> Option<String> {
    fs::read_to_string(place.path("o")).ok()
}

/// Changes files, exports `o`, and executes the export. It leaves what the recorded command, which
/// is `fresh`, leaves after the change.
#[track_caller]
fn is_right(place: &Place, format: &str, change: &str, fresh: &str) {
    let before = o(place);
    assert_eq!(ran(place, &["sh", "-c", change]).status, 0);
    let answer = place.run(&["export", format, "o", "-o", "again"]);
    assert_eq!(answer.status, 0, "{fresh}: {answer:?}");
    let text = fs::read_to_string(place.path("again")).unwrap();
    let words = match format {
        "make" => ["make", "-s", "-f", "again"].as_slice(),
        _ => ["bash", "again"].as_slice(),
    };
    let made = ran(place, words);
    assert_eq!(made.status, 0, "{fresh}: {made:?}\n{text}");
    let exported = o(place);
    drop(fs::remove_file(place.path("o")));
    ran(place, &["sh", "-c", fresh]);
    assert_eq!(exported, o(place), "{format} of {fresh}:\n{text}");
    assert_ne!(exported, before, "{fresh}: the change has no effect");
}

#[test]
fn an_export_is_right_after_a_change_of_what_decided_on_its_commands() {
    if !needs("an exported makefile", &["make", "bash"]) {
        return;
    }
    for (script, change) in DECIDED {
        for format in ["shell", "make"] {
            let place = place();
            place.write_aged("prog.sh", &format!("{script}\n"));
            place.sh("record sh prog.sh");
            is_right(&place, format, change, "sh prog.sh");
        }
    }
}

#[test]
fn an_export_gives_the_command_the_file_that_the_caller_gave_it() {
    if !needs("an exported makefile", &["make", "bash", "tee", "xargs"]) {
        return;
    }
    for command in ["tee o < data", "xargs -n 1 sh -c 'echo $0 >> o' < data"] {
        for format in ["shell", "make"] {
            let place = place();
            place.sh(&format!("record {command} > /dev/null"));
            is_right(&place, format, "echo new >> data", command);
        }
    }
}

#[test]
fn an_export_fails_where_a_recorded_pipefail_ends_the_script() {
    if !needs("a script for bash", &["bash", "make"]) {
        return;
    }
    let script = "set -eo pipefail\ncat data | sort > mid\nuniq mid > o\n";
    for (format, words) in [
        ("shell", ["bash", "again"].as_slice()),
        ("make", ["make", "-f", "again"].as_slice()),
    ] {
        let place = place();
        place.write_aged("prog.sh", script);
        place.sh("record bash prog.sh");
        let answer = place.run(&["export", format, "o", "-o", "again"]);
        assert_eq!(answer.status, 0, "{answer:?}");
        fs::remove_file(place.path("data")).unwrap();
        assert_ne!(ran(&place, words).status, 0, "{format}");
    }
}

#[test]
fn a_run_whose_typed_input_decided_and_is_gone_is_not_exported() {
    let place = place();
    place.sh("echo 2 | record sh -c 'read n; head -n $n data > o'");
    for format in ["make", "shell", "snakemake"] {
        let answer = place.run(&["export", format, "o"]);
        answer.is_error(1, &["sh read", "a pipe", "record it with a script"]);
    }
}

#[test]
fn commands_on_which_nothing_decided_stay_steps() {
    for script in [
        "cat data > mid\nsort mid > o",
        "set -e\nmkdir -p d\ncat data > mid\nsort mid > o",
        "(cd d && cat a) > mid\nfor i in 1 2; do sort mid > o; done",
    ] {
        let place = place();
        place.write_aged("prog.sh", &format!("{script}\n"));
        place.sh("record sh prog.sh");
        let text = place.run(&["export", "make", "o"]).out;
        assert!(text.contains("\tsort mid > o"), "{script}: {text}");
        assert!(!text.contains("prog.sh"), "{script}: {text}");
    }
}

#[test]
fn a_makefile_whose_words_another_file_has_is_one_step() {
    if !needs("a makefile", &["make"]) {
        return;
    }
    for (first, words, is_whole) in [
        ("", "$(shell cat n)", true),
        ("include settings", "$(W)", true),
        ("W = 2", "$(W)", false),
    ] {
        let place = place();
        let rule = format!("{first}\no: data\n\thead -n {words} data > o\n");
        place.write_aged("Makefile", &rule);
        place.sh("record make -s");
        let text = place.run(&["export", "make", "o"]).out;
        assert_eq!(text.contains("\tmake -s"), is_whole, "{words}: {text}");
    }
}
