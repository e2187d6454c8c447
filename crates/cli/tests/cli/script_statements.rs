//! A result of a script depends on what the script's text passes on to its statement, and on
//! nothing else. Each verdict of `status` is compared with an execution of the changed script.

use std::fs;
use std::process::Command;

use super::Place;

/// Scripts that make `o`, each with a change on which `o` does not depend.
const INDEPENDENT: [(&str, &str); 12] = [
    ("head -n $(cat n) data > p; cat data > o", "echo 1 > n"),
    (
        "N=$(cat n); head -n $N data > p; sort data > o",
        "echo 1 > n",
    ),
    (
        "if grep -q 3 n; then cat data > p; fi; sort data > o",
        "echo 1 > n",
    ),
    (
        "(test $(cat n) = 3 && exit 1; x=1); sort data > o",
        "echo 1 > n",
    ),
    ("read x < n; echo $x > p; sort data > o", "echo 1 > n"),
    (
        "trap 'rm -f t' EXIT; head -n $(cat n) data > t; sort data > o",
        "echo 1 > n",
    ),
    (
        "f() { head -n $1 data > p; }; f $(cat n); sort data > o",
        "echo 1 > n",
    ),
    ("grep -q 3 n; echo $? > p; sort data > o", "echo 1 > n"),
    ("set -u; N=$(cat n); sort data > o", "echo 1 > n"),
    ("cat d/*.txt > o", "echo new > d/new.md"),
    (
        "cat data > p.txt; head -n $(cat n) data > q; cat p.* > o",
        "echo 1 > n",
    ),
    ("./stage n; cat data > o", "echo 1 > n"),
];

/// Scripts that make `o`, each with a change on which `o` depends.
const DEPENDENT: [(&str, &str); 22] = [
    ("read x < link; sort n > p; echo $x > o", "echo 1 > n"),
    (
        "exec 3< data; if grep -q 3 n; then read a <&3; fi; read b <&3; echo $b > o",
        "echo 1 > n",
    ),
    (". ./functions; N=$(cat n); show > o", "echo 1 > n"),
    (
        "exec 5> o; head -n $(cat n) data >&5; sort data >&5",
        "echo 1 > n",
    ),
    (
        "trap 'cp $T o' EXIT; T=$(cat place)/a.txt; sort data > p",
        "echo e > place",
    ),
    (
        "N=$(cat n); sort data > p; head -n $N data > o",
        "echo 1 > n",
    ),
    ("set -e; grep -q 3 n; sort data > o", "echo 1 > n"),
    ("cd $(cat place); cat a.txt > ../o", "echo e > place"),
    (
        "export N=$(cat n); sh -c 'head -n $N data' > o",
        "echo 1 > n",
    ),
    (
        "x=$(cat n); [ \"$x\" = 1 ] && exit 0; sort data > o",
        "echo 1 > n",
    ),
    ("grep -q 3 n; echo $? > o", "echo 1 > n"),
    ("f() { echo $N > o; }; N=$(cat n); f", "echo 1 > n"),
    ("set -- $(cat n); head -n $1 data > o", "echo 1 > n"),
    ("exec 3< n; read x <&3; echo $x > o", "echo 1 > n"),
    (". ./settings; head -n $W data > o", "echo W=1 > settings"),
    ("eval \"N=$(cat n)\"; head -n $N data > o", "echo 1 > n"),
    (
        "case $(cat n) in 3) P=sort;; *) P=cat;; esac; $P data > o",
        "echo 1 > n",
    ),
    (
        "x=$(cat n); y=$x; z=\"-n $y\"; head $z data > o",
        "echo 1 > n",
    ),
    (
        "IFS=$(cut -c 1 separator); x=a.b:c; printf '%s\\n' $x > o",
        "echo . > separator",
    ),
    ("(exit $(cat n)) & wait $!; echo $? > o", "echo 1 > n"),
    ("cat d/*.txt > o", "echo new > d/new.txt"),
    (
        "head -n $(cat n) data > p.txt; sort n > q; cat p.* > o",
        "echo 1 > n",
    ),
];

/// A place with the files that the scripts read, and the script.
fn place(script: &str) -> Place {
    let place = Place::with_files(&[
        ("data", "c\nb\na\nd\n"),
        ("n", "3\n"),
        ("place", "d\n"),
        ("separator", ":\n"),
        ("settings", "W=2\n"),
        ("functions", "show() { head -n $N data; }\n"),
        ("d/a.txt", "in d\n"),
        ("e/a.txt", "in e\n"),
        ("stage", "#!/bin/sh\nhead -n $(cat \"$1\") data > staged\n"),
        ("run.sh", script),
    ]);
    place.sh("chmod +x stage; ln -s n link");
    place
}

/// The bytes of `o` before and after the change, by executions without backstory.
fn natively(place: &Place, shell: &str, change: &str) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    let execute = |line: &str| {
        let mut command = Command::new("sh");
        let line = format!("{line}; {shell} run.sh; exit 0");
        let line = format!("rm -rf ../native; cp -a . ../native; cd ../native; rm -f o; {line}");
        command.args(["-c", &line]).current_dir(place.work());
        assert!(command.status().unwrap().success(), "{line}");
        fs::read(place.work().join("../native/o")).ok()
    };
    (execute(":"), execute(change))
}

#[test]
fn a_result_stays_current_if_no_statement_passes_the_change_on() {
    for shell in ["sh", "bash"] {
        for (script, change) in INDEPENDENT {
            let place = place(script);
            place.sh(&format!("record {shell} run.sh"));
            let (before, after) = natively(&place, shell, change);
            assert_eq!(before, after, "{script}: the test is wrong");
            place.sh(change);
            assert_eq!(place.file_state("o"), "current", "{shell}: {script}");
        }
    }
}

#[test]
fn a_result_is_outdated_if_a_statement_passes_the_change_on() {
    for shell in ["sh", "bash"] {
        for (script, change) in DEPENDENT {
            let place = place(script);
            place.sh(&format!("record {shell} run.sh || true"));
            let (before, after) = natively(&place, shell, change);
            assert_ne!(before, after, "{script}: the test is wrong");
            place.sh(change);
            assert_ne!(place.file_state("o"), "current", "{shell}: {script}");
        }
    }
}

#[test]
fn a_command_that_waits_for_a_signal_of_the_script_is_not_executed_alone() {
    let waits = "sh -c 'trap \"cat n > o; exit 0\" TERM; : > up; while :; do sleep 0.01; done' &";
    let place = place(&format!(
        "{waits}\np=$!\nuntil [ -e up ]; do sleep 0.01; done\nkill -TERM $p\nwait $p\nrm up"
    ));
    place.sh("record sh run.sh");
    place.sh("echo 1 > n");
    let answer = place.run(&["rerun", "--yes", "o"]);
    assert_eq!(answer.status, 0, "{answer:?}");
    assert_eq!(fs::read_to_string(place.path("o")).unwrap(), "1\n");
    assert!(!place.work().join("up").exists());
}
