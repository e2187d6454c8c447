//! Steps are the commands that a person would have written: for scripts that call each other, for
//! builds, and for programs that launch others.

use std::collections::BTreeSet;
use std::process::Command;

use super::Place;
use super::engines::engine;
use backstory_testkit::need::{find, needs};

/// Six scripts that call each other, and a library that two of them use. They name each file: a
/// pattern or the output of a program would decide on the commands, and the pile would be one step.
const PILE: [(&str, &str); 7] = [
    (
        "all.sh",
        "#!/bin/sh\nset -eu\nexport OUT=results\nmkdir -p $OUT tmp\nfor f in raw/alice.txt raw/bob.txt; do\n  scripts/clean.sh $f tmp/$(basename $f .txt).clean\ndone\n\
         . scripts/lib.sh\nlog cleaned\nsh scripts/count.sh\nscripts/merge.sh\npython3 scripts/report.py $OUT/merged.tsv > $OUT/report.txt\nscripts/pack.sh\n",
    ),
    ("scripts/lib.sh", "log() { echo \"$*\" >&2; }\n"),
    (
        "scripts/clean.sh",
        "#!/bin/sh\nset -e\ntr a-z A-Z < \"$1\" | sed 's/  */\\t/g' | sort -k2,2n > \"$2\"\n",
    ),
    (
        "scripts/count.sh",
        ". scripts/lib.sh\nfor f in tmp/alice.clean tmp/bob.clean; do\n  log \"$f is counted\"\n  cut -f1 $f | sort | uniq -c > ${f%.clean}.counts\ndone\n",
    ),
    (
        "scripts/merge.sh",
        "#!/bin/sh\ncat tmp/alice.clean tmp/bob.clean > results/all.tsv\nt=$(mktemp ./tmp.XXXXXX)\nsort -k2,2n results/all.tsv > $t\nmv $t results/merged.tsv\n",
    ),
    (
        "scripts/report.py",
        "import sys\nfor line in open(sys.argv[1]):\n    print(len(line))\n",
    ),
    (
        "scripts/pack.sh",
        "#!/bin/sh\ncd results\nfor f in all merged; do gzip -nc $f.tsv > $f.tsv.gz; done\nsha256sum all.tsv.gz merged.tsv.gz report.txt > sums\n",
    ),
];

/// The commands that a person would have written, without the name that `mktemp` found, which is
/// random.
const EXPECTED: &str = "export OUT=results

mkdir -p tmp
tr a-z A-Z < raw/alice.txt | sed 's/  */\\t/g' | sort -k2,2n > tmp/alice.clean

tr a-z A-Z < raw/bob.txt | sed 's/  */\\t/g' | sort -k2,2n > tmp/bob.clean

cut -f1 tmp/alice.clean | sort | uniq -c > tmp/alice.counts

cut -f1 tmp/bob.clean | sort | uniq -c > tmp/bob.counts

mkdir -p results
cat tmp/alice.clean tmp/bob.clean > results/all.tsv

sort -k2,2n results/all.tsv > tmp.X
mv ./tmp.X results/merged.tsv

python3 scripts/report.py results/merged.tsv > results/report.txt

( cd results && gzip -nc all.tsv > all.tsv.gz )

( cd results && gzip -nc merged.tsv > merged.tsv.gz )

( cd results && sha256sum all.tsv.gz merged.tsv.gz report.txt > sums )
";

/// Records the pile. `python3` is a script of pyenv that finds the configured version.
fn pile() -> Option<Place> {
    if !needs(
        "scripts that call each other",
        &["/usr/bin/python3", "gzip", "bash"],
    ) {
        return None;
    }
    let place = Place::new();
    for directory in ["raw", "scripts", ".pyenv", ".pyenv/shims"] {
        std::fs::create_dir(place.path(directory)).unwrap();
        place
            .stage
            .user()
            .owns(place.path(directory).as_ref())
            .unwrap();
    }
    let shim = "#!/usr/bin/env bash\nfor part in ${PATH//:/ }; do type -p python3 > /dev/null; done\nexec /usr/bin/python3 \"$@\"\n";
    let scripts = PILE.into_iter().chain([(".pyenv/shims/python3", shim)]);
    for (name, text) in scripts {
        place.write_program(name, text);
    }
    place.write_aged("raw/alice.txt", "b 2\na 1\n");
    place.write_aged("raw/bob.txt", "d 4\nc 3\n");
    let mut command = place.command(&["record", "--", "./all.sh"]);
    let path = format!("{}:/usr/bin:/bin", place.path(".pyenv/shims"));
    assert!(command.env("PATH", path).output().unwrap().status.success());
    Some(place)
}

