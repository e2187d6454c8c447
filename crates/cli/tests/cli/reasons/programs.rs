//! Operations of programs that cause a reason.

use std::process::Stdio;
use std::time::Duration;

use super::Place;
use backstory_eventlog::reason::undecoded;
use backstory_testkit::need;
use backstory_testkit::procs::eventually;

const PATIENCE: Duration = Duration::from_secs(120);

/// Names of interfaces that cannot be decoded, and lines that use them. `$X` is a fixture.
const USES: &[(&str, &str, &str)] = &[
    (undecoded::TRACER_MEMORY, "ptracer", "$X"),
    (undecoded::TRACER_REGISTERS, "ptracer", "$X registers"),
    (undecoded::TRACER_EMULATION, "ptracer", "$X emulate"),
    (undecoded::ACCT, "", "perl -e 'syscall(163, 0)'"),
    (
        undecoded::SWAPON,
        "",
        "perl -e '$f = \"none\"; syscall(167, $f, 0)'",
    ),
    (undecoded::MESSAGE_QUEUE, "message_queue", "$X"),
    (undecoded::OPEN_BY_HANDLE, "handles", "$X"),
    (
        undecoded::WRITES_MEMORY,
        "",
        "perl -e 'syscall(311, $$, 0, 0, 0, 0, 0)'",
    ),
    (
        undecoded::MEMORY_FILE,
        "",
        "perl -e '$p = fork; sleep 99 if !$p; open(F, \"+<\", \"/proc/$p/mem\"); kill 9, $p'",
    ),
    (undecoded::TAKES_DESCRIPTOR, "taken_descriptor", "$X"),
    (undecoded::RING_POLLED, "ring", "$X polled"),
    (undecoded::RING_HIDDEN, "ring", "$X hidden"),
    (undecoded::RING_FORM, "ring", "$X form"),
    (undecoded::RING_PASSES, "ring", "$X passes"),
    (undecoded::RING_FILES, "ring", "$X many"),
    (undecoded::RING_SENDS, "ring", "$X sends"),
    (undecoded::RING_COMMAND, "ring", "$X command"),
    (undecoded::RING_OPERATION, "ring", "$X unknown"),
];

/// All names that are provoked here. Protected processes, and rings without the guard, have other
/// reasons.
pub(super) fn names() -> Vec<&'static str> {
    let otherwise = [
        undecoded::RING_UNSEEN,
        undecoded::FILTERED_UNSEEN,
        undecoded::UNGUARDED,
        undecoded::PROTECTED,
        undecoded::FANOTIFY,
    ];
    USES.iter().map(|of| of.0).chain(otherwise).collect()
}

#[test]
fn without_the_guard_a_program_that_a_limited_process_executes_is_reported_and_a_missing_one_not() {
    if !need::needs(undecoded::FILTERED_UNSEEN, &["/usr/bin/python3"]) {
        return;
    }
    let place = Place::new();
    place.write("refuse.py", crate::doctor::REFUSING);
    let line = "/usr/bin/python3 refuse.py";
    place.summarized(&format!("$B record --guard=off -- {line} sh -c 'echo >f'"));
    let reason = format!(
        "{} was used, which cannot be decoded",
        undecoded::FILTERED_UNSEEN
    );
    place.is_reported(&reason);
    place.shell(&format!("$B record --guard=off -- {line} ./missing"));
    place.is_complete_without_reasons();
    place.summarized(&format!("$B record -- {line} sh -c 'echo >f'"));
    let told = place.json(&["show", "--json"]).to_string();
    assert!(!told.contains(undecoded::FILTERED_UNSEEN), "{told}");
}

#[test]
fn a_fanotify_scanner_is_reported_and_works_as_alone() {
    let Some(place) = Place::of_root() else {
        return;
    };
    let Some(program) = place.fixture("scanner") else {
        return;
    };
    place.write("seen", "text\n");
    let alone = place.shell(&program);
    if alone.status == 77 {
        need::skipped("a scanner", "this kernel asks nobody about opens");
        return;
    }
    assert_eq!(
        (alone.status, alone.out.as_str()),
        (0, "opened text\nscanned text\n")
    );
    for guard in ["on", "strict", "off"] {
        let recorded = place.summarized(&format!("$B record --guard={guard} -- {program}"));
        assert_eq!(
            (recorded.status, &recorded.out),
            (0, &alone.out),
            "{}",
            recorded.err
        );
        place.is_reported(&format!(
            "{} was used, which cannot be decoded",
            undecoded::FANOTIFY
        ));
    }
}

