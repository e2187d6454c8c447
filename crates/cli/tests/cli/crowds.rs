//! Many processes at once, and programs that emulate a processor: no operation is lost, and no
//! program is disturbed.

use backstory_testkit::need;

use super::{Answer, Place};

/// Debian's own Python: an ordinary user may not be able to run the first one on root's path.
const PYTHON: &str = "/usr/bin/python3";

fn is_silent(answer: &Answer) {
    assert_eq!(
        (answer.status, answer.out.as_str(), answer.err.as_str()),
        (0, "", "")
    );
}

#[test]
fn a_crowd_that_starts_at_once_loses_nothing() {
    if !need::needs("a crowd", &[PYTHON]) {
        return;
    }
    let threads = "
import threading
threading.stack_size(65536)
barrier = threading.Barrier(500)
def work(n):
    barrier.wait()
    with open(f't{n}', 'w') as f: f.write('x')
    barrier.wait()
all = [threading.Thread(target=work, args=(n,)) for n in range(500)]
for t in all: t.start()
for t in all: t.join()
";
    let processes = "
import os
r, w = os.pipe()
for n in range(300):
    if os.fork() == 0:
        os.close(w); os.read(r, 1)
        open(f'p{n}', 'w').close()
        os._exit(0)
os.close(w)
for n in range(300): os.wait()
";
    for guard in ["on", "off"] {
        for program in [threads, processes] {
            let place = Place::new();
            is_silent(&place.run(&["record", "--guard", guard, "--", PYTHON, "-c", program]));
            let shown = place.json(&["show", "--json"]);
            assert_eq!(
                (&shown["complete"], &shown["lost"]),
                (&true.into(), &0.into()),
                "{guard}"
            );
        }
    }
}

#[test]
fn a_memory_checker_finds_only_errors_of_the_program() {
    if !need::needs("valgrind", &["valgrind", "cc"]) {
        return;
    }
    let place = Place::new();
    // A name in three bytes of the heap: reading beyond it is an error to be reported, and so is an
    // unknown call.
    place.write(
        "named.c",
        "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint main(void) { char *p = malloc(3); strcpy(p, \"in\"); \
         FILE *f = fopen(p, \"r\"); if (!f) return 2; fclose(f); free(p); return 0; }\n",
    );
    place.write("in", "x");
    let path = place.path("named");
    let built = std::process::Command::new("cc")
        .args(["-g", "-o", &path, &place.path("named.c")])
        .status();
    assert!(built.unwrap().success());
    for guard in ["on", "off", "strict"] {
        let answer = place.run(&[
            "record",
            "--guard",
            guard,
            "--",
            "valgrind",
            "-q",
            "--error-exitcode=9",
            &path,
        ]);
        assert_eq!((answer.status, answer.out.as_str()), (0, ""));
        // It is a static program and takes no recorder, so without a guard it is not observed.
        match guard {
            "off" => {
                assert!(
                    answer.err.starts_with("backstory: ")
                        && answer.err.contains("without the guard")
                )
            }
            _ => assert_eq!(answer.err, ""),
        }
    }
}
