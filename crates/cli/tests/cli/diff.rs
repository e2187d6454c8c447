//! `diff`: the first difference between two runs.

mod text;

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

/// Contents of the same size, without digests.
#[test]
fn what_could_not_be_compared_is_not_called_the_same() {
    let place = Place::new();
    let keep = |text: &str| {
        place.write_aged("in", text);
        place.keep("cat in > out", &["--contents=off"])
    };
    let (a, b) = (keep("one\n"), keep("two\n"));
    let of_out = [format!("out@{a}"), format!("out@{b}")];
    let sides = [[a.as_str(), b.as_str()], [&of_out[0], &of_out[1]]];
    for [x, y] in sides {
        for options in [&[][..], &["--level", "process"]] {
            let text = place.run(&[&["diff", x, y], options].concat());
            assert_eq!(text.status, 3, "{text:?}");
            let denies = text.out.contains("no difference");
            assert!(!denies && text.out.contains("in"), "{text:?}");
        }
        let answer = place.run(&["diff", x, y, "--json"]);
        let json: Value = serde_json::from_str(&answer.out).unwrap();
        assert_eq!(
            (answer.status, &json["answer"], &json["same"]),
            (3, &"unknown".into(), &false.into()),
            "{json}"
        );
        assert_eq!(json["unknown"], serde_json::json!(["in", "out"]), "{json}");
        assert_eq!(json["unknown_causes"], serde_json::json!(["in"]), "{json}");
    }
}

#[test]
fn answers_of_the_kernel_are_no_files_that_could_not_be_compared() {
    let place = Place::new();
    let line = "cat /proc/self/stat /proc/uptime /dev/null > /dev/null";
    let (a, b) = (place.keep(line, &[]), place.keep(line, &[]));
    assert_eq!(diff(&place, &[&a, &b])["answer"], "same");
}

#[test]
fn noted_values_are_compared() {
    let place = Place::new();
    let keep = |rate: &str| {
        place.write_aged("p.json", &format!("{{\"rate\": {rate}, \"same\": 1}}"));
        let options = ["--param-from", "p.json", "--metric-from", "m.json"];
        place.keep("cp p.json m.json", &options)
    };
    let (a, b) = (keep("1"), keep("2"));
    let answer = diff(&place, &[&a, &b]);
    let all = told(&answer);
    for kind in ["parameter", "metric"] {
        assert!(all.contains(&(kind.into(), "rate".into())), "{answer}");
        assert!(!all.contains(&(kind.into(), "same".into())), "{answer}");
    }
    let json = &answer["differences"][0];
    assert_eq!(
        (&json["kind"], &json["a"], &json["b"], &json["weight"]),
        (&"parameter".into(), &"1".into(), &"2".into(), &"own".into())
    );
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
