//! The files and processes of runs are listed and selected.

use backstory_testkit::need;

use super::at_a_terminal;
use crate::Place;

/// The paths that `files` lists with these options.
#[track_caller]
fn files(place: &Place, options: &[&str]) -> Vec<String> {
    let files = place.json(&[&["files", "--json"], options].concat());
    let work = place.path("");
    let path = |file: &serde_json::Value| {
        let path = file["path"].as_str().unwrap();
        path.strip_prefix(&work).unwrap_or(path).to_owned()
    };
    files.as_array().unwrap().iter().map(path).collect()
}

#[test]
fn files_are_selected_by_what_was_done_to_them() {
    let place = Place::new();
    place.write("a", "text");
    place.write("gone", "text");
    place.record("cat a > b; rm gone; test -e missing || true");
    assert_eq!(files(&place, &["--read", "--under", "."]), ["a"]);
    assert_eq!(files(&place, &["--written", "--under", "."]), ["b"]);
    assert_eq!(files(&place, &["--deleted"]), ["gone"]);
    let looked = files(&place, &["--looked-up", "--under", "."]);
    assert!(
        looked.contains(&"missing".to_owned()) && !looked.contains(&"b".to_owned()),
        "{looked:?}"
    );
    assert_eq!(
        files(&place, &["--written", "--deleted", "--under", "."]),
        ["b", "gone"]
    );
}

#[test]
fn files_are_selected_by_program_and_directory() {
    let place = Place::new();
    for dir in ["src", "src2"] {
        std::fs::create_dir(place.work().join(dir)).unwrap();
        place.stage.user().owns(&place.work().join(dir)).unwrap();
        place.write(format!("{dir}/a"), "text");
    }
    place.record("cat src/a > b; cp src2/a c");
    assert_eq!(
        files(&place, &["--by", "cp", "--under", "."]),
        ["c", "src2/a"]
    );
    assert_eq!(files(&place, &["--under", "src"]), ["src/a"]);
    assert_eq!(files(&place, &["--by", "no-such", "--under", "."]), [""; 0]);
}

#[test]
fn own_files_are_neither_the_systems_nor_a_tools() {
    let place = Place::new();
    place.write("a", "text");
    place.record("cat a > b; echo x > /dev/null");
    let own = files(&place, &["--own", "--read", "--written"]);
    assert_eq!(own, ["a", "b"]);
    let text = place.run(&["files", "--own", "--level", "process"]).out;
    assert!(
        text.contains("/a\n") && !text.contains("/dev/null"),
        "{text}"
    );
    assert!(text.contains("… and") && text.contains("--all"), "{text}");
    let all = place.run(&["files", "--all"]).out;
    assert!(
        all.contains("/dev/null") && all.lines().count() > 10,
        "{all}"
    );
}

#[test]
fn own_files_are_the_default_at_a_terminal() {
    if !need::needs("a terminal", &["script"]) {
        return;
    }
    let place = Place::new();
    place.write("a", "text");
    place.record("cat a > b; echo x > /dev/null");
    assert!(!at_a_terminal(&place, "$B files", &[]).contains("/dev/null"));
    assert!(at_a_terminal(&place, "$B files --all", &[]).contains("/dev/null"));
    assert!(place.run(&["files"]).out.contains("/dev/null"));
}

#[test]
fn files_are_sorted_by_size_or_by_time() {
    let place = Place::new();
    place.record("printf 1 > a; printf 333 > b; printf 22 > c");
    let written = |key| files(&place, &["--written", "--under", ".", "--sort", key]);
    assert_eq!(written("size"), ["b", "c", "a"]);
    assert_eq!(written("time"), ["c", "b", "a"]);
    assert_eq!(written("path"), ["a", "b", "c"]);
    assert!(
        place
            .run(&["files", "--sort", "size", "--under", "."])
            .out
            .contains("3 B")
    );
}

#[test]
fn processes_are_selected_by_their_files() {
    let place = Place::new();
    place.write("a", "text");
    place.record("cat a > /dev/null; cp a b; true; /bin/true");
    let programs = |options: &[&str]| -> Vec<String> {
        let lines = place.json(&[&["processes", "--json"], options].concat());
        let name = |line: &serde_json::Value| line["argv"][0].as_str().unwrap().to_owned();
        lines.as_array().unwrap().iter().map(name).collect()
    };
    assert_eq!(programs(&["--written", "--under", "."]), ["cp"]);
    assert_eq!(programs(&["--read", "--under", "a"]), ["cat", "cp"]);
    assert_eq!(programs(&["--by", "c*"]), ["cat", "cp"]);
    let own = programs(&["--own"]);
    assert!(
        own.contains(&"sh".to_owned()) && !own.contains(&"/bin/true".to_owned()),
        "{own:?}"
    );
    let text = place.run(&["processes", "--own"]).out;
    assert!(text.contains("1 more process (--all"), "{text}");
    let sizes = place.run(&["processes", "--sort", "size"]).out;
    assert!(sizes.lines().next().unwrap().contains("cp a b"), "{sizes}");
}

