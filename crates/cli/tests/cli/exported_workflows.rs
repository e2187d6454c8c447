//! Exports for workflow engines. Each engine makes the recorded results again, byte for byte. After
//! a change, the engine makes only the files that depend on it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use super::Place;
use super::engines::{engine, nextflow};
use super::pipeline::{exported_and_removed, made_again, pipeline, text, tool, tree};
use backstory_testkit::need::needs;

/// The names of outputs that came from `in3.txt`, according to `uses`.
fn from_3(place: &Place) -> BTreeSet<String> {
    let answer = place.json(&["uses", "--json", "in3.txt"]);
    let nodes = answer["nodes"].as_array().unwrap().iter();
    let paths = nodes.filter_map(|node| node["path"].as_str());
    let files = paths.filter(|path| Path::new(path).is_file());
    let names = files.filter_map(|path| path.strip_prefix(&place.path("out/")));
    let names: BTreeSet<String> = names.map(str::to_owned).collect();
    assert_eq!(names.len(), 5, "{names:?}");
    names
}

/// Changes `in3.txt` and runs the tool. It must make exactly the files that `uses` names.
fn only_what_changed(place: &Place, expected: &BTreeSet<String>, mut tool: Command) {
    let times = || -> BTreeMap<String, std::time::SystemTime> {
        let files = tree(&place.work().join("out")).into_keys();
        let time = |name: &String| {
            let file = place.work().join("out").join(name);
            std::fs::metadata(file).unwrap().modified().unwrap()
        };
        files.map(|name| (name.clone(), time(&name))).collect()
    };
    let before = times();
    change_3(place);
    let output = tool.current_dir(place.work()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let after = times().into_iter();
    let made: BTreeSet<String> = after
        .filter(|(name, time)| before[name] != *time)
        .map(|(name, _)| name)
        .collect();
    assert_eq!(made, *expected, "{}", text(&output));
}

#[test]
fn make_makes_the_outputs_again_and_only_what_changed_after() {
    if !needs("export make", &["make"]) {
        return;
    }
    let place = pipeline();
    let expected = from_3(&place);
    let make = || tool(&place, &["make", "-f", "again"]);
    made_again(&place, "make", make());
    let rules = std::fs::read_to_string(place.work().join("again")).unwrap();
    assert!(
        rules.contains("tr a-z A-Z < out/all.txt | sed 's/$$/!/' | sort -r > out/up.txt"),
        "{rules}"
    );
    let quiet = make().arg("-q").status().unwrap();
    assert!(quiet.success(), "a second run does nothing");
    only_what_changed(&place, &expected, make());
}

#[test]
fn ninja_makes_the_outputs_again_and_only_what_changed_after() {
    if !needs("export ninja", &["ninja"]) {
        return;
    }
    let place = pipeline();
    let expected = from_3(&place);
    let ninja = || tool(&place, &["ninja", "-f", "again"]);
    made_again(&place, "ninja", ninja());
    let again = ninja().output().unwrap();
    assert!(text(&again).contains("no work to do"), "{}", text(&again));
    only_what_changed(&place, &expected, ninja());
}

#[test]
fn a_shell_makes_the_outputs_again() {
    let place = pipeline();
    made_again(&place, "shell", tool(&place, &["bash", "again"]));
}

#[test]
fn snakemake_makes_the_outputs_again_and_only_what_changed_after() {
    let Some(program) = engine("export snakemake", "snakemake") else {
        return;
    };
    let place = pipeline();
    let expected = from_3(&place);
    let snakemake = || {
        let mut command = Command::new(&program);
        command
            .args(["-c1", "-s", "again"])
            .env("HOME", place.work())
            .env_remove("XDG_CACHE_HOME");
        command
    };
    made_again(&place, "snakemake", snakemake());
    let again = snakemake().current_dir(place.work()).output().unwrap();
    assert!(
        text(&again).contains("Nothing to be done"),
        "{}",
        text(&again)
    );
    only_what_changed(&place, &expected, snakemake());
}

/// Runs an engine that writes its results into a directory of its own. Returns its messages and
/// results.
fn into_results(place: &Place, mut engine: Command) -> (String, BTreeMap<String, Vec<u8>>) {
    let output = engine.current_dir(place.work()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let given = tree(&place.work().join("results/out"));
    std::fs::remove_dir_all(place.work().join("results")).unwrap();
    (text(&output), given)
}

/// The results of the script without any engine.
fn natively(place: &Place) -> BTreeMap<String, Vec<u8>> {
    drop(std::fs::remove_dir_all(place.work().join("out")));
    assert!(tool(place, &["sh", "run.sh"]).status().unwrap().success());
    tree(&place.work().join("out"))
}

/// Adds a line to `in3.txt`: some engines compare contents.
fn change_3(place: &Place) {
    let input = place.work().join("in3.txt");
    let mut lines = std::fs::read(&input).unwrap();
    lines.extend_from_slice(b"z\n");
    std::fs::write(&input, lines).unwrap();
}

#[test]
fn cwltool_makes_the_outputs_again_and_only_what_changed_after() {
    let Some(program) = engine("export cwl", "cwltool") else {
        return;
    };
    let place = pipeline();
    let expected = from_3(&place);
    let before = tree(&place.work().join("out"));
    exported_and_removed(&place, "cwl");
    let cwltool = || {
        let mut command = Command::new(&program);
        command.args([
            "--no-container",
            "--cachedir",
            "cache",
            "--outdir",
            "results",
        ]);
        command.arg("again").env("HOME", place.work());
        command
    };
    let ran = |said: &str| said.matches("Output of job will be cached").count();
    let (said, given) = into_results(&place, cwltool());
    // Ten steps, and one that collects.
    assert_eq!((ran(&said), given), (11, before.clone()), "{said}");
    let (said, given) = into_results(&place, cwltool());
    assert_eq!(
        (ran(&said), given),
        (0, before),
        "a second run does nothing: {said}"
    );
    change_3(&place);
    let (said, given) = into_results(&place, cwltool());
    assert_eq!(ran(&said), expected.len() + 1, "{said}");
    let step = |name: &str| format!("{}] Output of job", name.replace('.', "_"));
    assert!(
        expected.iter().all(|name| said.contains(&step(name))),
        "{said}"
    );
    assert_eq!(given, natively(&place));
}

#[test]
fn nextflow_makes_the_outputs_again_and_only_what_changed_after() {
    let place = pipeline();
    if nextflow("export nextflow", &place).is_none() {
        return;
    }
    let expected = from_3(&place);
    let before = tree(&place.work().join("out"));
    exported_and_removed(&place, "nextflow");
    std::fs::rename(place.work().join("again"), place.work().join("again.nf")).unwrap();
    let run = || {
        let mut command = nextflow("export nextflow", &place).unwrap();
        command.args(["run", "again.nf", "-ansi-log", "false", "-resume"]);
        command
    };
    let ran = |said: &str| said.matches("Submitted process").count();
    let (said, given) = into_results(&place, run());
    assert_eq!((ran(&said), given), (10, before.clone()), "{said}");
    let (said, given) = into_results(&place, run());
    assert_eq!(
        (ran(&said), given),
        (0, before),
        "a second run does nothing: {said}"
    );
    change_3(&place);
    let (said, given) = into_results(&place, run());
    assert_eq!(ran(&said), expected.len(), "{said}");
    assert_eq!(
        said.matches("Cached process").count(),
        10 - expected.len(),
        "{said}"
    );
    assert_eq!(given, natively(&place));
}

/// Names and words that every language quotes in its own way.
const ODD: &str = "set -e
mkdir -p sub 'out/a dir'
/usr/bin/printf '%s\\n' 'it'\\''s $HOME \\n \"q\" ${x} $(y) {z} %' > out/odd.txt
(cd sub && sort ../out/odd.txt > ../out/sorted.txt)
sort \"$PWD/out/odd.txt\" --output=\"$PWD/out/absolute.txt\"
seq 3 | tac > 'out/a dir/with blanks.txt'
sh -c 'exit 3' > out/empty.txt || true
";

#[test]
fn odd_names_and_words_come_through_every_workflow_language() {
    let place = Place::new();
    place.write_aged("run.sh", ODD);
    assert_eq!(place.run(&["record", "--", "sh", "run.sh"]).status, 0);
    let before = tree(&place.work().join("out"));
    assert_eq!(before.len(), 5, "{before:?}");
    for format in ["shell", "ninja", "snakemake", "make"] {
        let command = match format {
            "snakemake" => engine("odd names in snakemake", format).map(|program| {
                let mut command = Command::new(program);
                command
                    .args(["-c1", "-s", "again"])
                    .env("HOME", place.work());
                command
            }),
            "shell" => Some(tool(&place, &["bash", "again"])),
            format => needs(&format!("odd names in {format}"), &[format])
                .then(|| tool(&place, &[format, "-f", "again"])),
        };
        if let Some(command) = command {
            made_again(&place, format, command);
        }
    }
    if let Some(program) = engine("odd names in cwl", "cwltool") {
        assert_eq!(place.run(&["export", "cwl", "-o", "again.cwl"]).status, 0);
        let mut command = Command::new(program);
        command.args([
            "--no-container",
            "--relax-path-checks",
            "--outdir",
            "results",
            "again.cwl",
        ]);
        assert_eq!(into_results(&place, command).1, before);
    }
    if let Some(mut command) = nextflow("odd names in nextflow", &place) {
        assert_eq!(
            place.run(&["export", "nextflow", "-o", "again.nf"]).status,
            0
        );
        command.args(["run", "again.nf", "-ansi-log", "false"]);
        assert_eq!(into_results(&place, command).1, before);
    }
}

#[test]
fn ten_stages_are_ten_rules_in_every_workflow_language() {
    let place = pipeline();
    for (format, mark, count) in [
        ("ninja", "\nrule ", 10),
        // The eleventh rule only requests the results.
        ("snakemake", "\nrule ", 11),
        ("nextflow", "\nprocess ", 10),
        // The eleventh tool collects the results.
        ("cwl", "class: CommandLineTool", 11),
        ("make", ": in1.txt\n", 1),
    ] {
        let rules = place.run(&["export", format, "--no-patterns"]).out;
        assert_eq!(rules.matches(mark).count(), count, "{format}: {rules}");
    }
    // Formats with patterns write steps that differ only in a name once.
    for (format, mark, count) in [
        ("ninja", "\nrule ", 6),
        ("snakemake", "\nrule ", 7),
        ("nextflow", "\nprocess ", 6),
    ] {
        let rules = place.run(&["export", format]).out;
        assert_eq!(rules.matches(mark).count(), count, "{format}: {rules}");
    }
}

#[test]
fn backups_are_outputs_caches_are_not_and_changes_in_place_are_noted_once() {
    if !needs("export make", &["make"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("a", "b\na\n");
    place.write_aged("b", "d\nc\n");
    let script = "mkdir -p out .cache/x\nsed -i s/b/z/ a\nsed -i s/d/z/ b\ncp a .cache/x/kept\ncp a out/old~\ncp b out/new\n";
    place.write_aged("run.sh", script);
    assert_eq!(place.run(&["record", "--", "sh", "run.sh"]).status, 0);
    let answer = place.run(&["export", "make", "-o", "again"]);
    assert_eq!(answer.status, 0, "{answer:?}");
    let told = answer.err.lines().filter(|line| line.contains("in place"));
    assert_eq!(told.count(), 1, "{answer:?}");
    assert!(
        answer.err.contains("2 files are changed in place (a, b)"),
        "{answer:?}"
    );
    let rules = std::fs::read_to_string(place.work().join("again")).unwrap();
    assert!(!rules.contains(".cache"), "{rules}");
    // Pictures and documents execute nothing.
    for format in ["dot", "prov-n", "parquet"] {
        let answer = place.run(&["export", format, "-o", "other"]);
        assert!(!answer.err.contains("in place"), "{answer:?}");
        drop(std::fs::remove_file(place.work().join("other")));
    }
    let before = tree(&place.work().join("out"));
    std::fs::remove_dir_all(place.work().join("out")).unwrap();
    let output = tool(&place, &["make", "-f", "again"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(tree(&place.work().join("out")), before);
    let script = place.run(&["export", "shell"]).out;
    assert_eq!(script.matches("mkdir -p out").count(), 1, "{script}");
}

#[test]
fn a_drivers_own_output_is_not_lost() {
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    for shell in ["sh", "bash"] {
        if !needs("export of a compound redirection", &[shell]) {
            continue;
        }
        place.write_aged("run", "sort in > one\n{ echo header; sort in; } > two\n");
        assert_eq!(place.run(&["record", "--", shell, "run"]).status, 0);
        let two = std::fs::read(place.work().join("two")).unwrap();
        assert_eq!(place.run(&["export", "shell", "-o", "again"]).status, 0);
        std::fs::remove_file(place.work().join("two")).unwrap();
        assert!(tool(&place, &["bash", "again"]).status().unwrap().success());
        assert_eq!(
            std::fs::read(place.work().join("two")).unwrap(),
            two,
            "{shell}"
        );
    }
}