#[test]
fn scripts_that_call_each_other_are_the_commands_that_stand_in_them() {
    let Some(place) = pile() else { return };
    let script = place.run(&["export", "shell"]).out;
    let (_, steps) = script.split_once("export").unwrap();
    let mut steps = format!("export{steps}");
    let named = steps
        .find("tmp.")
        .map(|at| steps[at..at + 10].to_owned())
        .unwrap();
    steps = steps.replace(&named, "tmp.X");
    assert_eq!(steps, EXPECTED);
}

#[test]
fn a_pile_of_scripts_is_made_again_by_rules_for_files_that_differ_in_a_name() {
    let Some(place) = pile() else { return };
    if !needs("a pile of scripts by make", &["make"]) {
        return;
    }
    let sums = std::fs::read(place.path("results/sums")).unwrap();
    assert_eq!(place.run(&["export", "make", "-o", "again.mk"]).status, 0);
    let rules = std::fs::read_to_string(place.path("again.mk")).unwrap();
    for rule in [
        "export OUT := results\n",
        "tmp/alice.clean tmp/bob.clean: tmp/%.clean: raw/%.txt\n",
        "tmp/alice.counts tmp/bob.counts: tmp/%.counts: tmp/%.clean\n",
        "results/all.tsv.gz results/merged.tsv.gz: results/%.tsv.gz: results/%.tsv\n",
    ] {
        assert!(rules.contains(rule), "no {rule} in {rules}");
    }
    for directory in ["results", "tmp"] {
        std::fs::remove_dir_all(place.path(directory)).unwrap();
    }
    let make = |args: &[&str]| {
        let mut command = place.stage.command(find("make").unwrap());
        command
            .args(["-f", "again.mk"])
            .args(args)
            .current_dir(place.work());
        let output = command.output().unwrap();
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    assert!(make(&[]).0);
    assert_eq!(std::fs::read(place.path("results/sums")).unwrap(), sums);
    assert!(make(&["-q"]).0, "a second run does nothing");
}

#[test]
fn each_level_has_its_detail() {
    let Some(place) = pile() else { return };
    let activities = |level: &str| {
        let events = place.run(&["export", "openlineage", "--level", level]).out;
        let jobs = events.lines().map(|line| {
            let event: serde_json::Value = serde_json::from_str(line).unwrap();
            event["job"]["name"].as_str().unwrap().to_owned()
        });
        jobs.collect::<BTreeSet<String>>().len()
    };
    let steps = EXPECTED.split("\n\n").count() - 1;
    assert_eq!(activities("command"), steps);
    let processes = place.json(&["processes", "--json"]);
    let processes = processes.as_array().unwrap();
    let ran = processes
        .iter()
        .filter(|process| process["epoch"] != 0)
        .count();
    assert_eq!(activities("process"), ran);
    assert_eq!(activities("all"), processes.len());
    // Only the last shows files of the system; all show the files of users.
    for (level, system) in [("command", false), ("process", false), ("all", true)] {
        let graph = place.run(&["export", "graphml", "--level", level]).out;
        assert!(
            graph.contains("raw/alice.txt") && graph.contains("results/sums"),
            "{level}"
        );
        assert_eq!(graph.contains("libc.so.6"), system, "{level}");
    }
}

#[test]
fn ninjas_commands_are_the_steps_and_its_own_files_are_left_out() {
    if !needs("a build by ninja", &["ninja", "gcc"]) {
        return;
    }
    let place = Place::new();
    place.write("f.c", "int f(void) { return 0; }\n");
    place.write("m.c", "int f(void); int main(void) { return f(); }\n");
    place.write(
        "build.ninja",
        "rule cc\n  command = gcc -c $in -o $out\nrule link\n  command = gcc $in -o $out\n\
         build f.o: cc f.c\nbuild m.o: cc m.c\nbuild prog: link f.o m.o\n",
    );
    assert_eq!(place.run(&["record", "--", "ninja"]).status, 0);
    let script = place.run(&["export", "shell", "--no-patterns"]).out;
    for line in [
        "gcc -c f.c -o f.o",
        "gcc -c m.c -o m.o",
        "gcc f.o m.o -o prog",
    ] {
        assert!(
            script.contains(&format!("\n{line}\n")),
            "no {line} in {script}"
        );
    }
    let rules = place.run(&["export", "make"]).out;
    assert!(
        rules.contains("\nall: prog\n")
            && rules.contains("\nf.o m.o: %.o: %.c\n")
            && !rules.contains(".ninja"),
        "{rules}"
    );
}

/// As in Automake's makefiles: `gcc` writes the included files into a dependency file, which only
/// the next `make` reads.
#[test]
fn automakes_internal_files_are_no_results() {
    if !needs("a build by a makefile of Automake", &["make", "gcc"]) {
        return;
    }
    let place = Place::new();
    std::fs::create_dir(place.path(".deps")).unwrap();
    place
        .stage
        .user()
        .owns(place.path(".deps").as_ref())
        .unwrap();
    place.write("one.h", "int one(void);\n");
    for (name, text) in [
        ("one", "int one(void) { return 1; }\n"),
        ("main", "int main(void) { return one() - 1; }\n"),
    ] {
        place.write(format!("{name}.c"), &format!("#include \"one.h\"\n{text}"));
        place.write(format!(".deps/{name}.Po"), "# dummy\n");
    }
    place.write(
        "Makefile",
        "all:\n\t$(MAKE) all-am\nall-am: prog\nprog: main.o one.o\n\t@rm -f prog\n\tgcc -g -o prog main.o one.o\n\
         .c.o:\n\tgcc -I. -g -MT $@ -MD -MP -MF .deps/$*.Tpo -c -o $@ $<\n\tmv -f .deps/$*.Tpo .deps/$*.Po\n\
         -include .deps/one.Po .deps/main.Po\n",
    );
    assert_eq!(place.run(&["record", "--", "make", "-s"]).status, 0);
    let rules = place.run(&["export", "make"]).out;
    // Only the names of the dependency files differ, and no step reads them. There is still one
    // rule.
    for line in [
        "all: prog",
        "main.o one.o: %.o: %.c one.h",
        "\tgcc -I. -g -MT $*.o -MD -MP -MF .deps/$*.Tpo -c -o $*.o $*.c",
        "prog: main.o one.o",
    ] {
        assert!(
            rules.contains(&format!("\n{line}\n")),
            "no {line} in {rules}"
        );
    }
    assert!(!rules.contains(".Po"), "{rules}");
}

/// As in Automake's rules for subdirectories: a shell gets a name from `sed`, and prints the
/// directory.
#[test]
fn make_in_other_directories_is_passed_through_although_its_shell_runs_programs_for_names() {
    if !needs("a makefile of Automake with directories", &["make", "sed"]) {
        return;
    }
    let place = Place::new();
    place.write("a.in", "a\n");
    place.write(
        "Makefile",
        "SHELL = /bin/sh\nall: all-recursive\nall-recursive:\n\t@failcom='exit 1'; target=`echo $@ | sed s/-recursive/-am/`; \\\n\
         \tlist='sub .'; for subdir in $$list; do echo \"Making $$target in $$subdir\"; \\\n\
         \t(cd $$subdir && $(MAKE) $$target) || eval $$failcom; done\nall-am: up\nup: a.in\n\ttr a-z A-Z < a.in > up\n",
    );
    std::fs::create_dir(place.path("sub")).unwrap();
    place.write("sub/Makefile", "all-am: out\nout: in\n\tsort in > out\n");
    place.write("sub/in", "b\na\n");
    place.stage.user().owns(place.path("sub").as_ref()).unwrap();
    let answer = place.run(&["record", "--", "make", "-s"]);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""));
    let rules = place.run(&["export", "make"]).out;
    let (_, rules) = rules.split_once("all: ").unwrap();
    assert_eq!(
        rules,
        "sub/out up\n\nsub/out: sub/in\n\tcd sub && sort in > out\n\nup: a.in\n\ttr a-z A-Z < a.in > up\n"
    );
    // A program that leaves a file beside it is no helper: the shell's work is one step then.
    place.write(
        "Makefile",
        "SHELL = /bin/sh\nall:\n\tsed s/-/+/ sub/in > list; cd sub && $(MAKE) -B all-am\n",
    );
    assert_eq!(place.run(&["record", "--", "make", "-s"]).status, 0);
    let rules = place.run(&["export", "make"]).out;
    assert!(rules.contains("\nlist sub/out &: "), "{rules}");
}

