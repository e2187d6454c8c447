//! `replay --deep` of processes that share their descriptors.

use super::Place;
use super::deep_replay::compiled;

/// A child in the same table of descriptors opens a file under a number that was used before.
const OPENED_ASIDE: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
static char stack[65536] __attribute__((aligned(16)));
static int passed = -1;
static int opens(void *name)
{
    passed = open(name, O_WRONLY | O_CREAT, 0644);
    return passed < 0;
}
int main(void)
{
    int own = open("own", O_WRONLY | O_CREAT, 0644), status = 1;
    if (write(own, "own\n", 4) != 4 || close(own) != 0)
        return 1;
    int flags = CLONE_FILES | CLONE_VM | CLONE_VFORK | SIGCHLD;
    pid_t child = clone(opens, stack + sizeof stack, flags, "passed");
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0 || passed != own)
        return 2;
    return write(passed, "passed\n", 7) != 7;
}
"#;

#[test]
fn a_program_writes_to_the_file_that_a_child_opened_in_its_table_of_descriptors() {
    let place = Place::new();
    if !compiled(&place, "", "aside", OPENED_ASIDE) {
        return;
    }
    place.deep("RECORD ./aside");
    place.forget_everything();
    let Some(report) = place.report(&[], 0) else {
        return;
    };
    let found = &report["reconstruction"];
    // The recorder logs no call of the child.
    assert_eq!(found["verdict"], "equal-where-recorded", "{found:#}");
    let outputs = report["outputs"].as_array().unwrap();
    let are_identical = outputs.iter().all(|one| one["state"] == "identical");
    assert!(outputs.len() == 2 && are_identical, "{report:#}");
}