#[test]
pub(super) fn an_interface_that_cannot_be_decoded_is_reported_by_name() {
    let place = Place::new();
    place.write("a", "text\n");
    place.write("b", "text\n");
    for (name, fixture, line) in USES {
        let program = match *fixture {
            "" if need::needs(name, &["perl"]) => String::new(),
            "" => continue,
            fixture => match place.fixture(fixture) {
                Some(program) => program,
                None => continue,
            },
        };
        let line = line.replace("$X", &program);
        let answer = place.summarized(&format!("$B record -- {line}"));
        if answer.status == 77 {
            need::skipped(name, "this kernel gives no such ring");
            continue;
        }
        place.is_reported(&format!("{name} was used, which cannot be decoded"));
        // The rings' program is static.
        if *fixture != "ring" {
            place.summarized(&format!("$B record --guard=off -- {line}"));
            place.is_reported(&format!("{name} was used, which cannot be decoded"));
        }
    }
    if need::needs(undecoded::RING_UNSEEN, &["perl"]) {
        place.summarized(
            "$B record --guard=off -- perl -e '$p = \"\\0\" x 120; syscall(425, 4, $p)'",
        );
        place.is_reported(&format!(
            "{} was used, which cannot be decoded",
            undecoded::RING_UNSEEN
        ));
    }
    for (fixture, line) in [("ring", "plain"), ("", "perl -e 1")] {
        let program = place.fixture(fixture).filter(|_| !fixture.is_empty());
        let answer = place.shell(&format!(
            "rm -rf ring* made; $B record -- {} {line}",
            program.unwrap_or_default()
        ));
        if answer.status == 0 {
            place.is_complete_without_reasons();
        }
    }
}

#[test]
pub(super) fn truncated_shared_memory_is_reported() {
    let place = Place::new();
    if !need::needs("a program without the recorder", &["busybox", "/dev/shm"]) {
        return;
    }
    let line = "echo >started; while [ ! -e go ]; do sleep 0.01; done; exit 3";
    let mut command = place.command(&["record", "--", "busybox", "sh", "-c", line]);
    let mut launcher = command.stderr(Stdio::null()).spawn().unwrap();
    assert!(eventually(PATIENCE, || place
        .work()
        .join("started")
        .exists()));
    let runs = std::fs::read_dir(place.stage.store().join("runs")).unwrap();
    let names = runs.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let parts: Vec<String> = names.filter(|name| name.ends_with(".part")).collect();
    let arena = format!(
        "/dev/shm/backstory-{}.arena",
        parts[0].split('.').next().unwrap()
    );
    let arena = std::fs::File::options().write(true).open(arena).unwrap();
    arena.set_len(4096).unwrap();
    place.write("go", "");
    assert_eq!(launcher.wait().unwrap().code(), Some(3));
    place.finalized();
    place.is_reported(
        "a program truncated or overwrote the recording's shared memory, so operations are lost",
    );
    place.record("true");
    place.is_complete_without_reasons();
}

/// In the supervisor's root the path leads to a dynamic program. In the other root the file is gone
/// when it is looked up.
#[test]
fn a_static_program_in_another_root_without_the_guard_is_reported() {
    let place = Place::new();
    let what = "a static program in another root";
    if !need::needs(what, &["busybox", "unshare", "chroot"]) {
        return;
    }
    if place.shell("unshare -Ur chroot / true").status != 0 {
        return need::skipped(what, "needs user namespaces");
    }
    place.shell("mkdir -p r/bin; cp \"$(command -v busybox)\" r/bin/sh");
    place.is_reported_only_with(
        "",
        "--guard=off",
        "unshare -Ur chroot r /bin/sh -c \"echo x >/made\"",
        "without the guard, nothing that /bin/sh did was recorded",
    );
    place.summarized("$B record --guard=off -- sh -c 'unshare -Ur chroot r /bin/sh -c \"echo x >/made\"; rm -r r'");
    place.is_reported("without the guard, nothing that /bin/sh did was recorded");
    place.write("in", "");
    place.summarized("$B record --guard=off -- unshare -Ur chroot / sh -c \"cat in; cp in out\"");
    place.is_complete_without_reasons();
}

#[test]
pub(super) fn a_static_program_without_the_guard_is_reported() {
    let place = Place::new();
    if !need::needs("a static program", &["busybox"]) {
        return;
    }
    let busybox = place.stage.busybox().unwrap();
    let busybox = busybox.display();
    place.is_reported_only_with(
        "",
        "--guard=off",
        &format!("{busybox} true"),
        &format!("without the guard, nothing that {busybox} did was recorded"),
    );
}

#[test]
pub(super) fn an_unreadable_program_is_reported() {
    let place = Place::new();
    if !need::needs("a static program", &["busybox"]) {
        return;
    }
    place.write("in", "text\n");
    let line = "./busybox cat in";
    place.shell("cp \"$(command -v busybox)\" busybox; chmod 0111 busybox");
    let answer = place.summarized(&format!("$B record -- {line}"));
    assert_eq!(
        (answer.status, answer.out.as_str()),
        (0, "text\n"),
        "{answer:?}"
    );
    place.is_reported("is protected from being read, so its files are unknown");
    let because = place.json(&["show", "--json"])["incomplete_because"].clone();
    assert_eq!(because.as_array().unwrap().len(), 1, "once: {because}");
    place.shell("chmod 0555 busybox");
    place.record(line);
    place.is_complete_without_reasons();
}

#[test]
pub(super) fn a_program_that_was_refused_a_listener_is_reported() {
    let place = Place::new();
    let Some(program) = place.fixture("own_listener") else {
        return;
    };
    place.summarized(&format!("$B record -- {program}"));
    place.has_warning("a seccomp listener (EBUSY), because the recording has one");
    place.summarized(&format!("$B record --guard=off -- {program}"));
    place.is_complete_without_reasons();
}

