//! Arguments and results of functions are recorded with the types that DWARF has.

use super::Place;
use backstory_testkit::need::skipped;

/// Functions with parameters of each supported type.
const VALUES: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
struct point { int x; double y; const char *label; };
static volatile int sink;
__attribute__((noinline)) int write_ints(const char *path, int a, long b, unsigned char c,
                                         unsigned d, short e, long stacked, char last) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    sink = (int)write(fd, "x", 1) + (int)(b + c + d + e + stacked + last);
    close(fd);
    return a - 50;
}
__attribute__((noinline)) double write_floats(double x, float y, const struct point *p) {
    int fd = open("floats.csv", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    sink = (int)write(fd, p ? p->label : "", 1);
    close(fd);
    return x * y;
}
__attribute__((noinline)) const char *write_to(int out_fd, const char *password, int *nowhere) {
    sink = (int)write(out_fd, password, 1) + (nowhere != 0);
    return "done";
}
__attribute__((noinline)) int count_nothing(const char *text) {
    return (int)strlen(text) + sink;
}
int main(void) {
    struct point p = {3, -0.5, "here"};
    int out = open("out.csv", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    sink = write_ints("ints.csv", -7, 1L << 40, 200, 4000000000u, -3, 99, 'z');
    sink = (int)write_floats(2.5, 0.25f, &p);
    sink = (int)write_to(out, "hunter2hunter2", (int *)16)[0];
    return count_nothing("abc") < 0;
}
"#;

/// gcc computes some results after its hook, as that of `write_floats` with `-O2`.
const ALL: &[&str] = &["return=-57", "return=\"done\"", "return=0.625"];

fn values_are_recorded(options: &[&str], results: &[&str]) {
    let place = Place::new();
    place.write("values.c", VALUES);
    let built = place
        .command(&["cc"])
        .args(options)
        .args(["-g", "-o", "values", "values.c"])
        .status();
    if !built.is_ok_and(|status| status.success()) {
        return skipped(
            "values of functions",
            &format!("no compiler for {options:?}"),
        );
    }
    let wanted = [
        "--functions",
        "write_*",
        "--functions",
        "count_*",
        "--arguments",
    ];
    place.keep("./values", &wanted);
    let arguments = |file: &str, function: &str| {
        let of = place.json(&["of", file, "--json", "--level", "process"]);
        let nodes = of["nodes"].as_array().unwrap().clone();
        let found = nodes.into_iter().find(|node| {
            let name = node["argv"][0].as_str();
            name.is_some_and(|name| name.starts_with(function))
        });
        found.map_or(serde_json::Value::Null, |node| node["argv"].clone())
    };
    let all = arguments("ints.csv", "write_ints").to_string();
    for expected in [
        "path=\\\"ints.csv\\\"",
        "a=-7",
        "b=1099511627776",
        "c=200",
        "d=4000000000",
        "e=-3",
        "stacked=99",
        "last=122",
    ] {
        assert!(all.contains(expected), "{options:?} {expected}: {all}");
    }
    let all = arguments("floats.csv", "write_floats").to_string();
    for expected in ["x=2.5", "y=0.25", " (x=3, y=-0.5, label=\\\"here\\\")"] {
        assert!(all.contains(expected), "{options:?} {expected}: {all}");
    }
    let all = arguments("out.csv", "write_to").to_string();
    assert!(all.contains("nowhere=0x10\""), "{options:?}: {all}");
    assert!(!all.contains("hunter2"), "{options:?}: {all}");
    let processes = place.run(&["processes"]).out;
    let work = place.work().canonicalize().unwrap();
    for (name, file) in [("path", "ints.csv"), ("out_fd", "out.csv")] {
        let joined = format!("file of {name}={}", work.join(file).display());
        assert!(
            processes.contains(&joined),
            "{options:?} {joined}: {processes}"
        );
    }
    for result in results {
        assert!(
            processes.contains(result),
            "{options:?} {result}: {processes}"
        );
    }
    let runs = place.json(&["log", "--json"]);
    let run = runs[0]["run"].as_str().unwrap();
    let raw = place.run(&["log", "--raw", run]).out;
    assert!(raw.contains("text=\\\"abc\\\""), "{options:?}: {raw}");
}

#[test]
fn arguments_and_results_are_recorded_by_hooks() {
    values_are_recorded(&["--compiler=gcc", "-O0"], ALL);
    values_are_recorded(&["--compiler=gcc", "-O2"], &ALL[..2]);
}

#[test]
fn arguments_and_results_are_recorded_by_sleds() {
    values_are_recorded(&["--compiler=clang", "-O0"], ALL);
    values_are_recorded(&["--compiler=clang", "-O2"], ALL);
}

const RECURSIVE: &str = r#"
#include <stdio.h>

int sum_up(int n) { return n ? n + sum_up(n - 1) : 0; }

int main(void) {
    fclose(fopen("out", "w"));
    return sum_up(2) == 3 ? 0 : 1;
}
"#;

#[test]
fn calls_are_exported_as_spades_llvmtrace_writes_them() {
    let place = Place::new();
    place.write("sum.c", RECURSIVE);
    let built = place.run(&["cc", "--compiler=gcc", "-g", "-o", "sum", "sum.c"]);
    if built.status != 0 {
        return skipped("calls of functions", "no gcc");
    }
    place.keep("./sum", &["--functions", "sum_up", "--arguments"]);
    let calls = place.run(&["export", "opm", "--calls"]);
    assert_eq!((calls.status, calls.err.as_str()), (0, ""));
    let lines: Vec<&str> = calls.out.lines().collect();
    // The third call has the argument 0, which the second one passed.
    for expected in [
        "type:Process id:c2 FunctionID:sum_up.2.",
        "type:WasTriggeredBy from:c2 to:c1",
        "type:Artifact id:a2-0 ArgID:sum_up.2-0 ArgType:i32 ArgName:n ArgVal:0",
        "type:Used from:c2 to:a2-0",
        "type:WasGeneratedBy from:a2-0 to:c1",
        "type:Artifact id:r0 ReturnType:i32 ReturnVal:3",
        "type:WasGeneratedBy from:r0 to:c0",
    ] {
        let is_there = lines.iter().any(|line| line.starts_with(expected));
        assert!(is_there, "{expected}: {}", calls.out);
    }
    let processes = lines.iter().filter(|line| line.starts_with("type:Process"));
    assert_eq!(processes.count(), 3);
    // SPADE's language is read back.
    place.write("calls.dsl", &calls.out);
    let imported = place.run(&["import", "spade", "calls.dsl"]);
    assert_eq!(imported.status, 0, "{imported:?}");
    // A run without functions has no calls.
    place.keep("true", &[]);
    let none = place.run(&["export", "opm", "--calls"]);
    assert_eq!(none.status, 1);
    assert!(
        none.err.contains("record with --functions NAME"),
        "{none:?}"
    );
    let other = place.run(&["export", "dot", "--calls"]);
    assert_eq!(other.status, 2);
}
