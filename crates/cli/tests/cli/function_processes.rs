//! Processes whose functions are recorded: the lines of `processes`, and children by fork.

use super::Place;
use backstory_testkit::need::skipped;

/// Reads a file in a function, and writes files in a function, also in a child.
const SOURCE: &str = r#"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static char text[100];
void read_in(void) {
    FILE *file = fopen("in.txt", "r");
    fgets(text, sizeof text, file); fclose(file);
}
static void put(const char *path) {
    FILE *file = fopen(path, "w");
    fputs(text, file); fclose(file);
}
void write_out(const char *path) { put(path); }
void write_both(void) { write_out("first.txt"); put("second.txt"); write_out("third.txt"); }
int main(void) {
    read_in();
    for (int i = 0; i < 3; i++)
        write_out("out.txt");
    write_both();
    if (!fork()) {
        write_out("child.csv");
        _exit(0);
    }
    int status;
    wait(&status);
    return 3;
}
"#;

fn recorded() -> Option<Place> {
    let place = Place::new();
    place.write("copy.c", SOURCE);
    place.write("in.txt", "one\n");
    let mut built = place.command(&["cc"]);
    let built = built.args(["-O1", "-o", "copy", "copy.c"]).status();
    if !built.is_ok_and(|status| status.success()) {
        skipped("functions", "there is no compiler");
        return None;
    }
    let options = ["--functions", "read_*", "--functions", "write_*"];
    place.keep("./copy; true", &options);
    Some(place)
}

#[test]
fn a_program_is_one_line_with_the_calls_of_its_functions_below() {
    let Some(place) = recorded() else { return };
    let lines = place.run(&["processes"]).out;
    let lines: Vec<&str> = lines.lines().collect();
    let begin = lines
        .iter()
        .position(|line| line.trim().starts_with("./copy"));
    let begin = begin.unwrap_or_else(|| panic!("{lines:?}"));
    let depth = |line: &str| line.len() - line.trim_start().len();
    let own = depth(lines[begin]);
    assert!(lines[begin].contains("exit 3"), "{lines:?}");
    let below: Vec<(usize, &str)> = lines[begin + 1..]
        .iter()
        .take_while(|line| depth(line) > own)
        .map(|line| ((depth(line) - own) / 2, line.trim()))
        .map(|(depth, line)| {
            (
                depth,
                line.split("()").next().unwrap().trim_start_matches('\''),
            )
        })
        .map(|(depth, name)| (depth, name.split("  ").next().unwrap()))
        .collect();
    let expected = [
        (1, "read_in"),
        (1, "write_out"),
        (1, "write_out"),
        (1, "write_out"),
        (1, "write_both"),
        (2, "write_out"),
        (2, "write_out"),
        (1, "./copy"),
        (2, "write_out"),
    ];
    assert_eq!(below, expected, "{lines:?}");
}

/// Executes programs after a call of a function, and inside of one.
const EXECUTES: &str = r#"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
void write_out(const char *path) { FILE *file = fopen(path, "w"); fputs("x", file); fclose(file); }
void write_last(const char *path) { write_out(path); execlp("true", "true", "inside", (char *)0); }
int main(void) {
    if (!fork()) {
        write_out("child.csv");
        execlp("true", "true", "behind", (char *)0);
    }
    wait(0);
    if (!fork())
        write_last("last.csv");
    wait(0);
    write_out("own.csv");
    execlp("true", "true", "own", (char *)0);
}
"#;

#[test]
fn a_program_can_execute_another_one_after_a_call_and_inside_of_one() {
    let place = Place::new();
    place.write("next.c", EXECUTES);
    let mut built = place.command(&["cc"]);
    let built = built.args(["-O0", "-o", "next", "next.c"]).status();
    if !built.is_ok_and(|status| status.success()) {
        return skipped("functions", "there is no compiler");
    }
    place.keep("./next; true", &["--functions", "write_*"]);
    let text = place.run(&["processes"]).out;
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let of = |begin: &str| -> Vec<bool> {
        let of = lines.iter().filter(|line| line.starts_with(begin));
        of.map(|line| line.contains(", then exec")).collect()
    };
    // The program, the child that executes behind a call, and the one that does so in a call.
    assert_eq!(of("./next  ["), [true], "{text}");
    assert_eq!(of("./next  (forked)"), [true, false], "{text}");
    assert_eq!(of("true"), [false; 3], "{text}");
    assert!(!text.contains("no exec"), "{text}");
}

#[test]
fn what_a_function_read_is_a_source_of_what_one_of_a_child_wrote() {
    let Some(place) = recorded() else { return };
    let of = place.run(&["of", "child.csv"]).out;
    assert!(of.contains("write_out() in copy.c"), "{of}");
    assert!(of.contains("\n  read_in() in copy.c"), "{of}");
    assert!(of.contains("in.txt"), "{of}");
    let uses = place.run(&["uses", "in.txt"]).out;
    assert!(uses.contains("child.csv"), "{uses}");
}

#[test]
fn a_function_that_goes_on_after_a_call_inside_of_it_is_one_step() {
    let Some(place) = recorded() else { return };
    let of = place.run(&["of", "third.txt"]).out;
    assert!(of.contains("\n  write_both() in copy.c"), "{of}");
    assert!(!of.contains("× write_both()"), "{of}");
}

#[test]
fn attributes_that_have_no_room_are_counted() {
    let place = Place::new();
    let functions: String = (0..7)
        .map(|at| format!("void f{at}(void) {{}}\n"))
        .collect();
    let calls: String = (0..7).map(|at| format!("f{at}();")).collect();
    let main = format!("{functions}int main(void) {{ {calls} return 0; }}\n");
    place.write("many.c", &main);
    let mut built = place.command(&["cc"]);
    let built = built.args(["-O0", "-o", "many", "many.c"]).status();
    if !built.is_ok_and(|status| status.success()) {
        return skipped("functions", "there is no compiler");
    }
    place.keep("./many; true", &["--functions", "f?"]);
    let text = place.run(&["processes"]).out;
    assert!(text.contains("calls of f3() in many.c:4=1"), "{text}");
    assert!(
        text.contains("… and 3 more attributes (--json has all)"),
        "{text}"
    );
}
