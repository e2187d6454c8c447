//! Exports, each proven by the tool that it is for: what was recorded is made again, byte for byte.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use super::Place;
use backstory_testkit::need::{find, needs};

/// Ten steps, one of them a pipeline; three inputs.
const PIPELINE: &str = "set -e
mkdir -p out
sort in1.txt > out/1.txt
sort in2.txt > out/2.txt
sort in3.txt > out/3.txt
uniq out/1.txt out/u1.txt
uniq out/2.txt out/u2.txt
uniq out/3.txt out/u3.txt
cat out/u1.txt out/u2.txt > out/12.txt
paste out/12.txt out/u3.txt > out/all.txt
LC_ALL=C tr a-z A-Z < out/all.txt | sed 's/$/!/' | sort -r > out/up.txt
wc -l < out/up.txt >> out/count.txt
";

/// Commands that come from `in3.txt`.
const FROM_3: usize = 5;

fn pipeline() -> Place {
    let place = Place::new();
    for number in 1..4 {
        place.write_settled(&format!("in{number}.txt"), &"x\ny\nx\n".repeat(number));
    }
    place.write_settled("run.sh", PIPELINE);
    assert_eq!(place.run(&["record", "--", "sh", "run.sh"]).status, 0);
    place
}

/// Everything below a directory, by its path there.
fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => waiting.push(path),
                false => {
                    let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                    files.insert(name, std::fs::read(path).unwrap());
                }
            }
        }
    }
    files
}

fn tool(place: &Place, line: &[&str]) -> Command {
    let mut command = place.stage.command(find(line[0]).unwrap());
    command.args(&line[1..]).current_dir(place.work());
    command
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// Exports, removes the outputs, and has the tool make them again.
fn made_again(place: &Place, format: &str, line: &[&str]) {
    let answer = place.run(&["export", format, "-o", "again"]);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{format}");
    let before = tree(&place.work().join("out"));
    std::fs::remove_dir_all(place.work().join("out")).unwrap();
    let output = tool(place, line).output().unwrap();
    assert!(output.status.success(), "{format}: {}", text(&output));
    assert_eq!(tree(&place.work().join("out")), before, "{format}");
}

/// Makes `in3.txt` new.
fn touch(place: &Place) {
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(2);
    let file = std::fs::File::options()
        .append(true)
        .open(place.work().join("in3.txt"))
        .unwrap();
    file.set_modified(later).unwrap();
}

#[test]
fn make_makes_the_outputs_again_and_only_what_changed_after() {
    if !needs("export make", &["make"]) {
        return;
    }
    let place = pipeline();
    made_again(&place, "make", &["make", "-f", "again"]);
    let rules = std::fs::read_to_string(place.work().join("again")).unwrap();
    assert!(
        rules.contains("tr a-z A-Z < out/all.txt | sed 's/$$/!/' | sort -r > out/up.txt"),
        "{rules}"
    );
    let quiet = tool(&place, &["make", "-q", "-f", "again"]).status().unwrap();
    assert!(quiet.success(), "a second run does nothing");
    touch(&place);
    let plan = tool(&place, &["make", "-n", "-f", "again"]).output().unwrap();
    let commands = text(&plan)
        .lines()
        .filter(|line| !line.starts_with("mkdir") && !line.starts_with("make:"))
        .count();
    assert_eq!(commands, FROM_3, "{}", text(&plan));
    assert!(!text(&plan).contains("in1.txt"));
}

#[test]
fn ninja_makes_the_outputs_again_and_only_what_changed_after() {
    if !needs("export ninja", &["ninja"]) {
        return;
    }
    let place = pipeline();
    made_again(&place, "ninja", &["ninja", "-f", "again"]);
    let again = tool(&place, &["ninja", "-f", "again"]).output().unwrap();
    assert!(text(&again).contains("no work to do"), "{}", text(&again));
    touch(&place);
    let plan = tool(&place, &["ninja", "-n", "-f", "again"]).output().unwrap();
    assert!(
        text(&plan).contains(&format!("[{FROM_3}/{FROM_3}]")),
        "{}",
        text(&plan)
    );
}

#[test]
fn a_shell_makes_the_outputs_again() {
    let place = pipeline();
    made_again(&place, "shell", &["bash", "again"]);
}

#[test]
fn snakemake_makes_the_outputs_again_and_a_second_run_does_nothing() {
    if !needs("export snakemake", &["snakemake"]) {
        return;
    }
    let place = pipeline();
    made_again(&place, "snakemake", &["snakemake", "-q", "-c1", "-s", "again"]);
    let again = tool(&place, &["snakemake", "-c1", "-s", "again"])
        .output()
        .unwrap();
    assert!(text(&again).contains("Nothing to be done"), "{}", text(&again));
}

#[test]
fn steps_that_differ_only_in_a_name_are_one_rule() {
    let place = pipeline();
    let rules = place.run(&["export", "ninja"]).out;
    assert_eq!(
        rules.matches("\nrule ").count(),
        6,
        "sort, uniq, and four others: {rules}"
    );
    let single = place.run(&["export", "ninja", "--no-patterns"]).out;
    assert_eq!(single.matches("\nrule ").count(), 10, "{single}");
}

#[test]
fn an_export_of_a_file_has_only_what_it_came_from() {
    let place = pipeline();
    let rules = place.run(&["export", "shell", "out/u2.txt"]).out;
    assert!(
        rules.contains("uniq out/2.txt out/u2.txt") && rules.contains("sort in2.txt > out/2.txt"),
        "{rules}"
    );
    assert!(!rules.contains("in1.txt") && !rules.contains("paste"), "{rules}");
}

#[test]
fn what_a_driver_wrote_itself_is_not_lost() {
    let place = Place::new();
    place.write_settled("in", "b\na\n");
    for shell in ["sh", "bash"] {
        if !needs("export of a compound redirection", &[shell]) {
            continue;
        }
        place.write_settled("run", "sort in > one\n{ echo header; sort in; } > two\n");
        assert_eq!(place.run(&["record", "--", shell, "run"]).status, 0);
        let two = std::fs::read(place.work().join("two")).unwrap();
        assert_eq!(place.run(&["export", "shell", "-o", "again"]).status, 0);
        std::fs::remove_file(place.work().join("two")).unwrap();
        assert!(tool(&place, &["bash", "again"]).status().unwrap().success());
        assert_eq!(std::fs::read(place.work().join("two")).unwrap(), two, "{shell}");
    }
}

#[test]
fn compile_commands_name_every_source_of_a_build() {
    if !needs("export compile-commands", &["gcc", "make"]) {
        return;
    }
    let place = Place::new();
    for name in ["a", "main"] {
        place.write(
            format!("{name}.c"),
            &format!("int {name}(void) {{ return 0; }}\n"),
        );
    }
    place.write("Makefile", "prog: a.o main.o\n\tgcc -o $@ $^\n");
    assert_eq!(place.run(&["record", "--", "make", "-s"]).status, 0);
    let entries = place.json(&["export", "compile-commands"]);
    let mut files: Vec<&str> = entries
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["file"].as_str().unwrap())
        .collect();
    files.sort_unstable();
    assert_eq!(files, [place.path("a.c"), place.path("main.c")]);
    if needs("compile_commands.json in clang-tidy", &["clang-tidy"]) {
        assert_eq!(
            place
                .run(&["export", "compile-commands", "-o", "compile_commands.json"])
                .status,
            0
        );
        let output = tool(&place, &["clang-tidy", "-p", ".", "--quiet", "a.c"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output));
    }
}