/// As node does at its end: it writes no byte to the run's output, after others have run.
#[test]
fn an_unused_redirected_output_is_no_output() {
    if !needs("a write of no bytes", &["python3"]) {
        return;
    }
    let place = Place::new();
    let script = "import os, subprocess; subprocess.run(['/bin/true']); os.write(1, b'')";
    place.write("p.py", script);
    let mut command = place.command(&["record", "--", "sh", "-c", "python3 p.py; echo 1 > out"]);
    let log = std::fs::File::create(place.path("log")).unwrap();
    place.stage.user().owns(place.path("log").as_ref()).unwrap();
    assert!(command.stdout(log).status().unwrap().success());
    let rules = place.run(&["export", "make"]).out;
    assert!(rules.contains("\nall: out\n"), "{rules}");
}

#[test]
fn snakemakes_commands_are_the_steps_and_its_own_files_are_left_out() {
    let Some(program) = engine("a run of snakemake", "snakemake") else {
        return;
    };
    // The engine may lie where only root can read.
    let place = match backstory_testkit::user::User::ordinary() {
        backstory_testkit::user::User::Myself => Place::new(),
        _ => Place::of_root().unwrap(),
    };
    for name in ["a", "b"] {
        place.write(format!("{name}.txt"), name);
    }
    place.write(
        "Snakefile",
        "rule all:\n    input: 'out'\nrule up:\n    input: '{s}.txt'\n    output: '{s}.up'\n    shell: 'tr a-z A-Z < {input} > {output}'\n\
         rule join:\n    input: 'a.up', 'b.up'\n    output: 'out'\n    shell: 'cat {input} > {output}'\n",
    );
    let program = program.canonicalize().unwrap();
    let mut command = place.command(&[
        "record",
        "--",
        program.to_str().unwrap(),
        "-c1",
        "-q",
        "all",
    ]);
    let output = command
        .env("HOME", place.work())
        .env_remove("XDG_CACHE_HOME")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let script = place.run(&["export", "shell"]).out;
    for line in [
        "tr a-z A-Z < a.txt > a.up",
        "tr a-z A-Z < b.txt > b.up",
        "cat a.up b.up > out",
    ] {
        assert!(
            script.contains(&format!("\n{line}\n")),
            "no {line} in {script}"
        );
    }
    let rules = place.run(&["export", "make"]).out;
    assert!(
        rules.contains("\nall: out\n") && !rules.contains(".snakemake") && !rules.contains("pulp"),
        "{rules}"
    );
}

