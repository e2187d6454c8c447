//! An imported run agrees with backstory's own record of the same command.
//!
//! The differences that are left are known: strace sees the look-ups inside of libc and of the
//! dynamic loader, which `record` leaves out without `--lookups=all`.

use super::Desk;
use backstory_testkit::need;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Accesses that both records have in full.
const COMPARED: [&str; 6] = ["read", "write", "exec", "delete", "rename", "dir"];

/// Paths by access. Random parts of names are the same in both runs.
fn uses(files: &Value) -> BTreeMap<&'static str, BTreeSet<String>> {
    let mut all = BTreeMap::new();
    for access in COMPARED {
        let has = |file: &&Value| {
            file["access"]
                .as_array()
                .unwrap()
                .iter()
                .any(|of| of == access)
        };
        let used = files.as_array().unwrap().iter().filter(has);
        let paths = used.map(|file| without_random(file["path"].as_str().unwrap()));
        // The recording's own files, and channels, whose names are numbers.
        let paths = paths.filter(|path| path.starts_with('/') && !path.starts_with("/proc/"));
        all.insert(access, paths.collect());
    }
    all
}

/// gcc names its temporary files at random.
fn without_random(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/tmp/cc") {
        out.push_str(before);
        out.push_str("/tmp/ccXXXXXX");
        rest = after.get(6..).unwrap_or_default();
    }
    out + rest
}

/// Programs with their arguments and statuses, and their parents' programs.
fn programs(processes: &Value) -> Vec<String> {
    let all = processes.as_array().unwrap();
    let name = |of: &Value| without_random(&format!("{} {}", of["exec_path"], of["argv"]));
    let parent = |of: &Value| {
        all.iter()
            .find(|one| one["id"] == of["parent_id"])
            .map(name)
    };
    let mut found: Vec<String> = all
        .iter()
        .map(|one| {
            format!(
                "{} {} {} < {:?}",
                name(one),
                one["exit"],
                one["signal"],
                parent(one)
            )
        })
        .collect();
    found.sort();
    found
}

/// The parts of `wanted` that are in `found`, and of `found` that are in `wanted`.
fn recall_and_precision(wanted: &BTreeSet<String>, found: &BTreeSet<String>) -> (f64, f64) {
    let common = wanted.intersection(found).count() as f64;
    let part = |of: &BTreeSet<String>| {
        if of.is_empty() {
            1.0
        } else {
            common / of.len() as f64
        }
    };
    (part(wanted), part(found))
}

/// Records a line, traces it from the same beginning, and compares both runs.
fn agree(what: &str, tools: &[&str], options: &str, prepare: &str, line: &str) {
    if !need::needs(what, tools) {
        return;
    }
    let Some(desk) = Desk::with_strace(what) else {
        return;
    };
    let begin = || {
        desk.shell("rm -rf ./*");
        assert!(desk.shell(prepare).status.success(), "{prepare}");
    };
    begin();
    desk.backstory(&["record", "--wait", "--name", "own", "--", "sh", "-c", line]);
    begin();
    let log = desk.trace(options, line);
    let all = std::fs::read_dir(desk.stage.path()).unwrap();
    let all = all.map(|entry| entry.unwrap().path());
    let mut logs: Vec<_> = all
        .filter(|path| path.to_str().unwrap().contains("trace.log"))
        .collect();
    logs.sort();
    assert!(!logs.is_empty(), "{}", log.display());
    desk.import(&logs, &["--name", "imported"]);
    let files = |run| uses(&desk.json(&["files", "--all", "--json", run]));
    let (own, imported) = (files("own"), files("imported"));
    for access in COMPARED {
        let (wanted, found) = (&own[access], &imported[access]);
        let measured = recall_and_precision(wanted, found);
        let missed: Vec<_> = wanted.difference(found).collect();
        let extra: Vec<_> = found.difference(wanted).collect();
        assert_eq!(
            measured,
            (1.0, 1.0),
            "{what}, {access}: missed {missed:?}, extra {extra:?}"
        );
    }
    assert!(own["read"].len() > 5 && !own["write"].is_empty(), "{own:?}");
    let processes = |run| programs(&desk.json(&["processes", "--json", run]));
    assert_eq!(processes("own"), processes("imported"), "{what}");
    let show = desk.json(&["show", "--json", "imported"]);
    assert_eq!(show["incomplete_because"], serde_json::json!([]), "{what}");
    assert_eq!(
        show["exit"],
        desk.json(&["show", "--json", "own"])["exit"],
        "{what}"
    );
}

const BEST: &str = "-f -y -ttt -s 4096";

