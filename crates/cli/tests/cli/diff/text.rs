//! The text of `diff`: causes, outputs and their changes.

use backstory_testkit::need::needs;

use super::diff;
use crate::Place;

/// The lines of the default view of `diff`.
fn view(place: &Place, args: &[&str]) -> String {
    let answer = place.run(&[&["diff"], args].concat());
    assert!(answer.status <= 1 && answer.err.is_empty(), "{answer:?}");
    answer.out
}

/// The number of the line with this text.
fn line_of(text: &str, part: &str) -> usize {
    let found = text.lines().position(|line| line.contains(part));
    found.unwrap_or_else(|| panic!("no {part:?} in\n{text}"))
}

#[test]
fn the_default_view_has_causes_then_outputs_with_their_changes() {
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    let line = "sort in > middle; cat middle > out";
    let a = place.keep(line, &[]);
    place.write_aged("in", "b\na\nc\n");
    let b = place.keep(line, &[]);
    let text = view(&place, &[&a, &b]);
    let lines = [
        "Causes",
        "  in  1 line added",
        "      +c",
        "Outputs that differ",
        "  out  1 line added",
        "1 intermediate file: middle",
    ];
    let at: Vec<usize> = lines.iter().map(|part| line_of(&text, part)).collect();
    assert!(at.is_sorted(), "{text}");
    assert!(text.contains("⇒ out\n"), "{text}");
    let process = view(&place, &["--level", "process", &a, &b]);
    assert!(process.contains("differs first in"), "{process}");
}

#[test]
fn variables_of_the_session_are_folded_behind_changes_of_the_users_own() {
    let place = Place::new();
    place.write_aged("in", "one\n");
    let record = |name: &str| {
        let mut command =
            place.command(&["record", "--name", name, "--", "sort", "-o", "out", "in"]);
        command.env("TERM", name).env("SSH_TTY", name);
        assert!(command.status().unwrap().success());
        assert_eq!(place.run(&["index", "--wait"]).status, 0);
    };
    record("first");
    place.write_aged("in", "two\n");
    record("second");
    let text = view(&place, &["first", "second"]);
    assert!(
        line_of(&text, "  in  ") < line_of(&text, "2 variables of the session"),
        "{text}"
    );
    let answer = diff(&place, &["first", "second"]);
    let weight = |of: &str| {
        let all = answer["differences"].as_array().unwrap().iter();
        all.filter(|one| one["of"] == of)
            .map(|one| one["weight"].clone())
            .next()
    };
    assert_eq!(weight("in"), Some("own".into()));
    assert_eq!(weight("TERM"), Some("noise".into()));
}

#[test]
fn one_path_compares_the_two_latest_versions_of_the_file() {
    let place = Place::new();
    place.write_aged("in", "one\n");
    let a = place.keep("sort in > out", &[]);
    place.write_aged("in", "two\n");
    let b = place.keep("sort in > out", &[]);
    place.keep("sort in > out", &[]);
    let answer = diff(&place, &["out"]);
    assert_eq!(answer["a"], serde_json::json!([a]), "{answer}");
    assert_eq!(answer["b"], serde_json::json!([b]), "{answer}");
    assert_eq!(answer["earliest"]["of"], "in");
    assert_eq!(answer["content"]["summary"], "1 of 1 line changed");
    // A file that runs only read: what was edited between them.
    let answer = diff(&place, &["in"]);
    assert_eq!(
        answer["content"]["summary"], "1 of 1 line changed",
        "{answer}"
    );
    place.write_aged("out", "by hand\n");
    let text = view(&place, &["out"]);
    assert!(
        text.contains("as it is now") && text.contains("+by hand"),
        "{text}"
    );
    place.keep("echo x > once", &[]);
    place
        .run(&["diff", "once"])
        .is_error(1, &["only one version"]);
}

#[test]
fn one_path_compares_two_versions_of_one_run_if_there_is_no_other_run() {
    let place = Place::new();
    let lines = "echo one > out; echo two > out; echo three > out";
    let run = place.keep(lines, &["--contents=all"]);
    let answer = diff(&place, &["out"]);
    assert_eq!(answer["a"], serde_json::json!([run]), "{answer}");
    assert_eq!(answer["b"], serde_json::json!([run]), "{answer}");
    let text = view(&place, &["out"]);
    assert!(text.contains("-two") && text.contains("+three"), "{text}");
    for command in ["undo", "redo"] {
        assert_eq!(place.run(&[command, "out"]).status, 0);
    }
    let text = view(&place, &["out"]);
    assert!(text.contains("-two") && text.contains("+three"), "{text}");
    // With another run, the work of one is compared with that of the other.
    place.keep("echo other > out; echo three > out", &["--contents=all"]);
    let text = view(&place, &["out"]);
    assert!(text.contains("same content"), "{text}");
    place.keep("echo four > out; echo five > out", &["--contents=all"]);
    let text = view(&place, &["out"]);
    assert!(text.contains("-three") && text.contains("+five"), "{text}");
}

