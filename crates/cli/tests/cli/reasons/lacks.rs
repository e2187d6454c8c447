//! Features that the machine or the kernel lacks.

use super::Place;
use backstory_testkit::need;

/// `EMFILE`, `EPERM`.
const EPOLL_CREATE1_FAILS: &str = "291=24";
const SENDMSG_FAILS: &str = "46=1";

#[test]
pub(super) fn a_missing_filter_is_reported() {
    let place = Place::new();
    let Some(kernel) = place.fixture("kernel_without") else {
        return;
    };
    for (what, why) in [("listener", "already"), ("killable", "5.19 is needed")] {
        place.is_reported_only_with(&format!("{kernel} {what}"), "", "true", why);
    }
    // A recording inside another is the commonest case.
    let nested = place.summarized("$B record --store outer -- $B record -- true");
    assert!(nested.err.contains("another recording"), "{nested:?}");
    place.is_reported("an outer filter already has a listener (a container runtime, another recording); only calls that the recorder wraps were recorded");
}

#[test]
pub(super) fn a_missing_guard_or_drainer_thread_is_reported() {
    let place = Place::new();
    let Some(kernel) = place.fixture("kernel_without") else {
        return;
    };
    let around = format!("{kernel} threads");
    let answer = place.is_reported_only_with(&around, "", "true", "cannot start the guard: ");
    assert_eq!(answer.status, 0, "{answer:?}");
    place.is_reported_only_with(
        &around,
        "",
        "true",
        "the arena was not drained while the command ran: ",
    );
}

#[test]
pub(super) fn a_guard_that_cannot_log_is_reported() {
    let place = Place::new();
    let Some(kernel) = place.fixture("kernel_without") else {
        return;
    };
    let around = format!("{kernel} {EPOLL_CREATE1_FAILS}");
    let answer = place.is_reported_only_with(
        &around,
        "",
        "true",
        "the guard did not record the calls it received: ",
    );
    assert_eq!(answer.status, 0, "{answer:?}");
}

#[test]
pub(super) fn a_keeper_without_the_listener_is_reported() {
    let place = Place::new();
    let Some(kernel) = place.fixture("kernel_without") else {
        return;
    };
    let around = format!("{kernel} {SENDMSG_FAILS}");
    let answer = place.is_reported_only_with(
        &around,
        "",
        "true",
        "the keeper did not receive the guard's listener: ",
    );
    assert_eq!(answer.status, 0, "{answer:?}");
}

#[test]
pub(super) fn operations_that_could_not_be_logged_are_counted() {
    let place = Place::new();
    let Some(program) = place.fixture("sandbox_forks") else {
        return;
    };
    place.write("a", "text\n");
    // Children whose process ids cannot be found out.
    let answer = place.summarized(&format!("$B record -- {program} raw"));
    assert_eq!(answer.status, 0, "{answer:?}");
    place.is_reported(" operations could not be logged");
    let lost = place.json(&["show", "--json"])["lost"].as_u64().unwrap();
    assert!(lost > 0);
    place.is_reported(&format!("{lost} operations could not be logged"));
    place.record("cat a");
    place.is_complete_without_reasons();
}

#[test]
pub(super) fn memory_that_is_filled_too_late_is_reported_and_delays_no_process() {
    let Some(place) = Place::of_root() else {
        return;
    };
    let Some(program) = place.fixture("slow_memory") else {
        return;
    };
    place.write("a", "one\n");
    place.write("b", "two\n");
    if place.shell(&format!("{program} 1")).status == 77 {
        return need::skipped(
            "memory that is filled late",
            "this kernel has no userfaultfd",
        );
    }
    for (threads, told) in [(1, false), (16, true)] {
        let recorded = place.summarized(&format!("$B record -- {program} {threads}"));
        assert_eq!(
            (recorded.status, recorded.out),
            (0, format!("opened {threads}\n")),
            "{}",
            recorded.err
        );
        match told {
            true => place.is_reported(
                "the arguments of some system calls could not be read in time, so these calls are unknown",
            ),
            false => place.is_complete_without_reasons(),
        }
    }
}

#[test]
pub(super) fn a_hanging_file_system_is_reported() {
    let Some(place) = Place::with_file_servers() else {
        return;
    };
    let (Some(server), true) = (
        place.fixture("silent_server"),
        need::needs(
            "a file system that hangs",
            &["busybox", "/dev/fuse", "timeout"],
        ),
    ) else {
        return;
    };
    // The command gives up long after its look-up has begun, which cannot. The server lives until
    // that was reported.
    let inside = "$B record -- timeout -s KILL 5 busybox cat m/x; echo $?; \
                  while ls $BACKSTORY_STORE/runs/*.part; do sleep 0.02; done >pending 2>&1";
    let line = format!(
        "mkdir m; {server} m sh -c \"{}\"; $B record -- busybox true",
        inside.replace('$', "\\$")
    );
    let Some(answer) = place.shell_in_namespaces("a file system that hangs", &line) else {
        return;
    };
    if answer.err.contains("silent_server") {
        return need::skipped("a file system that hangs", "it cannot be mounted here");
    }
    assert_eq!(answer.out, "137\n", "{answer:?}");
    place.is_complete_without_reasons();
    let runs = place.json(&["log", "--json"]);
    let told = &runs[1]["incomplete_because"][0];
    assert_eq!(
        told, "a file system did not respond in time, so some outcomes are unknown",
        "{runs}"
    );
}