#[test]
fn a_pipeline_of_a_shell_agrees() {
    let line = "cat in | tr a-z A-Z | sort > out; cp out copy; mv copy moved; rm out; (exit 3)";
    for options in [BEST, "-ff -y -ttt -s 4096", "-f -yy -ttt -s 4096 -v -T"] {
        agree("a pipeline", &[], options, "printf 'b\\na\\n' > in", line);
    }
}

#[test]
fn a_build_with_make_and_gcc_agrees() {
    let prepare = "printf 'int f(void){return 1;}\\n' > a.c && \
        printf 'int f(void);int main(void){return f()-1;}\\n' > b.c && \
        printf 'app: a.o b.o\\n\\tgcc -o app a.o b.o\\n%%.o: %%.c\\n\\tgcc -c $<\\n' > Makefile";
    agree("a build", &["make", "gcc"], BEST, prepare, "make -j2");
}

#[test]
fn a_python_program_with_threads_and_children_agrees() {
    let program = "import json, subprocess, threading\n\
        def write(): open('t', 'w').write('x')\n\
        one = threading.Thread(target=write); one.start(); one.join()\n\
        with open('j', 'w') as out: json.dump([1], out)\n\
        subprocess.run(['cp', 'j', 'k'])\n";
    let prepare = format!("cat > p.py <<'END'\n{program}END\n");
    let line = "python3 -B p.py";
    agree("a Python program", &["python3"], BEST, &prepare, line);
}

#[test]
fn an_archive_and_links_agree() {
    let line = "mkdir d; echo a > d/a; echo b > d/b; tar czf d.tgz d; mkdir e; tar xzf d.tgz -C e; \
        ln -s d/a l; cat l; ln d/a h; cat h > c; rm -r d";
    agree("an archive", &["tar", "gzip"], BEST, "true", line);
}

/// The results of one line are the same, with any option of strace.
#[test]
fn every_option_of_strace_gives_the_same_files_and_programs() {
    let Some(desk) = Desk::with_strace("the options of strace") else {
        return;
    };
    desk.write("in", b"b\na\n");
    let line = "cd .. && cd work; cat in | tr a-z A-Z | sort > out; cp out copy; mv copy moved";
    let all = [
        "-f -y",
        "-f",
        "-ff",
        "-ff -tt",
        "-f -t",
        "-f -tt -T",
        "-f -r",
        "-f -ttt -r",
        "-f -yy -v -s 9999",
        "-f -X raw",
        "-f -X verbose",
        "-f -x",
        "-f -xx",
        "-f -i -n",
        "-f -q -e signal=none",
    ];
    let mut seen = BTreeMap::new();
    for options in all {
        desk.shell("rm -f out moved ../trace.log*");
        desk.trace(options, line);
        let logs = desk.shell("ls ../trace.log*");
        let logs = String::from_utf8(logs.stdout).unwrap();
        let logs: Vec<_> = logs.lines().map(|name| desk.work().join(name)).collect();
        let work = desk.work();
        desk.import(
            &logs,
            &["--cwd", work.to_str().unwrap(), "--machine", "other"],
        );
        let files = desk.json(&["files", "--all", "--json"]);
        let mut used = uses(&files);
        let below = |path: &String| path.starts_with(work.to_str().unwrap());
        used.values_mut().for_each(|paths| paths.retain(below));
        let programs: Vec<String> = desk
            .json(&["processes", "--json"])
            .as_array()
            .unwrap()
            .iter()
            .map(|one| format!("{} {} {}", one["exec_path"], one["cwd"], one["exit"]))
            .collect();
        let mut programs = programs;
        programs.sort();
        seen.insert(options, (used, programs));
    }
    let first = &seen["-f -y"];
    assert_eq!(first.0["write"].len(), 2, "{first:?}");
    assert_eq!(first.1.len(), 6, "{first:?}");
    for (options, found) in &seen {
        assert_eq!(found, first, "{options}");
    }
}

/// A log on standard error has the output of the programs between its lines.
#[test]
fn a_log_on_standard_error_is_read_between_the_output_of_programs() {
    let Some(desk) = Desk::with_strace("a log on standard error") else {
        return;
    };
    desk.write("in", b"one\ntwo\n");
    let line = "strace -f -y -s 4096 sh -c 'echo hello; printf x; cat in | sort > out; (exit 4)' > ../both.log 2>&1";
    desk.shell(line);
    let work = desk.work();
    desk.import(
        &[desk.stage.path().join("both.log")],
        &["--cwd", work.to_str().unwrap()],
    );
    let show = desk.json(&["show", "--json"]);
    assert_eq!(show["exit"], 4, "{show}");
    assert_eq!(show["processes"], 4, "{show}");
    let of = desk.backstory(&["of", "out"]);
    let text = String::from_utf8(of.stdout).unwrap();
    assert!(text.contains("cat in | sort > out"), "{text}");
}
