//! `replay --deep --with asan=FILE`: what a build with a sanitizer reports. Also what another build
//! writes where the recorded program wrote nothing.

use super::Place;
use super::deep_replay::compiled;

/// Says whether the elements with these numbers are digits. It checks no bounds.
const PICK: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    char *digits = malloc(8);
    int at;
    for (at = 0; at < 8; at++)
        digits[at] = '0' + at;
    while (scanf("%d", &at) == 1)
        putchar(digits[at] >= '0' ? 'y' : 'n');
    free(digits);
    return 0;
}
"#;

/// Uses its standard error. Its child does not, and writes behind the end of its memory.
const PARENT: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    fputs("starts\n", stderr);
    if (fork() == 0) {
        char *digits = malloc(8), at;
        digits[0] = '0';
        if (read(0, &at, 1) == 1)
            digits[at - '0'] = 'x';
        _exit(write(1, digits, 1) != 1);
    }
    wait(NULL);
    return 0;
}
"#;

/// Reads its input. With `LOUD`, it writes to both outputs.
const QUIET: &str = r#"
#include <unistd.h>
int main(void) {
    char byte;
    while (read(0, &byte, 1) == 1)
        ;
#ifdef LOUD
    return write(1, "shown\n", 6) != 6 || write(2, "told\n", 5) != 5;
#endif
    return 0;
}
"#;

/// A place where a program was recorded by this line, which has another build, `build`. `None`:
/// there is no compiler.
fn recorded(source: &str, options: &str, line: &str) -> Option<Place> {
    let place = Place::new();
    if !compiled(&place, "", "plain", source) || !compiled(&place, options, "build", source) {
        return None;
    }
    place.deep(line);
    Some(place)
}

/// The words of each whole report, from its first line to its last one.
const REPORTED: [&str; 4] = [
    "ERROR: AddressSanitizer: heap-buffer-overflow",
    "located ",
    "SUMMARY: AddressSanitizer: heap-buffer-overflow",
    "ABORTING",
];

#[test]
fn the_report_of_a_sanitizer_reaches_the_user_in_full() {
    let line = "printf '1 20\\n' | RECORD ./plain > out";
    let Some(place) = recorded(PICK, "-fsanitize=address", line) else {
        return;
    };
    let tool = format!("asan={}", place.path("build"));
    let Some(answer) = place.again(&["--with", &tool]) else {
        return;
    };
    assert_eq!(answer.status, 1, "{answer:?}");
    for part in REPORTED.iter().chain(&["    stderr   of process "]) {
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
    let json = place.report(&["--with", &tool], 1).unwrap();
    let said = json["reconstruction"]["processes"][0]["stderr"].as_str();
    for part in REPORTED {
        assert!(said.unwrap().contains(part), "{part}: {json}");
    }
}

#[test]
fn the_report_about_a_child_reaches_the_user_though_its_record_has_no_standard_error() {
    // The letter is the number 18 behind the digit 0.
    let line = "printf B | RECORD ./plain > out 2> errors";
    let Some(place) = recorded(PARENT, "-fsanitize=address", line) else {
        return;
    };
    let tool = format!("asan={}", place.path("build"));
    let Some(answer) = place.again(&["--with", &tool]) else {
        return;
    };
    assert_eq!(answer.status, 1, "{answer:?}");
    for part in REPORTED {
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
}

#[test]
fn output_where_the_recorded_program_wrote_nothing_is_shown_and_no_difference() {
    let line = "printf 'abc' | RECORD ./plain";
    let Some(place) = recorded(QUIET, "-DLOUD", line) else {
        return;
    };
    let build = place.path("build");
    let build = ["--binary", build.as_str(), "--allow-host"];
    let Some(answer) = place.again(&build) else {
        return;
    };
    assert_eq!(answer.status, 0, "{answer:?}");
    let said = "stderr   \"shown\\ntold\\n\", of process";
    assert!(answer.err.contains(said), "{answer:?}");
    let json = place.report(&build, 0).unwrap();
    let process = &json["reconstruction"]["processes"][0];
    assert_eq!(process["stderr"], "\"shown\\ntold\\n\"", "{process}");
    assert!(process["difference"].is_null(), "{process}");
}