#[test]
fn pictures_and_data_are_what_their_tools_read() {
    let place = pipeline();
    for level in ["command", "process", "all"] {
        let trace = place.json(&["export", "perfetto", "--level", level]);
        let events = trace["traceEvents"].as_array().unwrap();
        for event in events {
            let phase = event["ph"].as_str().unwrap();
            assert!(
                event["pid"].is_u64() && event["tid"].is_u64() && event["name"].is_string(),
                "{event}"
            );
            assert!(phase == "M" || event["ts"].is_f64(), "{event}");
            assert!(phase != "X" || event["dur"].as_f64().unwrap() >= 0.0, "{event}");
        }
        assert!(
            events.iter().any(|event| event["ph"] == "s"),
            "files between commands are flows"
        );
        let nodes = place.run(&["export", "mermaid", "--level", level]).out;
        assert!(
            nodes.starts_with("flowchart LR\n") && nodes.contains(" -->|wrote| "),
            "{nodes}"
        );
        if needs("export dot", &["dot"]) {
            assert_eq!(
                place
                    .run(&["export", "dot", "--level", level, "-o", "g.dot"])
                    .status,
                0
            );
            assert!(
                tool(&place, &["dot", "-Tsvg", "-o", "g.svg", "g.dot"])
                    .status()
                    .unwrap()
                    .success()
            );
        }
        if needs("export svg", &["/usr/bin/python3"]) {
            assert_eq!(
                place
                    .run(&["export", "svg", "--level", level, "-o", "g.svg"])
                    .status,
                0
            );
            let read = "import xml.etree.ElementTree as e; r = e.parse('g.svg').getroot(); n = '{http://www.w3.org/2000/svg}'\n\
                        assert [x for x in r.iter(n + 'text') if x.text == 'in3.txt'] and list(r.iter(n + 'path'))";
            assert!(
                tool(&place, &["/usr/bin/python3", "-c", read])
                    .status()
                    .unwrap()
                    .success()
            );
        }
        if needs("export graphml", &["/usr/bin/python3"]) {
            assert_eq!(
                place
                    .run(&["export", "graphml", "--level", level, "-o", "g.xml"])
                    .status,
                0
            );
            let read = "import xml.etree.ElementTree as e; r = e.parse('g.xml').getroot(); n = '{http://graphml.graphdrawing.org/xmlns}'\n\
                        ids = {x.get('id') for x in r.iter(n + 'node')}\n\
                        assert ids and all(x.get(w) in ids for x in r.iter(n + 'edge') for w in ('source', 'target'))";
            assert!(
                tool(&place, &["/usr/bin/python3", "-c", read])
                    .status()
                    .unwrap()
                    .success()
            );
        }
    }
}

#[test]
fn what_cannot_be_exported_is_said() {
    let place = pipeline();
    place
        .run(&["export", "bpmn"])
        .is_error(2, &["bpmn", "make", "snakemake"]);
    place
        .run(&["export", "make", "-o", "no/such/dir"])
        .is_error(1, &["no/such/dir"]);
    place
        .run(&["export", "compile-commands"])
        .is_error(1, &["compiler", "record"]);
    place
        .run(&["export", "make", "-o", "out"])
        .is_error(2, &["out", "a directory"]);
    place.write("kept", "as it was");
    place
        .run(&["export", "compile-commands", "-o", "kept"])
        .is_error(1, &[]);
    assert_eq!(
        std::fs::read_to_string(place.work().join("kept")).unwrap(),
        "as it was"
    );
    let left = std::fs::read_dir(place.work()).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_str().unwrap().starts_with(".backstory-")
    });
    assert_eq!(left.count(), 0, "nothing half written is left");
    let list = place.run(&["export"]);
    assert!(list.status == 0 && list.out.contains("a makefile"), "{list:?}");
}
