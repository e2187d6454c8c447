//! Tests of threads, signals, cancellation, sandboxes, and of the records left when memory runs
//! out.

use crate::harness::{Arena, command, folder, program, program_with, record, record_in};
use backstory_abi as abi;
use std::collections::HashMap;

#[test]
fn nothing_is_lost_when_handlers_interrupt_threads_and_children_are_made() {
    let dir = folder();
    let binary = program("storm");
    let run = record(&mut command(dir.path(), &[binary.to_str().unwrap()])).fine();
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for record in run.of("STAT") {
        *seen.entry(record.strings[0].as_str()).or_default() += 1;
    }
    for thread in 0..4 {
        for round in 0..2000 {
            assert_eq!(
                seen.get(format!("/t{thread}-{round}").as_str()),
                Some(&1),
                "t{thread}-{round}"
            );
        }
    }
    assert_eq!(
        run.of("THREAD")
            .iter()
            .filter(|s| s.head.aux == abi::THREAD_START)
            .count(),
        4
    );
    assert_eq!(
        run.of("THREAD")
            .iter()
            .filter(|s| s.head.aux == abi::THREAD_JOIN)
            .count(),
        4
    );
    assert_eq!(run.of("FORK").len(), 10);
    assert_eq!(run.of("VFORKED").len(), 10);
    let in_children = run
        .of("OPEN")
        .iter()
        .filter(|s| s.strings[0] == "/in-child")
        .count();
    assert_eq!(in_children, 5);
}

#[test]
fn ended_threads_give_back_their_chunks() {
    let dir = folder();
    let binary = program("many_threads");
    let arena = Arena {
        chunks: 400,
        flags: 0,
    };
    let run = record_in(
        &mut command(dir.path(), &[binary.to_str().unwrap(), "300"]),
        &arena,
    );
    assert!(
        run.output.status.success(),
        "mappings pile up: {:?}",
        run.output.status
    );
    assert_eq!(run.of("ACCESS").len(), 300);
}

#[test]
fn a_thread_that_waits_in_an_open_can_be_cancelled() {
    let dir = folder();
    let binary = program("cancelled");
    let run = record(&mut command(
        dir.path(),
        &["timeout", "120", binary.to_str().unwrap()],
    ))
    .fine();
    assert_eq!(run.output.stdout, b"cancelled\n");
    let waiting: Vec<_> = run
        .of("OPEN")
        .into_iter()
        .filter(|s| s.strings[0] == "fifo")
        .collect();
    assert!(waiting.is_empty(), "it has read nothing: {waiting:?}");
}

#[test]
fn a_sandboxed_program_lives_and_all_that_it_does_is_logged() {
    let dir = folder();
    let binary = program("sandboxed");
    let run = record(&mut command(dir.path(), &[binary.to_str().unwrap()]));
    assert_eq!(run.output.stdout, b"sandboxed\n", "{:?}", run.output);
    let logged = run.of("STAT").len();
    assert_eq!((logged, run.lost), (3000, 0));
}

#[test]
fn a_program_in_strict_mode_lives() {
    let dir = folder();
    let binary = program("sandboxed");
    let run = record(&mut command(
        dir.path(),
        &[binary.to_str().unwrap(), "strict"],
    ));
    assert_eq!(run.output.stdout, b"strict\n", "{:?}", run.output);
    let records: Vec<_> = run.records().collect();
    assert!(
        records.windows(2).all(|w| w[0].head.time <= w[1].head.time),
        "time goes on as a sequence"
    );
}

#[test]
fn a_program_that_finds_no_chunk_runs_on_and_what_it_did_is_counted() {
    let dir = folder();
    let arena = Arena {
        chunks: 1,
        flags: 0,
    };
    let run = record_in(
        &mut command(dir.path(), &["sh", "-c", "cat input > copy; cat copy"]),
        &arena,
    );
    assert_eq!(run.output.stdout, b"some bytes to read\n");
    assert!(run.lost > 0);
}

#[test]
fn nothing_is_logged_after_the_runs_end() {
    let dir = folder();
    let arena = Arena {
        chunks: 4,
        flags: abi::ARENA_CLOSED,
    };
    let run = record_in(&mut command(dir.path(), &["cat", "input"]), &arena).fine();
    assert_eq!(run.records().count(), 0);
}

#[test]
fn in_strict_runs_the_recorder_logs_only_unwatched_calls() {
    let dir = folder();
    let arena = Arena {
        chunks: 8,
        flags: abi::ARENA_STRICT,
    };
    let run = record_in(
        &mut command(dir.path(), &["cat", "input", "absent"]),
        &arena,
    );
    assert_eq!(run.lost, 0);
    assert!(run.of("OPEN").is_empty());
    assert!(!run.of("CLOSE").is_empty());
}