#[test]
fn what_undo_put_back_is_no_unrecorded_change() {
    let place = Place::new();
    for line in ["one", "two"] {
        place.keep(&format!("echo {line} > out"), &["--contents=all"]);
    }
    assert_eq!(place.run(&["undo", "out"]).status, 0);
    let text = view(&place, &["out"]);
    assert!(
        text.contains("`undo` or `redo` put this content back"),
        "{text}"
    );
    assert!(text.contains("-two") && text.contains("+one"), "{text}");
    let log = place.run(&["log", "--", "out"]).out;
    assert!(
        log.contains("put back by `backstory undo`") && !log.contains("outside"),
        "{log}"
    );
    place.write("out", "by hand\n");
    let text = view(&place, &["out"]);
    assert!(text.contains("no recorded run made this"), "{text}");
    let log = place.run(&["log", "--", "out"]).out;
    assert!(log.contains("outside of recorded runs"), "{log}");
}

#[test]
fn files_of_the_user_and_files_of_both_runs_are_not_called_otherwise() {
    let place = Place::new();
    let line = "[ ! -e made ] || read -r x < made; cp src made; read -r y < src; echo $y > out";
    let run = |content: &str| {
        place.write_aged("src", content);
        place.keep(line, &["--contents=lazy"])
    };
    let (a, b) = (run("one\n"), run("two\n"));
    let text = view(&place, &[&a, &b]);
    assert!(text.contains("1 file of your own (made)"), "{text}");
    assert!(!text.contains("of the system (made"), "{text}");
    // The second version comes from both runs: its run read what the first run had made.
    let text = view(&place, &["out"]);
    assert!(
        text.contains("1 file in the history of b only (made)"),
        "{text}"
    );
}