#[test]
fn every_process_that_touched_a_file_is_listed_newest_first() {
    let place = Place::new();
    place.write_aged("a", "some text");
    place.record("cat a > copy; chmod 600 a");
    let second = place.record("ln a b; mv a c; rm b; ls -l c; touch c");
    let touches = |path: &str, options: &[&str]| -> Vec<(String, String)> {
        let found = place.json(&[&["who", path, "--json"], options].concat());
        let one = |touch: &serde_json::Value| {
            let word = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
            (word(&touch["argv"][0]), word(&touch["run"]))
        };
        found.as_array().unwrap().iter().map(one).collect()
    };
    let programs: Vec<String> = touches("a", &[])
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(programs, ["mv", "ln", "chmod", "cat"]);
    assert_eq!(
        touches("a", &["-n", "1"]),
        [("mv".to_owned(), second.clone())]
    );
    assert_eq!(touches("b", &[])[0].0, "rm");
    let later = touches("c", &["--lookups"]);
    assert_eq!((later[0].0.as_str(), later[1].0.as_str()), ("touch", "ls"));
    let text = place.run(&["who", "a"]).out;
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].contains("renamed to c") && lines[0].contains(&second),
        "{text}"
    );
    assert!(
        lines[1].contains("linked to b") && lines[2].contains("mode"),
        "{text}"
    );
    place.run(&["who", "never"]).is_error(1, &["never"]);
}

#[test]
fn who_names_the_hard_link_that_a_process_made() {
    let place = Place::new();
    place.record("echo x >first; ln first second");
    for name in ["first", "second"] {
        let text = place.run(&["who", name]).out;
        let lines: Vec<&str> = text.lines().collect();
        let [link, write] = lines[..] else {
            panic!("{text}");
        };
        assert!(
            link.contains("linked to second") && !link.contains("wrote"),
            "{text}"
        );
        assert!(
            write.contains("wrote") && !write.contains("linked"),
            "{text}"
        );
    }
}

#[test]
fn an_address_that_answered_no_process_is_not_called_a_missing_file() {
    let place = Place::new();
    place.record("true");
    let refused = place.run(&["uses", "tcp:127.0.0.1:1"]);
    refused.is_error(1, &["exchanged data with tcp:127.0.0.1:1", "peers"]);
}

/// Temporary files of the compiler live within its command.
#[test]
fn files_at_the_level_of_steps_name_the_commands_that_made_and_used_them() {
    if !need::needs("a compiler", &["gcc"]) {
        return;
    }
    let place = Place::new();
    place.write("m.c", "int main(void) { return 0; }\n");
    place.record("gcc -c m.c -o m.o; gcc m.o -o m; rm m.o");
    let text = place.run(&["files", "--own", "--level", "step"]).out;
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|line| {
            line.split("  ")
                .map(str::trim)
                .filter(|part| !part.is_empty())
                .collect()
        })
        .collect();
    assert_eq!(lines[0], ["made", "m", "gcc m.o -o m"], "{text}");
    assert_eq!(lines[1], ["used", "m.c", "gcc -c m.c -o m.o"], "{text}");
    assert_eq!(
        lines[2],
        [
            "made, used, removed",
            "m.o",
            "gcc -c m.c -o m.o",
            "(and 2 other commands)"
        ],
        "{text}"
    );
    assert_eq!(lines.len(), 4, "{text}");
    assert!(
        lines[3].concat().contains("that lived within one step"),
        "{text}"
    );
    let json = place.json(&["files", "--level", "step", "--json", "--own", "--written"]);
    assert_eq!(json[0]["made_by"][0], "gcc m.o -o m", "{json}");
    assert_eq!(json[0]["remains"], true, "{json}");
}