#[test]
fn a_compressor_that_refuses_to_overwrite_its_output_runs_again() {
    if !needs("a compressor done again", &["make", "gzip"]) {
        return;
    }
    let place = Place::new();
    for name in ["in", "constant"] {
        place.write_aged(name, "b\na\n");
    }
    let line = "sort constant > c; sort in > a; gzip -nk a; cat a.gz c > out";
    assert_eq!(place.run(&["record", "--", "sh", "-c", line]).status, 0);
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    assert_eq!(place.run(&["export", "make", "-o", "again"]).status, 0);
    place.write("in", "d\n");
    // A step does not wait for an input that is certainly unchanged.
    let planned = place.run(&["rerun", "--dry-run", "out"]).out;
    let waits = planned.lines().find(|line| line.starts_with("out "));
    assert!(
        waits.is_some_and(|line| line.ends_with(" if a.gz becomes different")),
        "{planned}"
    );
    let done = place.run(&["rerun", "out"]);
    assert_eq!(done.status, 0, "{}", done.err);
    assert_eq!(place.run(&["rerun", "--dry-run", "out"]).status, 0);
    let made = std::fs::read(place.path("a.gz")).unwrap();
    place.write("in", "c\n");
    let mut make = Command::new(find("make").unwrap());
    make.args(["-s", "-f", "again"]).current_dir(place.work());
    assert!(make.status().unwrap().success());
    assert_ne!(std::fs::read(place.path("a.gz")).unwrap(), made);
}

#[test]
fn recipes_of_several_lines_or_for_another_shell_are_separate_lines() {
    if !needs("recipes of several lines", &["make", "bash"]) {
        return;
    }
    let place = Place::new();
    place.write("in", "b\na\n");
    place.write(
        "Makefile",
        "SHELL = /bin/bash\nexport LC_ALL = C\nall: out up\nout: in\n\tsort in > $@-t && \\\n\t  mv $@-t $@\n\
         up: out\n\t@[[ -f out ]] && tr a-z A-Z < out > up\n",
    );
    assert_eq!(place.run(&["record", "--", "make", "-s"]).status, 0);
    let script = place.run(&["export", "shell"]).out;
    let (_, steps) = script.split_once("export ").unwrap();
    assert_eq!(
        steps,
        "LC_ALL=C\n\n( sort in > out-t && mv out-t out )\n\n/bin/bash -c '[[ -f out ]] && tr a-z A-Z < out > up'\n"
    );
    // The files are made again.
    let made = std::fs::read(place.path("up")).unwrap();
    assert_eq!(place.run(&["export", "make", "-o", "again"]).status, 0);
    for name in ["out", "up"] {
        std::fs::remove_file(place.path(name)).unwrap();
    }
    let mut make = Command::new(find("make").unwrap());
    let done = make
        .args(["-s", "-f", "again"])
        .current_dir(place.work())
        .status()
        .unwrap();
    assert!(done.success());
    assert_eq!(std::fs::read(place.path("up")).unwrap(), made);
}
