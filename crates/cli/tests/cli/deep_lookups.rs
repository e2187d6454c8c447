//! `replay --deep`: a look-up that failed in the record fails with the same error again. It puts no
//! file into the root.
//!
//! The root of a replay has only the files that the run used, and one user, who may use all of
//! them. So the kernel has other errors there.

use super::Place;
use super::deep_replay::recorded_program;

/// Prints the errors of calls by these paths:
///
/// - below a regular file,
/// - in a directory that may not be searched,
/// - of a file that may not be read, and of one that is not there.
const LOOKS: &str = r#"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
static int error(int result) { return result < 0 ? errno : 0; }
int main(void)
{
    const char *paths[] = {"looks.c/x", "looks.c/", "/usr/bin/env/x", "shut/x", "secret", "none/x"};
    struct stat status;
    for (int n = 0; n < 6; n++) {
        printf("%s %d", paths[n], error(stat(paths[n], &status)));
        printf(" %d", error(lstat(paths[n], &status)));
        printf(" %d", error(access(paths[n], R_OK)));
        printf(" %d", error(open(paths[n], O_RDONLY)));
        printf(" %d\n", error(open(paths[n], O_WRONLY)));
    }
    printf("a list %d\n", error(open("looks.c", O_RDONLY | O_DIRECTORY)));
    return 0;
}
"#;

#[test]
fn a_lookup_fails_with_the_recorded_error_although_the_root_lacks_the_file() {
    let line = "mkdir shut; echo > shut/x; echo > secret; chmod 0 shut secret; RECORD ./looks > out \
                && chmod 700 shut secret";
    let Some(place) = recorded_program("", "looks", LOOKS, line) else {
        return;
    };
    let out = place.out();
    for recorded in [
        "looks.c/x 20 20 20 20 20",
        "looks.c/ 20 20 20 20 20",
        "a list 20",
    ] {
        assert!(
            out.lines().any(|line| line == recorded),
            "{recorded}: {out}"
        );
    }
    place.is_equal_again();
}

#[test]
fn links_that_lead_to_no_file_are_made_again_by_the_run() {
    let place = Place::new();
    let script = "ln -s a a; cat a; ls a; (exec ./a); ln -s nothing b; set -C; echo > b; rm a b";
    place.deep(&format!("RECORD sh -c '{script}' > out 2>&1"));
    place.is_equal_without_its_files();
}
