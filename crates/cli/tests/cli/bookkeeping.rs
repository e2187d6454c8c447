//! Build tools keep track of their own work in files. These files tie no steps together.

use super::*;
use backstory_testkit::need::needs;

/// Two programs from two sources, and a table that a script makes from a text file.
fn project(place: &Place) {
    place.write("one.c", "#include \"x.h\"\nint main(void) { return X; }\n");
    place.write(
        "two.c",
        "#include \"y.h\"\n#include \"table.h\"\nint main(void) { return Y; }\n",
    );
    place.write("x.h", "#define X 0\n");
    place.write("y.h", "#define Y 0\n");
    place.write("units.txt", "yard\n");
}

/// Asserts that the answers about `one` know nothing of `two.c`, and the other way round.
fn are_apart(place: &Place) {
    let of_one = place.run(&["of", "one"]).out;
    assert!(
        of_one.contains("one.c") && !of_one.contains("two.c"),
        "{of_one}"
    );
    let inputs = place.run(&["of", "one", "--inputs"]).out;
    let own: Vec<&str> = inputs
        .lines()
        .filter(|line| line.ends_with(".c") || line.ends_with(".h") || line.ends_with(".txt"))
        .collect();
    assert_eq!(own, ["one.c", "x.h"], "{inputs}");
    let uses = place.run(&["uses", "y.h"]).out;
    assert!(uses.contains("-o two") && !uses.contains("one"), "{uses}");
    let why = place.run(&["of", "two", "--why", "units.txt"]).out;
    let lines: Vec<&str> = why.lines().map(str::trim).collect();
    assert_eq!(lines[0], "two", "{why}");
    assert_eq!(lines.last(), Some(&"from units.txt"), "{why}");
    assert!(why.contains("from table.h"), "{why}");
    assert!(
        !why.contains("started by") && !why.contains("pipe:"),
        "{why}"
    );
}

#[test]
fn the_dependency_files_that_make_includes_tie_no_steps_together() {
    if !needs("dependency files of make", &["make", "gcc"]) {
        return;
    }
    let place = Place::new();
    project(&place);
    place.write(
        "Makefile",
        "all: one two\n\
         one: one.o\n\tgcc -o $@ one.o\n\
         two: two.o\n\tgcc -o $@ two.o\n\
         %.o: %.c\n\tgcc -MMD -c $< -o $@\n\
         two.o: table.h\n\
         table.h: units.txt\n\tsed 's/^/#define /' units.txt > $@\n\
         -include one.d two.d\n",
    );
    place.record("make");
    place.write_aged("x.h", "#define X 1\n");
    place.write_aged("y.h", "#define Y 1\n");
    place.record("make");
    are_apart(&place);
}

#[test]
fn the_logs_and_dependency_files_of_ninja_tie_no_steps_together() {
    if !needs("the files of ninja", &["ninja", "gcc"]) {
        return;
    }
    let place = Place::new();
    project(&place);
    place.write(
        "build.ninja",
        "rule cc\n  command = gcc -MD -MF $out.d -c $in -o $out\n  depfile = $out.d\n\
         rule link\n  command = gcc -o $out $in\n\
         rule table\n  command = sed 's/^/#define /' units.txt > $out\n\
         build table.h: table units.txt\n\
         build one.o: cc one.c\nbuild two.o: cc two.c | table.h\n\
         build one: link one.o\nbuild two: link two.o\n",
    );
    place.record("ninja > ninja.log");
    place.write_aged("x.h", "#define X 1\n");
    place.write_aged("y.h", "#define Y 1\n");
    place.record("ninja > ninja.log");
    are_apart(&place);
}
