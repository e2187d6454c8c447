//! Scarce resources for the recording itself. The command runs as usual, or it does not run and
//! that is reported. It never waits for a resource that cannot come.

use super::{Answer, Place};
use backstory_testkit::need;

/// Seconds after which a short command counts as hanging.
const PATIENCE: u32 = 60;

/// Runs `line` in a recorded shell, and compares the result with that of the unrecorded line.
/// `around` wraps both.
fn tells_the_truth(around: impl Fn(&str) -> String, line: &str, what: &str) {
    let place = Place::new();
    place.write("in", "text\n");
    let native = place.shell(&around(&format!("sh -c \"{line}\"")));
    let _ = std::fs::remove_file(place.work().join("out"));
    let record = around(&format!("$B record -- sh -c \"{line}\""));
    let recorded = place.shell(&format!("timeout -k 1 {PATIENCE} {record}"));
    assert!(
        ![124, 137].contains(&recorded.status),
        "{what}: it hangs: {recorded:?}"
    );
    let out_of_memory = recorded.status == 134 && recorded.err.contains("memory allocation of");
    if out_of_memory {
        assert!(!place.work().join("out").exists(), "{what}: {recorded:?}");
        return;
    }
    if recorded.status == 125 {
        // Recording was impossible, and the command did not run.
        recorded.is_error(125, &["cannot"]);
        assert!(!place.work().join("out").exists(), "{what}: {recorded:?}");
        return;
    }
    assert_eq!(
        (recorded.status, &recorded.out),
        (native.status, &native.out),
        "{what}: {recorded:?}"
    );
    let shown = place.json(&["show", "--json"]);
    assert_eq!(
        shown["complete"] == true,
        recorded.err.is_empty(),
        "{what}: {recorded:?} {shown}"
    );
    assert!(
        shown["complete"] == false || place.wrote("out"),
        "{what}: complete, but out is missing"
    );
}

#[test]
fn with_little_address_space_a_command_runs_as_alone_or_not_at_all() {
    if !need::needs("little address space", &["prlimit"]) {
        return;
    }
    let place = Place::new();
    let limited = |kilobytes: u32, line: &str| format!("prlimit --as={kilobytes}000 {line}");
    // Below this limit the kernel or the loader refuses `record` itself, whose size depends on its
    // build.
    let loads = (16_000..400_000)
        .step_by(1_000)
        .find(|kilobytes| place.shell(&limited(*kilobytes, "$B --version")).status == 0)
        .expect("`--version` needs little memory");
    for kilobytes in (loads..=loads + 16_000).step_by(1_000) {
        let around = |line: &str| limited(kilobytes, line);
        tells_the_truth(
            around,
            "cat in >out; ulimit -v; ls | wc -l",
            &format!("{kilobytes} kB"),
        );
    }
}

/// Processes of a user namespace are counted apart, so that other tests of this user do not matter.
#[test]
fn a_command_without_spare_threads_runs_as_alone_or_not_at_all() {
    let within = "unshare -U prlimit --nproc";
    if !need::needs("few processes", &["unshare", "prlimit"]) {
        return;
    }
    if Place::new().shell(&format!("{within}=1 true")).status != 0 {
        return need::skipped("few processes", "needs user namespaces");
    }
    // Only the last numbers suffice for all processes of a recording. Some are tried several times,
    // because chance decides which process gets the last one.
    for processes in [1, 2, 3, 4, 5, 5, 5, 5, 6, 6, 7, 8, 9, 10] {
        let around = |line: &str| format!("{within}={processes} {line}");
        tells_the_truth(
            around,
            "read x <in; echo $x >out; echo said; exit 3",
            &format!("{processes} processes"),
        );
    }
}

#[test]
fn full_shared_memory_neither_changes_nor_delays_a_command() {
    // From none at all to the few chunks with which a recording begins.
    let line = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do (cat in >out; sleep 0.1) & done; wait; find /usr/lib -name nothing 2>/dev/null; echo said; exit 3";
    let place = Place::new();
    for kilobytes in [4, 80, 390, 400, 480] {
        place.write("in", "text\n");
        let shell = format!(
            "mount -t tmpfs -o size={kilobytes}k none /dev/shm && timeout -k 1 {PATIENCE} $B record -- sh -c \"{line}\""
        );
        let Some(recorded) = place.shell_in_namespaces("full shared memory", &shell) else {
            return;
        };
        assert_eq!(
            (recorded.status, recorded.out.as_str()),
            (3, "said\n"),
            "{kilobytes} kB: {recorded:?}"
        );
        is_truthful(&place, &recorded);
    }
}

/// Each of many processes that only the guard sees takes a descriptor of the supervisor.
#[test]
fn many_processes_with_few_descriptors_run_as_alone() {
    let busybox = "busybox";
    if !need::needs("a crowd without a recorder", &[busybox]) {
        return;
    }
    let crowd = format!(
        "mkfifo p; i=0; while [ $i -lt 60 ]; do {busybox} sh -c \"echo >c$i; read x\" <p & i=$((i+1)); done; exec 9>p; \
                 while [ $(ls | grep -c ^c[0-9]) -lt 60 ]; do :; done; exec 9>&-; wait; echo said; exit 3"
    );
    for descriptors in [20, 24, 64] {
        let place = Place::new();
        place.write("crowd", &crowd);
        let recorded = place.shell(&format!(
            "ulimit -n {descriptors}; timeout -k 1 {PATIENCE} $B record -- sh ./crowd"
        ));
        assert_eq!(
            (recorded.status, recorded.out.as_str()),
            (3, "said\n"),
            "{descriptors}: {recorded:?}"
        );
        is_truthful(&place, &recorded);
    }
}

fn is_truthful(place: &Place, recorded: &Answer) {
    let shown = place.json(&["show", "--json"]);
    assert_eq!(
        shown["complete"] == true,
        recorded.err.is_empty(),
        "{recorded:?} {shown}"
    );
}
