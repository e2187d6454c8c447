//! `diff`: the first difference between two runs.

use std::fs;

use backstory_testkit::need::needs;
use serde_json::Value;

use super::Place;

/// The kinds and subjects of all differences, in their order.
fn told(answer: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let all = answer["differences"].as_array().unwrap().iter();
    all.map(|one| (text(&one["kind"]), text(&one["of"])))
        .collect()
}

fn diff(place: &Place, args: &[&str]) -> Value {
    let answer = place.run(&[&["diff", "--json"], args].concat());
    assert!(answer.status <= 1 && answer.err.is_empty(), "{answer:?}");
    let read: Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!(read["same"], answer.status == 0);
    read
}

#[test]
fn a_file_remade_at_once_by_the_next_run_is_no_difference() {
    if !backstory_testkit::need::needs("two runs before anybody looks", &["flock"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    assert_eq!(place.run(&["index"]).status, 0);
    // The second run makes the files anew before the results of the first can be examined.
    let record = |name| {
        format!(
            "'{}' record --name {name} -- sh -c 'sort in > out'",
            place.program()
        )
    };
    let lock = place.stage.store().join("index.lock");
    let mut both = place.stage.command("flock");
    both.arg(lock).args([
        "sh",
        "-c",
        &format!("{} && {}", record("one"), record("two")),
    ]);
    both.env("BACKSTORY_STORE", place.stage.store());
    let output = both.current_dir(place.work()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    let rules = place.run(&["export", "make", "one"]).out;
    assert!(rules.contains("\nout: in\n\tsort in > out\n"), "{rules}");
    let answer = place.run(&["diff", "one", "two"]);
    assert!(!answer.out.contains("output"), "{}", answer.out);
    assert!(answer.out.contains("out"), "{}", answer.out);
}

#[test]
fn two_runs_of_the_same_are_the_same() {
    let place = Place::new();
    place.write_aged("in", "one\n");
    let a = place.keep("sort in | uniq > out", &["--contents=lazy"]);
    let b = place.keep("sort in | uniq > out", &["--contents=lazy"]);
    let answer = diff(&place, &[&a, &b]);
    assert_eq!(told(&answer), []);
    assert_eq!(answer["same_outputs"][0], "out");
    let text = place.run(&["diff", &a, &b]);
    assert!(
        text.status == 0 && text.out.contains("no difference"),
        "{text:?}"
    );
}

#[test]
fn a_changed_input_comes_first_and_is_what_fed_the_output() {
    let place = Place::new();
    place.write_aged("in", "one\n");
    place.write_aged("other", "the same for both\n");
    let line = "cat other > untouched; sort in > sorted; uniq sorted > out";
    let a = place.keep(line, &["--contents=lazy"]);
    place.write_aged("in", "two\n");
    let b = place.keep(line, &["--contents=lazy"]);
    let answer = diff(&place, &[&a, &b]);
    assert_eq!(answer["earliest"]["kind"], "input");
    assert_eq!(answer["earliest"]["of"], "in");
    let out = answer["differences"].as_array().unwrap().iter();
    let out = out
        .filter(|one| one["kind"] == "output")
        .collect::<Vec<_>>();
    assert_eq!(out.len(), 2, "{answer}");
    for one in out {
        assert_eq!(one["fed_by"], serde_json::json!([0]), "{answer}");
    }
    assert_eq!(answer["same_outputs"], serde_json::json!(["untouched"]));
    let only = diff(&place, &["untouched", "--in", &a, &b]);
    assert_eq!(
        only["differences"].as_array().unwrap().len(),
        0,
        "what did not go into it is not compared: {only}"
    );
    let versions = diff(&place, &[&format!("out@{a}"), &format!("out@{b}")]);
    assert_eq!(versions["earliest"]["of"], "in");
}

/// The name by which a file was first written may be gone, and several other names may be left.
#[test]
fn outputs_are_compared_by_their_final_names() {
    let place = Place::new();
    let line = "exec 3>t; cat in >&3; ln t one; ln t two; rm t; exec 3>&-; cat in > u; mv u moved; cat in > same.tmp; mv same.tmp in.copy; echo x > z";
    place.write_aged("in", "a\n");
    let a = place.keep(line, &["--contents=lazy"]);
    ["one", "two", "moved", "in.copy", "z"]
        .into_iter()
        .for_each(|name| std::fs::remove_file(place.path(name)).unwrap());
    place.write_aged("in", "b\n");
    let b = place.keep(line, &["--contents=lazy"]);
    let answer = diff(&place, &[&a, &b]);
    let mut outputs: Vec<String> = told(&answer)
        .into_iter()
        .filter(|(kind, _)| kind == "output")
        .map(|(_, of)| of)
        .collect();
    outputs.sort();
    assert_eq!(outputs, ["in.copy", "moved", "one", "two"], "{answer}");
    assert_eq!(answer["same_outputs"], serde_json::json!(["z"]), "{answer}");
    assert_eq!(answer["unknown"], serde_json::json!([]), "{answer}");
    for one in answer["differences"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["kind"] == "output")
    {
        assert_eq!(one["fed_by"], serde_json::json!([0]), "{answer}");
    }
}

/// No file that was read differs. The directory that `ls` and the shell listed does.
#[test]
fn new_names_in_a_listed_directory_are_reported_with_their_effects() {
    let place = Place::new();
    std::fs::create_dir(place.path("d")).unwrap();
    place.stage.user().owns(place.path("d").as_ref()).unwrap();
    place.write("d/gone", "x\n");
    place.write_aged("d/stays", "x\n");
    let line = "ls d > out; : > d/own; echo d/st* > globbed";
    let a = place.keep(line, &["--contents=lazy"]);
    std::fs::remove_file(place.path("d/gone")).unwrap();
    place.write_aged("d/more", "x\n");
    std::fs::remove_file(place.path("d/own")).unwrap();
    let b = place.keep(line, &["--contents=lazy"]);
    let answer = diff(&place, &[&a, &b]);
    let first = &answer["earliest"];
    assert_eq!(
        [&first["kind"], &first["of"], &first["a"], &first["b"]],
        ["listing", "d", "gone", "more"],
        "{answer}"
    );
    let all = answer["differences"].as_array().unwrap();
    let out = all.iter().find(|one| one["of"] == "out").unwrap();
    assert_eq!(out["fed_by"], serde_json::json!([0]), "{answer}");
    assert!(told(&diff(&place, &[&a, &a])).is_empty());
    let text = place.run(&["diff", "--level", "process", &a, &b]);
    assert!(text.out.contains("fed by listing d"), "{text:?}");
}

#[test]
fn arguments_environment_and_commands_are_distinguished() {
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    place.write_aged(
        "run.sh",
        "sort $FLAG in > out\n[ -z \"$MORE\" ] || cat in > more\n",
    );
    let record = |flag: &str, more: &str| {
        let summary = place.path("..s.json");
        let mut command = place.command(&[
            "record",
            "--contents=lazy",
            "--json-summary",
            &summary,
            "--",
            "sh",
            "run.sh",
        ]);
        command.env("FLAG", flag).env("MORE", more);
        assert!(command.status().unwrap().success());
        let read: Value = serde_json::from_slice(&std::fs::read(&summary).unwrap()).unwrap();
        read["run"].as_str().unwrap().to_owned()
    };
    let (a, b) = (record("-n", ""), record("-r", "yes"));
    let all = told(&diff(&place, &[&a, &b]));
    let has = |kind: &str, of: &str| all.contains(&(kind.to_owned(), of.to_owned()));
    assert!(
        has("environment", "FLAG") && has("environment", "MORE"),
        "{all:?}"
    );
    assert!(
        has("arguments", "sort") && has("command", "cat") && has("output", "more"),
        "{all:?}"
    );
    assert_eq!(all[0].0, "environment");
}

/// One kind of difference after the other: a change between two runs of one line is reported first.
#[test]
fn each_kind_of_difference_has_its_word() {
    let place = Place::new();
    let changes: [(&str, &str, &str, &str); 4] = [
        (
            "program",
            "tool",
            "#!/bin/sh\necho one\n",
            "#!/bin/sh\necho two\n",
        ),
        ("input", "data", "one\n", "two\n"),
        ("variable", "set", "export SET=one\n", "export SET=two\n"),
        ("exit", "ends", "exit 1\n", "exit 2\n"),
    ];
    let line =
        "./tool data > out; cat data >> out; . ./set; sh -c 'echo $SET >> out'; sh ends; true";
    let write = |name: &str, text: &str| place.write_program(name, text);
    changes
        .iter()
        .for_each(|(_, name, text, _)| write(name, text));
    let mut before = place.keep(line, &["--contents=lazy"]);
    for (kind, name, _, text) in changes {
        write(name, text);
        let after = place.keep(line, &["--contents=lazy"]);
        let all = told(&diff(&place, &[&before, &after]));
        assert!(all.iter().any(|(told, _)| told == kind), "{kind}: {all:?}");
        let general = ["machine", "environment", "directory", "library", "command"];
        assert!(
            !all.iter().any(|(told, _)| general.contains(&told.as_str())),
            "{kind}: {all:?}"
        );
        before = after;
    }
}

#[test]
fn another_library_is_reported_as_a_library() {
    if !needs("two versions of a library", &["gcc"]) {
        return;
    }
    let place = Place::new();
    let build = |number: &str| {
        place.write_aged("own.c", &format!("int own(void) {{ return {number}; }}\n"));
        let mut gcc = place.stage.command("gcc");
        gcc.args(["-shared", "-fPIC", "-o", "libown.so.1", "own.c"])
            .current_dir(place.work());
        assert!(gcc.status().unwrap().success());
        place.age("libown.so.1");
    };
    let line = "LD_PRELOAD=$PWD/libown.so.1 cat own.h > out";
    place.write_aged("own.h", "int own(void);\n");
    build("1");
    let a = place.keep(line, &["--contents=lazy"]);
    build("2");
    let b = place.keep(line, &["--contents=lazy"]);
    let answer = diff(&place, &[&a, &b]);
    assert_eq!(
        told(&answer),
        [("library".to_owned(), "libown.so.1".to_owned())]
    );
    assert_eq!(answer["same_outputs"], serde_json::json!(["out"]));
}

/// `setarch` makes the kernel report another version.
#[test]
fn another_kernel_is_reported_first() {
    if !needs("two kernels", &["setarch"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("in", "text\n");
    let a = place.keep("cat in > out", &["--contents=lazy"]);
    let mut older = place.stage.command("setarch");
    older.args(["x86_64", "--uname-2.6", &place.program()]);
    older.args([
        "record",
        "--name",
        "older",
        "--contents=lazy",
        "--",
        "sh",
        "-c",
        "cat in > out",
    ]);
    older
        .env("BACKSTORY_STORE", place.stage.store())
        .current_dir(place.work());
    assert!(older.status().unwrap().success());
    let answer = diff(&place, &[&a, "older"]);
    let first = &answer["earliest"];
    assert_eq!(
        [&first["kind"], &first["of"]],
        ["machine", "kernel"],
        "{answer}"
    );
    assert!(first["b"].as_str().unwrap().contains("2.6"), "{answer}");
}

#[test]
fn the_same_command_in_two_directories_is_the_same_step() {
    let place = Place::new();
    place.write_aged("in", "text\n");
    let line =
        |dir: &str| format!("mkdir {dir} && cp in {dir} && cd {dir} && exec sh -c 'cat in > out'");
    let a = place.keep(&line("one"), &["--contents=lazy"]);
    let b = place.keep(&line("one2"), &["--contents=lazy"]);
    let all = told(&diff(&place, &[&a, &b]));
    assert!(all.iter().any(|(kind, _)| kind == "directory"), "{all:?}");
    assert!(
        !all.iter().any(|(kind, of)| kind == "input" && of == "in"),
        "{all:?}"
    );
}

#[test]
fn files_beside_the_directories_of_two_runs_are_matched_by_their_place() {
    let place = Place::new();
    for tree in ["a", "b"] {
        for directory in ["", "/build", "/out"] {
            let path = place.work().join(format!("{tree}{directory}"));
            fs::create_dir(&path).unwrap();
            place.stage.user().owns(&path).unwrap();
        }
        place.write_aged(&format!("{tree}/source"), &format!("{tree}\n"));
    }
    place.write_aged("shared", "the same file for both\n");
    for tree in ["a", "b"] {
        place.sh(&format!(
            "cd {tree}/build && record sh -c \
             'cat ../source ../../shared > ../out/x; sort ../../shared > ../out/same; exec cp ../out/x $1' sh {}",
            place.path(&format!("{tree}/out/copy"))
        ));
    }
    let runs = place.json(&["log", "--json"]);
    let [b, a] = [0, 1].map(|at| runs[at]["run"].as_str().unwrap());
    let answer = diff(&place, &[a, b]);
    let of = |wanted: &str| -> Vec<String> {
        let all = told(&answer).into_iter();
        let names = all.filter(|(kind, _)| kind == wanted).map(|(_, of)| of);
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    assert_eq!(of("input"), ["../source"], "{answer}");
    assert_eq!(of("output"), ["../out/copy", "../out/x"], "{answer}");
    assert_eq!(answer["same_outputs"], serde_json::json!(["../out/same"]));
    for kind in ["arguments", "command", "directory"] {
        assert!(of(kind).is_empty(), "{answer}");
    }
}

#[test]
fn runs_that_cannot_be_compared_name_the_missing_argument() {
    let place = Place::new();
    let a = place.record("true");
    place.run(&["diff", &a]).is_error(2, &["--in"]);
    place
        .run(&["diff", &a, "nothing"])
        .is_error(1, &["nothing"]);
    place
        .run(&["diff", &a, "./nothing"])
        .is_error(1, &["nothing"]);
}

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
fn names_that_differ_each_time_are_matched() {
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    let line = "t=$(mktemp ./part.XXXXXXXX); sort in > $t; uniq $t > log.$$; cat --version > /dev/null -- ; d=$(mktemp -d); cat -u $t > $d/x; rm -r $d";
    let a = place.keep(line, &[]);
    let b = place.keep(line, &[]);
    let answer = diff(&place, &[&a, &b]);
    let found: Vec<_> = told(&answer)
        .into_iter()
        .filter(|(kind, _)| kind != "listing")
        .collect();
    assert_eq!(found, [], "{answer}");
}

#[test]
fn a_temporary_file_inside_of_an_argument_is_matched() {
    if !needs("a linker with a plug-in", &["gcc"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("main.c", "int main(void) { return 0; }\n");
    let a = place.keep("gcc main.c -o main", &[]);
    let b = place.keep("gcc main.c -o main", &[]);
    assert_eq!(told(&diff(&place, &[&a, &b])), []);
}

#[test]
fn the_output_of_the_whole_command_is_no_output() {
    let place = Place::new();
    place.write_aged("in", "one\n");
    let record = |name: &str| {
        let log = fs::File::create(place.path(&format!("{name}.log"))).unwrap();
        let mut command = place.command(&["record", "--name", name, "--", "sh", "-c"]);
        command.arg(format!("cat in; echo {name} >&2; cat in > out"));
        command.stderr(log.try_clone().unwrap()).stdout(log);
        assert!(command.status().unwrap().success());
        assert_eq!(place.run(&["index", "--wait"]).status, 0);
    };
    record("first");
    record("second");
    let all = told(&diff(&place, &["first", "second"]));
    assert!(all.iter().all(|(kind, _)| kind != "output"), "{all:?}");
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
    assert!(!view.contains("command of"), "{view}");
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
