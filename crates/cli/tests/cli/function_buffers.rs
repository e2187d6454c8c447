//! Calls of functions that share a buffer name each other.

use super::Place;
use backstory_testkit::need::skipped;

/// Two buffers, each filled from a file and written to another, one of them through a third.
const POUR: &str = r#"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) void fill(char *buffer, size_t size, const char *name) {
    int fd = open(name, O_RDONLY);
    if (read(fd, buffer, size) < 0)
        exit(1);
    close(fd);
}
__attribute__((noinline)) void turn(char *to, const char *from) {
    for (int i = 0; i < 8; i++)
        to[i] = from[7 - i];
}
__attribute__((noinline)) void pour(const void *buffer, const char *name) {
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (write(fd, buffer, 8) < 0)
        exit(1);
    close(fd);
}
static char a[64], b[64], turned[64];
int main(void) {
    fill(a, sizeof a, "ia");
    fill(b, sizeof b, "ib");
    turn(turned, b);
    pour(a, "oa");
    pour(turned, "ob");
    return 0;
}
"#;

fn calls_are_joined(compiler: &str, level: &str) {
    let place = Place::new();
    place.write("pour.c", POUR);
    place.write("ia", "content of a\n");
    place.write("ib", "content of b\n");
    let built = place.run(&["cc", compiler, level, "-g", "-o", "pour", "pour.c"]);
    if built.status != 0 {
        return skipped("buffers of functions", &format!("{compiler} {level}"));
    }
    place.keep("./pour", &["--functions", "pour:*", "--arguments"]);
    let by = |name: &str| {
        format!(
            "noted buffer of buffer possibly filled by fill() in pour.c:6 size=64 name=\"{name}\""
        )
    };
    for (file, own, other) in [("oa", "ia", "ib"), ("ob", "ib", "ia")] {
        let of = place.run(&["of", file]).out;
        assert!(of.contains(&by(own)), "{compiler} {level}: {of}");
        assert!(!of.contains(&by(other)), "{compiler} {level}: {of}");
        // The coarse edges stay: the program read both files before.
        assert!(of.contains(other), "{compiler} {level}: {of}");
    }
    let calls = place.run(&["export", "opm", "--calls"]).out;
    let id = |function: &str, argument: &str, value: &str| {
        let named = calls.lines().filter(|line| {
            line.contains(&format!("ID:{function}."))
                && line.contains(&format!("ArgName:{argument} "))
                && line.contains(value)
        });
        let mut ids =
            named.filter_map(|line| line.split(' ').find_map(|one| one.strip_prefix("id:")));
        ids.next()
            .map(str::to_owned)
            .unwrap_or_else(|| panic!("{function} {argument}: {calls}"))
    };
    let (pour, fill) = (id("pour", "buffer", ""), id("fill", "buffer", ""));
    let edge = format!("type:WasDerivedFrom from:{pour} to:{fill} certainty:possible");
    assert!(calls.lines().any(|line| line == edge), "{edge}: {calls}");
    place.write("calls.dsl", &calls);
    let imported = place.run(&["import", "spade", "calls.dsl"]);
    assert_eq!(imported.status, 0, "{imported:?}");
}

#[test]
fn a_function_that_took_a_buffer_names_the_one_that_filled_it_by_hooks() {
    calls_are_joined("--compiler=gcc", "-O0");
    calls_are_joined("--compiler=gcc", "-O2");
}

#[test]
fn a_function_that_took_a_buffer_names_the_one_that_filled_it_by_sleds() {
    calls_are_joined("--compiler=clang", "-O0");
}

/// A buffer that a child writes, and that its parent filled before the fork. Another one is filled
/// after it.
const FORKED: &str = r#"
int main(void) {
    fill(a, sizeof a, "ia");
    int child = fork();
    if (child == 0) {
        pour(a, "oa");
        pour(b, "ob");
        return 0;
    }
    fill(b, sizeof b, "ib");
    return waitpid(child, 0, 0) != child;
}
"#;

#[test]
fn a_child_that_took_a_buffer_names_the_call_of_its_parent_that_filled_it() {
    let place = Place::new();
    let (functions, _) = POUR.split_once("int main").unwrap();
    let text = format!("#include <sys/wait.h>{functions}{FORKED}");
    place.write("pour.c", &text);
    place.write("ia", "content of a\n");
    place.write("ib", "content of b\n");
    let built = place.run(&["cc", "--compiler=gcc", "-g", "-o", "pour", "pour.c"]);
    if built.status != 0 {
        return skipped("buffers of functions", "gcc");
    }
    place.keep("./pour", &["--functions", "pour:*", "--arguments"]);
    let of = place.run(&["of", "oa"]).out;
    let by = "noted buffer of buffer possibly filled by fill() in pour.c:6 size=64 name=\"ia\"";
    assert!(of.contains(by), "{of}");
    let of = place.run(&["of", "ob"]).out;
    assert!(!of.contains("possibly filled"), "{of}");
    let calls = place.run(&["export", "opm", "--calls"]).out;
    let derived = calls.lines().filter(|line| line.contains("WasDerivedFrom"));
    assert_eq!(derived.count(), 1, "{calls}");
}