/// The recorder of the inner recording has the outer one's gate, so the outer guard does not see
/// the calls of its programs.
#[test]
pub(super) fn a_recording_into_another_store_leaves_a_gap() {
    let place = Place::new();
    place.write("in", "text\n");
    let program = place.program();
    let inner = |store: &str| format!("'{program}' record {store} -- sort in -o out");
    let line = inner("--store inner 2>/dev/null");
    place.write("inner.sh", &format!("{line}\ncat out > final\n"));
    place.summarized("$B record --wait -- sh inner.sh");
    place.is_reported("another recording ran inside this one; the files of its command are known");
    let because = place.json(&["show", "--json"])["incomplete_because"].clone();
    let store = place.path("inner");
    assert!(because[0].as_str().unwrap().contains(&store), "{because}");
    // The runs of one store are joined by the identity of a file. It is certain if the file did not
    // change just before its use.
    let place = Place::new();
    place.write_aged("in", "text\n");
    place.write(
        "inner.sh",
        &format!("{}\nsleep 0.1\ncat out > final\n", inner("2>/dev/null")),
    );
    place.summarized("$B record --wait --name outer -- sh inner.sh");
    let show = place.json(&["show", "outer", "--json"]);
    assert_eq!(show["incomplete_because"], serde_json::json!([]), "{show}");
    let tree = place.run(&["of", "final", "--tree"]).out;
    assert!(tree.contains("sort in -o out"), "{tree}");
}

/// `strace` stops its tracees at each call and reads their memory: that changes nothing.
#[test]
fn a_run_with_a_tracer_that_only_looks_is_complete() {
    let place = Place::new();
    if !need::needs("a tracer", &["strace"]) {
        return;
    }
    place.write("a", "text\n");
    let answer = place.summarized("$B record -- strace -f -o trace sh -c 'cat a >s1'");
    assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{answer:?}");
    place.is_complete_without_reasons();
    assert!(place.wrote("s1") && place.wrote("trace"));
    place.summarized("$B record --guard=off -- strace -f -o trace sh -c 'cat a >s1'");
    place.is_complete_without_reasons();
}

/// The leak check at the end of a program under the address sanitizer attaches to its threads and
/// reads their registers.
#[test]
fn a_run_with_a_leak_check_is_complete() {
    let place = Place::new();
    let Some(program) = place.fixture("sanitized") else {
        return;
    };
    place.write("a", "text\n");
    for guard in ["on", "strict", "off"] {
        let line = format!("$B record --guard={guard} -- {program}");
        let answer = place.summarized(&line);
        assert_eq!(answer.out, "sanitized ok\n", "{answer:?}");
        place.is_complete_without_reasons();
    }
}

/// `runc` and libseccomp find out what the kernel can do by calls that must fail: they fail as they
/// do alone.
#[test]
fn a_probe_for_seccomp_listeners_is_not_reported_as_a_refusal() {
    let place = Place::new();
    if !need::needs("a probe", &["perl"]) {
        return;
    }
    // Without a filter program; with one of no instructions; with one outside of memory; with one
    // that ends without a verdict.
    for program in [
        "0",
        "pack(\"S x6 Q\", 0, 0)",
        "pack(\"S x6 Q\", 1, 8)",
        "pack(\"S x6 P\", 1, pack(\"S C C L\", 0x20, 0, 0, 0))",
    ] {
        let line = format!(
            "perl -e '$p = {program}; syscall(157, 38, 1, 0, 0, 0); exit(syscall(317, 1, 8, $p) < 0 ? $! : 0)'"
        );
        let alone = place.shell(&line);
        assert_ne!(alone.status, 0, "{program} is refused");
        let recorded = place.summarized(&format!("$B record -- {line}"));
        assert_eq!(
            (recorded.status, recorded.err.as_str()),
            (alone.status, ""),
            "{program}"
        );
        place.is_complete_without_reasons();
    }
}

/// The launcher is stopped when the command ends, and goes on when the run has ended.
#[test]
pub(super) fn the_summary_of_a_command_whose_processes_went_on_does_not_call_the_run_complete() {
    if !need::needs(undecoded::MEMORY_FILE, &["perl"]) {
        return;
    }
    let place = Place::new();
    place.write(
        "late.sh",
        "sleep 0.5; sleep 9 & p=$!; perl -e 'open(F, \"+<\", \"/proc/$ARGV[0]/mem\")' $p; kill -9 $p\n",
    );
    place.write(
        "command.sh",
        "until [ -s launcher ]; do sleep 0.01; done; sh late.sh & kill -STOP $(cat launcher)\n",
    );
    let record = "$B record -- sh command.sh & launcher=$!; echo $launcher >launcher; \
                  until ls $BACKSTORY_STORE/runs/*.log; do sleep 0.01; done; kill -CONT $launcher; wait $launcher";
    place.summarized(record);
    place.is_reported(&format!(
        "{} was used, which cannot be decoded",
        undecoded::MEMORY_FILE
    ));
}