#[test]
fn other_arguments_of_a_command_are_the_cause_under_different_callers() {
    if !needs("two callers of a compiler", &["make", "gcc"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("m.c", "int f(int x) { return x * 2 + x; }\n");
    place.write_aged("n.c", "int g(void) { return 0; }\n");
    let rules = "all: n.o m.o\n%.o: %.c\n\tgcc $(CFLAGS) -c $< -o $@\n";
    place.write_aged("Makefile", rules);
    place.keep("gcc -O0 -c m.c -o m.o; true", &[]);
    let made = place.run(&[
        "record",
        "--contents=lazy",
        "--",
        "make",
        "-B",
        "-j2",
        "CFLAGS=-O2",
    ]);
    assert_eq!(made.status, 0, "{made:?}");
    let text = view(&place, &["m.o"]);
    assert!(
        text.contains("  command gcc  gcc -O0 -c m.c -o m.o → gcc -O2 -c m.c -o m.o  ⇒ m.o\n"),
        "{text}"
    );
    // Another target of the same build is no cause.
    assert!(!text.contains("n.c") && !text.contains("only:"), "{text}");
    // The tests' program has no reader of file formats beside it, and says so once.
    assert_eq!(text.matches("backstory-inspect").count(), 1, "{text}");
}

#[test]
fn callers_of_one_side_that_only_launched_the_same_command_are_no_cause() {
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    place.sh("record sh -c 'sort in > out'");
    place.write_aged("in", "c\nb\na\n");
    place.sh("record env sh -c 'sort in > out'");
    let view = view(&place, &["out"]);
    assert!(
        line_of(&view, "  in  ") > line_of(&view, "Causes"),
        "{view}"
    );
    assert!(!view.contains("\n  command of "), "{view}");
}

#[test]
fn a_shell_that_only_started_a_command_of_its_side_gives_way_to_it() {
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    place.sh("record cp in out");
    place.sh("record sh -c 'true; sort -o out in; true'");
    let text = view(&place, &["out"]);
    let cause = "  command of b only: sort -o out in  ⇒ out\n";
    assert!(text.contains(cause), "{text}");
    let folded = "1 command of one side that only started others (";
    assert!(text.contains(folded), "{text}");
}

#[test]
fn a_build_that_repeats_only_what_is_out_of_date_differs_in_its_sources() {
    if !needs("two builds", &["make"]) {
        return;
    }
    let place = Place::new();
    let rules = "all: x.out y.out\n%.out: %.in\n\tsort $< > $@\n";
    place.write_aged("Makefile", rules);
    place.write_aged("x.in", "one\n");
    place.write_aged("y.in", "one\n");
    let a = place.keep("make", &[]);
    place.write_aged("x.in", "two\n");
    let b = place.keep("make", &[]);
    let text = view(&place, &[&a, &b]);
    assert!(
        line_of(&text, "  x.in  1 of 1 line changed") < line_of(&text, "  x.out  "),
        "{text}"
    );
    let causes: Vec<&str> = text
        .lines()
        .skip_while(|line| *line != "Causes")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| !line.starts_with("   "))
        .collect();
    assert_eq!(causes.len(), 1, "{text}");
}

#[test]
fn a_file_that_the_second_run_read_and_changed_is_an_output_that_differs() {
    let place = Place::new();
    let a = place.keep("echo one > log.txt", &[]);
    let b = place.keep("cat log.txt > /dev/null; echo two >> log.txt", &[]);
    let text = view(&place, &[&a, &b]);
    assert!(text.contains("  log.txt  1 line added"), "{text}");
    assert!(!text.contains("same"), "{text}");
}

#[test]
fn a_table_is_compared_by_its_cells() {
    let place = Place::new();
    if !place.has_inspector() {
        return;
    }
    let table = |last: &str| format!("id,x\na,1\nb,{last}\n");
    place.write_aged("in.csv", &table("2"));
    let a = place.keep("cat in.csv > out.csv", &[]);
    place.write_aged("in.csv", &table("3"));
    let b = place.keep("cat in.csv > out.csv", &[]);
    let text = view(&place, &[&a, &b]);
    assert!(
        text.contains("  out.csv  1 cell changed in 1 of 2 rows"),
        "{text}"
    );
    assert!(text.contains("      b, x: 2 → 3"), "{text}");
    let answer = diff(&place, &[&a, &b]);
    let all = answer["differences"].as_array().unwrap();
    assert_eq!(all[0]["content"]["kind"], "table", "{answer}");
    assert_eq!(all[0]["content"]["cells_changed"], 1, "{answer}");
}

/// A parameter and a variable differ for certain. The file that could not be compared stands first.
#[test]
fn an_own_file_that_could_not_be_compared_comes_before_all_known_causes() {
    let place = Place::new();
    let keep = |rate: &str, word: &str| {
        place.write_aged("p.json", &format!("{{\"rate\": {rate}}}"));
        let options = ["--contents=off", "--param-from", "p.json"];
        place.keep(&format!("cat p.json > out; : {word}"), &options)
    };
    let (a, b) = (keep("1", "x"), keep("2", "y"));
    let text = view(&place, &[&a, &b]);
    let first = line_of(&text, "Not compared, so it may be the cause");
    let named = line_of(&text, "  p.json");
    let known = line_of(&text, "These differ, and may be the cause, too");
    let parameter = line_of(&text, "  parameter rate  1 → 2");
    assert!(
        first < named && named < known && known < parameter,
        "{text}"
    );
    assert!(!text.contains("Causes"), "{text}");
    let all = place.run(&["diff", &a, &b, "--level", "process"]).out;
    let unknown = line_of(&all, "p.json could not be compared, and may differ first");
    assert!(unknown < line_of(&all, "differs first in"), "{all}");
}

#[test]
fn diff_says_which_content_it_lacks_and_what_helps() {
    let place = Place::new();
    for word in ["one", "three"] {
        place.keep(&format!("echo {word} > notes.txt"), &["--contents=off"]);
    }
    let answer = place.run(&["diff", "notes.txt"]);
    assert_eq!(answer.status, 1, "{answer:?}");
    for words in [
        "The contents were not compared",
        "notes.txt is not stored",
        "--contents=off",
        "--contents=lazy",
    ] {
        assert!(answer.out.contains(words), "{answer:?}");
    }
    assert!(!answer.out.contains("no difference"), "{answer:?}");
    let json = diff(&place, &["notes.txt"]);
    let why = json["content_not_compared_because"].as_str().unwrap();
    assert!(why.contains("--contents=lazy"), "{json}");
}