#[test]
fn without_suppression_every_read_and_write_is_logged() {
    let dir = folder();
    let arena = Arena {
        chunks: 8,
        flags: abi::ARENA_ALL_OPS,
    };
    let run = record_in(
        &mut command(
            dir.path(),
            &["dd", "if=input", "of=copy", "bs=1", "status=none"],
        ),
        &arena,
    )
    .fine();
    assert_eq!(run.of("WRITE").len(), 19);
    assert!(run.of("READ").len() >= 20);
}

#[test]
fn sanitized_programs_are_recorded() {
    for sanitizer in [
        "-fsanitize=address",
        "-fsanitize=thread",
        "-fsanitize=undefined",
    ] {
        let Some(binary) = program_with("many_threads", "gcc", &[sanitizer]) else {
            continue;
        };
        let dir = folder();
        let mut command = command(dir.path(), &[binary.to_str().unwrap(), "4"]);
        let run = record(command.env("ASAN_OPTIONS", "detect_leaks=0"));
        let stderr = String::from_utf8_lossy(&run.output.stderr);
        assert!(run.output.stderr.is_empty(), "{sanitizer}: {stderr}");
        assert_eq!(run.of("ACCESS").len(), 4, "{sanitizer}");
    }
}

#[test]
fn programs_of_another_libc_are_recorded() {
    let Some(files) = program_with("files", "musl-gcc", &[]) else {
        return;
    };
    let Some(children) = program_with("children", "musl-gcc", &[]) else {
        return;
    };
    let dir = folder();
    let run = record(&mut command(dir.path(), &[files.to_str().unwrap()])).fine();
    assert_eq!(run.of("RENAME").len(), 3);
    for how in ["fork", "vfork", "exec"] {
        let run = record(&mut command(dir.path(), &[children.to_str().unwrap(), how]));
        assert_eq!(run.output.status.code(), Some(3), "{how}: {:?}", run.output);
        assert!(run.of("WAIT").len() + run.of("EXEC").len() > 0, "{how}");
    }
}

#[test]
fn a_library_that_is_not_at_home_still_records_and_has_its_gate_there_if_it_can() {
    // Another library occupies the recorder's address. The gate's page is free in the first case
    // only.
    for (address, free) in [("0x550000012000", true), ("0x550000010000", false)] {
        let place = format!("-Wl,-Ttext-segment={address}");
        let Some(occupier) = program_with("occupier", "cc", &["-shared", "-fPIC", &place]) else {
            continue;
        };
        let dir = folder();
        let mut command = command(dir.path(), &[program("places").to_str().unwrap()]);
        let run = record(command.env("LD_PRELOAD", occupier)).fine();
        let output = String::from_utf8_lossy(&run.output.stdout).into_owned();
        let (gate, library) = output.split_once('\n').unwrap();
        assert!(!library.starts_with("550000010000"), "{output}");
        assert_eq!(gate.contains("r-xp 00000000 00:00"), free, "{output}");
        assert_eq!(run.of("STAT").len(), 1);
    }
}

#[test]
fn a_sandboxed_programs_child_program_is_left_alone() {
    let Some(binary) = program_with("sandboxed", "cc", &[]) else {
        return;
    };
    let dir = folder();
    let run = record(&mut command(
        dir.path(),
        &[binary.to_str().unwrap(), "exec"],
    ));
    assert_eq!(run.output.stdout, b"executed\n", "{:?}", run.output);
    assert_eq!(run.of("EXEC").len(), 1);
    assert_eq!(run.threads.len(), 1, "the new program lives without us");
}

#[test]
fn a_thousand_threads_and_high_descriptors_are_recorded() {
    let dir = folder();
    let binary = program("crowd");
    let arena = Arena {
        chunks: 1100,
        flags: 0,
    };
    let run = record_in(
        &mut command(dir.path(), &[binary.to_str().unwrap(), "1000"]),
        &arena,
    )
    .fine();
    assert_eq!(run.output.stdout, b"done\n");
    assert_eq!(run.of("STAT").len(), 1000);
}

#[test]
fn a_fork_child_of_a_program_with_threads_finds_no_lock_taken() {
    let dir = folder();
    let binary = program("forks_among_threads");
    let arena = Arena {
        chunks: 1000,
        flags: 0,
    };
    let run = record_in(
        &mut command(dir.path(), &[binary.to_str().unwrap()]),
        &arena,
    )
    .fine();
    assert_eq!(run.of("FORK").len(), 30);
    assert_eq!(run.of("ACCESS").len(), 30);
    assert_eq!(
        run.of("EXEC")
            .iter()
            .filter(|s| s.strings[0] == "/usr/bin/true")
            .count(),
        30
    );
}