#[test]
fn files_names_commands_unless_json_or_look_ups_are_wanted() {
    let place = Place::new();
    place.write("a", "text");
    place.record("cp a b; chmod 600 a; mkdir d; echo x > /dev/null");
    let text = |options: &[&str]| place.run(&[&["files"], options].concat()).out;
    let default = text(&["--own"]);
    assert_eq!(default, text(&["--own", "--level", "step"]));
    let parts = |line: &str| -> Vec<String> {
        let parts = line.split("  ").map(|part| part.trim().to_owned());
        parts.filter(|part| !part.is_empty()).collect()
    };
    let lines: Vec<Vec<String>> = default.lines().map(parts).collect();
    assert_eq!(lines[0][..2], ["changed, used", "a"], "{default}");
    assert_eq!(lines[1], ["made", "b", "cp a b"], "{default}");
    assert_eq!(lines[2], ["made", "d", "mkdir d"], "{default}");
    assert!(text(&[]).contains("/dev/null"), "{}", text(&[]));
    let written = text(&["--own", "--written"]);
    assert!(written.contains("chmod 600 a"), "{written}");
    // A command looks nothing up, and the fields of JSON are an interface.
    let looks = text(&["--looked-up", "--under", "."]);
    assert_eq!(
        looks,
        text(&["--looked-up", "--under", ".", "--level", "process"])
    );
    assert!(looks.contains(&place.path("a")), "{looks}");
    let json = place.json(&["files", "--json", "--under", "a"]);
    assert!(json[0]["access"].is_array(), "{json}");
}

#[test]
fn who_prints_the_newest_and_counts_the_others() {
    let place = Place::new();
    place.write("a", "text");
    place.record("ls -l a > /dev/null; cat a > /dev/null; cat a > /dev/null; head a > b");
    let loops = "i=0; while [ $i -lt 120 ]; do i=$((i+1)); cat a > /dev/null; done";
    place.record(loops);
    let text = place.run(&["who", "a", "--level", "process"]).out;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 101, "{text}");
    assert!(lines[0].contains("cat a"), "{text}");
    // 20 of the second run, and the four of the first.
    assert!(
        lines[100].contains("24 other processes") && lines[100].contains("-n N"),
        "{text}"
    );
    let two = place.run(&["who", "a", "-n", "2"]).out;
    assert_eq!(two.lines().count(), 3, "{two}");
    let all = place.run(&["who", "a", "-n", "200"]).out;
    assert!(!all.contains("other process"), "{all}");
    assert!(
        all.contains("head a") && all.contains("1 process that only looked it up"),
        "{all}"
    );
    let json = place.json(&["who", "a", "--json"]);
    assert_eq!(json.as_array().unwrap().len(), 123);
    let newest = place.json(&["who", "a", "--json", "-n", "2"]);
    assert_eq!(
        newest.as_array().unwrap()[..],
        json.as_array().unwrap()[..2]
    );
}

/// A tool can run programs of others, as a package manager does.
#[test]
fn who_names_the_program_that_used_a_file_and_its_command() {
    if !need::needs("an interpreter", &["perl"]) {
        return;
    }
    let place = Place::new();
    place.write("key", "secret\n");
    std::fs::create_dir(place.path("node_modules")).unwrap();
    place.write("node_modules/install.pl", "system('cat', 'key');\n");
    place.write(
        "node_modules/both.pl",
        "open(F, '>>', 'key'); print F 'x'; close(F); system('cat', 'key');\n",
    );
    for (script, named) in [
        ("install", "cat key, in perl node_modules/install.pl"),
        ("both", "perl node_modules/both.pl, with cat key"),
    ] {
        place.record(&format!("perl node_modules/{script}.pl"));
        let touched = place.run(&["touched", "key", "-n", "1"]);
        assert!(touched.out.contains(named), "{touched:?}");
    }
}

/// The compiler, its passes and the assembler are one command.
#[test]
fn the_processes_of_one_command_are_one_line_of_who() {
    if !need::needs("a compiler", &["gcc"]) {
        return;
    }
    let place = Place::new();
    place.write("m.c", "int main(void) { return 0; }\n");
    place.record("gcc -c m.c -o m.o");
    place.record("gcc m.o -o m");
    let lines = |options: &[&str]| -> Vec<String> {
        let who = place.run(&[&["who", "m.o"], options].concat()).out;
        let listed = who.lines().filter(|line| !line.starts_with('…'));
        listed.map(str::to_owned).collect()
    };
    let steps = lines(&[]);
    assert_eq!(steps.len(), 2, "{steps:?}");
    assert!(steps[0].contains("gcc m.o -o m"), "{steps:?}");
    assert!(
        steps[1].contains("wrote") && steps[1].contains("gcc -c m.c -o m.o"),
        "{steps:?}"
    );
    assert_eq!(lines(&["-n", "1"]), steps[..1]);
    let processes = lines(&["--level", "process"]);
    assert!(
        processes.iter().any(|line| line.contains("as ")) && processes[0].contains("ld "),
        "{processes:?}"
    );
}
