//! Exports, each proved by its own tool: the tool makes the recorded results again, byte for byte.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};

use super::Place;
use super::engines::{engine, mermaid, nextflow};
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

fn pipeline() -> Place {
    let place = Place::new();
    for number in 1..4 {
        place.write_aged(&format!("in{number}.txt"), &"x\ny\nx\n".repeat(number));
    }
    place.write_aged("run.sh", PIPELINE);
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
                    let name = path
                        .strip_prefix(root)
                        .unwrap()
                        .to_str()
                        .unwrap()
                        .to_owned();
                    files.insert(name, std::fs::read(path).unwrap());
                }
            }
        }
    }
    files
}

pub(super) fn tool(place: &Place, line: &[&str]) -> Command {
    let mut command = place.stage.command(find(line[0]).unwrap());
    command.args(&line[1..]).current_dir(place.work());
    command
}

pub(super) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// Exports, removes the outputs, and has the tool make them again.
pub(super) fn made_again(place: &Place, format: &str, mut tool: Command) {
    let before = tree(&place.work().join("out"));
    exported_and_removed(place, format);
    let output = tool.current_dir(place.work()).output().unwrap();
    assert!(output.status.success(), "{format}: {}", text(&output));
    assert_eq!(tree(&place.work().join("out")), before, "{format}");
}

fn exported_and_removed(place: &Place, format: &str) {
    let answer = place.run(&["export", format, "-o", "again"]);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{format}");
    std::fs::remove_dir_all(place.work().join("out")).unwrap();
}

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
fn an_export_of_a_file_has_only_its_origins() {
    let place = pipeline();
    let rules = place.run(&["export", "shell", "out/u2.txt"]).out;
    assert!(
        rules.contains("uniq out/2.txt out/u2.txt") && rules.contains("sort in2.txt > out/2.txt"),
        "{rules}"
    );
    assert!(
        !rules.contains("in1.txt") && !rules.contains("paste"),
        "{rules}"
    );
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

#[test]
fn compile_commands_name_every_source_of_a_build() {
    if !needs("export compile-commands", &["gcc", "make"]) {
        return;
    }
    // Every directory finds its includes differently, and has its own compiler options.
    let place = Place::new();
    for directory in ["include", "one", "two"] {
        std::fs::create_dir(place.path(directory)).unwrap();
        place
            .stage
            .user()
            .owns(place.path(directory).as_ref())
            .unwrap();
    }
    place.write("include/both.h", "int one(void);\nint two(void);\n");
    place.write(
        "one/one.c",
        "#include \"both.h\"\nint one(void) { return ONE; }\n",
    );
    place.write(
        "two/two.c",
        "#include <both.h>\n#ifdef ONE\n#error \"not here\"\n#endif\nint two(void) { return TWO; }\n",
    );
    place.write(
        "main.c",
        "#include \"include/both.h\"\nint main(void) { return one() - two(); }\n",
    );
    place.write(
        "one/Makefile",
        "one.o: one.c\n\tgcc -I../include -D ONE=1 -c one.c\n",
    );
    place.write(
        "Makefile",
        "prog: main.o two/two.o sub\n\tgcc -o $@ main.o one/one.o two/two.o\ntwo/two.o: two/two.c\n\tgcc -I include '-DTWO=(1 + 1)' -c -o $@ $<\n\
         sub:\n\t$(MAKE) -C one\n.PHONY: sub\n",
    );
    assert_eq!(place.run(&["record", "--", "make", "-s"]).status, 0);
    let entries = place.json(&["export", "compile-commands"]);
    let mut files: Vec<&str> = entries
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["file"].as_str().unwrap())
        .collect();
    files.sort_unstable();
    let sources = ["main.c", "one/one.c", "two/two.c"];
    assert_eq!(files, sources.map(|name| place.path(name)));
    if needs("compile_commands.json in clang-tidy", &["clang-tidy"]) {
        let wrote = place.run(&["export", "compile-commands", "-o", "compile_commands.json"]);
        assert_eq!(wrote.status, 0);
        // One by one: the checker searches the includes of one source where it found another's.
        for source in sources {
            let output = tool(&place, &["clang-tidy", "-p", ".", "--quiet", source])
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", text(&output));
        }
    }
}

#[test]
fn pictures_and_data_are_readable_by_their_tools() {
    let place = pipeline();
    for level in ["command", "process", "all"] {
        let nodes = place.run(&["export", "mermaid", "--level", level]).out;
        assert!(
            nodes.starts_with("flowchart LR\n") && nodes.contains(" -->|wrote| "),
            "{nodes}"
        );
        if let Some(packages) = mermaid() {
            let wrote = place.run(&["export", "mermaid", "--level", level, "-o", "g.mmd"]);
            assert_eq!(wrote.status, 0);
            let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/standards/mermaid.mjs");
            let mut node = Command::new(find("node").unwrap());
            let output = node
                .arg(script)
                .arg(packages)
                .arg(place.path("g.mmd"))
                .output()
                .unwrap();
            assert!(text(&output).starts_with("flowchart"), "{}", text(&output));
        }
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
    }
}

#[test]
fn an_impossible_export_is_reported() {
    let place = pipeline();
    place
        .run(&["export", "bpmn"])
        .is_error(2, &["bpmn", "make", "snakemake"]);
    place
        .run(&["export", "make", "-o", "no/such/dir"])
        .is_error(
            1,
            &["no/such/dir", "there is no directory no/such", "make it"],
        );
    // The message must not name the temporary file.
    let answer = place.run(&["export", "oci", "-o", "/proc/image"]);
    answer.is_error(1, &["/proc/image", "No such file"]);
    assert!(!answer.err.contains(".backstory-"), "{}", answer.err);
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
    assert!(
        list.status == 0 && list.out.contains("a makefile"),
        "{list:?}"
    );
}

#[test]
fn a_crate_has_the_content_of_a_program_that_was_found_through_links() {
    let place = Place::new();
    place.write_aged("in.txt", "a\n");
    let cat = find("cat").unwrap();
    std::os::unix::fs::symlink(cat, place.path("reader3")).unwrap();
    std::os::unix::fs::symlink("reader3", place.path("reader")).unwrap();
    let line = "test -L reader && readlink -f reader > link && ./reader in.txt > out.txt";
    let answer = place.run(&["record", "--wait", "--", "sh", "-c", line]);
    assert_eq!(answer.status, 0, "{answer:?}");
    let answer = place.run(&["export", "ro-crate", "-o", "crate"]);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""));
    let stored = place.path(&format!("crate/files{}", place.path("reader")));
    assert_eq!(
        std::fs::read(stored).unwrap(),
        std::fs::read(find("cat").unwrap()).unwrap()
    );
}

#[test]
fn two_exports_of_one_run_are_the_same_bytes() {
    let place = pipeline();
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    let exports = || {
        ["oci-archive", "docker-archive", "reprozip"].map(|format| {
            let answer = place.run(&["export", format, "-o", format]);
            assert_eq!(answer.status, 0, "{format}: {answer:?}");
            (format, std::fs::read(place.path(format)).unwrap())
        })
    };
    let first = exports();
    // An archive's times have seconds: the second export is in another one.
    let began = std::time::Instant::now();
    while began.elapsed() < std::time::Duration::from_millis(1100) {
        std::thread::yield_now();
    }
    for ((format, first), (_, second)) in first.iter().zip(exports()) {
        assert!(*first == second, "{format}");
    }
}
