//! `record --deep` of programs that make system calls without libc. The recorder sees none of
//! these, and `show` and `replay` say so.

use serde_json::Value;

use super::deep_replay::{recorded_program, replayed_program};
use super::{Answer, Place};

/// Reads its input by an instruction of its own. With an argument, it asks for its number in that
/// way, and reads nothing.
const RAW: &str = r#"
#include <stdio.h>
static long call(long number, long a, void *b, long c)
{
    __asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return number;
}
int main(int count, char **words)
{
    enum { READ = 0, GETPID = 39 };
    char text[64] = "";
    if (count > 1)
        return call(GETPID, 0, 0, 0) <= 0 || puts(words[1]) < 0;
    if (call(READ, 0, text, sizeof text - 1) < 0)
        return 1;
    printf("got %s", text);
    return 0;
}
"#;

/// Where a line that executes the program was recorded. `None`: there is no compiler.
fn recorded(line: &str) -> Option<Place> {
    recorded_program("", "raw", RAW, line)
}

/// The same, and the answer of its replay.
fn replayed(line: &str) -> Option<(Place, Answer)> {
    replayed_program("", "raw", RAW, line)
}

/// The member `deep` of the run, and the text of `show`.
fn shown(place: &Place) -> (Value, String) {
    let json = place.json(&["show", "deep", "--json"])["deep"].clone();
    (json, place.run(&["show", "deep"]).out)
}

/// The states of the processes in a list of the member `deep` whose program's name ends so.
fn states(deep: &Value, list: &str, name: &str) -> Vec<String> {
    let all = deep[list].as_array().unwrap().iter();
    let of_program = all.filter(|one| one["exec_path"].as_str().is_some_and(|p| p.ends_with(name)));
    of_program
        .map(|one| one["state"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_process_whose_code_can_make_calls_without_libc_is_deep_and_may_lack_calls() {
    let Some(place) = recorded("echo one | RECORD sh -c './raw | cat' > out") else {
        return;
    };
    let (deep, text) = shown(&place);
    assert_eq!(states(&deep, "deep", "/raw"), ["deep, may lack calls"]);
    assert_eq!(states(&deep, "deep", "/cat"), ["deep"], "{deep:#}");
    let count = "1 of them may lack calls (own system calls: raw)\n";
    assert!(text.contains(count), "{text}");
    let mut lines = text.lines();
    let named = lines.find(|line| line.starts_with("  may lack ")).unwrap();
    assert!(
        named.contains("/raw (") && !named.contains("/cat"),
        "{text}"
    );
}

/// Forks a child, which ends by itself.
const FORKS: &str = r#"
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words)
{
    long number = 39;
    if (!fork())
        return write(1, "child\n", 6) != 6;
    if (count > 1)
        __asm__ volatile("syscall" : "+a"(number) : : "rcx", "r11", "memory");
    return wait(0) < 0;
}
"#;

#[test]
fn a_forked_child_may_lack_calls_as_its_parent() {
    let Some(place) = recorded_program("", "forks", FORKS, "RECORD ./forks > out") else {
        return;
    };
    let (deep, text) = shown(&place);
    let all = deep["deep"].as_array().unwrap();
    assert_eq!(all.len(), 2, "{deep:#}");
    for process in all {
        assert_eq!(process["state"], "deep, may lack calls", "{deep:#}");
    }
    assert!(text.contains(", 2 of them may lack calls "), "{text}");
}

/// Has a section of Go's linker, and no note of it: as a Go program that was linked with libc and
/// `-buildid=`.
const GO: &str = r#"
#include <unistd.h>
__asm__(".pushsection .go.buildinfo, \"aw\"; .skip 32; .popsection");
int main(void) { return write(1, "go\n", 3) != 3; }
"#;

#[test]
fn a_go_program_without_a_note_is_shallow() {
    let line = "RECORD sh -c './go-program && /bin/echo done' > out";
    let Some(place) = recorded_program("", "go-program", GO, line) else {
        return;
    };
    assert_eq!(place.out(), "go\ndone\n");
    let (deep, text) = shown(&place);
    assert_eq!(states(&deep, "shallow", "/go-program"), ["shallow"]);
    assert!(states(&deep, "deep", "/go-program").is_empty(), "{deep:#}");
    assert_eq!(states(&deep, "deep", "/echo"), ["deep"], "{deep:#}");
    assert_eq!(deep["own_calls"], serde_json::json!([]), "{deep:#}");
    assert!(!text.contains("may lack"), "{text}");
}

#[test]
fn show_names_a_program_that_can_make_calls_without_libc_and_no_other_one() {
    let Some(place) = recorded("echo one | RECORD sh -c './raw | cat' > out") else {
        return;
    };
    assert_eq!(place.out(), "got one\n");
    let (deep, text) = shown(&place);
    let own = deep["own_calls"].as_array().unwrap();
    assert_eq!(own.len(), 1, "{deep:#}");
    assert!(own[0].as_str().unwrap().ends_with("/raw"), "{deep:#}");
    let said = "/raw can make system calls without libc, which no record has\n";
    assert!(text.contains(said), "{text}");
}

#[test]
fn a_run_of_usual_programs_has_no_calls_without_libc() {
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    place.deep("RECORD sh -c 'sort in | cat' > out");
    let (deep, text) = shown(&place);
    assert_eq!(deep["own_calls"], serde_json::json!([]), "{deep:#}");
    for part in ["without libc", "may lack"] {
        assert!(!text.contains(part), "{text}");
    }
    let all = deep["deep"].as_array().unwrap();
    assert!(all.iter().all(|one| one["state"] == "deep"), "{deep:#}");
    if let Some(answer) = place.again(&[]) {
        assert!(!answer.err.contains("without libc"), "{answer:?}");
    }
}

#[test]
fn a_replay_counts_the_calls_without_libc_and_is_equal_at_most_where_it_was_recorded() {
    let Some((place, answer)) = replayed("RECORD ./raw done | cat > out") else {
        return;
    };
    assert_eq!(answer.status, 0, "{answer:?}");
    for part in [
        "equal where it was recorded: 1 program",
        "/raw) made 1 call without libc: the record lacks such calls",
    ] {
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
    let report = place.report(&[], 0).unwrap();
    let program = &report["reconstruction"]["processes"][0];
    assert_eq!(program["own_calls"], 1, "{report:#}");
}

#[test]
fn input_that_was_read_without_libc_is_missing_and_the_report_says_why() {
    let Some((_, answer)) = replayed("echo one | RECORD ./raw | cat > out") else {
        return;
    };
    assert_eq!(answer.status, 1, "{answer:?}");
    for part in [
        "different: 1 program",
        "/raw) made 1 call without libc: the record lacks such calls",
    ] {
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
}
