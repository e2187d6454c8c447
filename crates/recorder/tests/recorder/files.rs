//! Tests of files, names, descriptors, streams and channels.

use crate::harness::{Record, RecordedProgram, command, folder, program, record};

fn run(name: &str) -> RecordedProgram {
    let dir = folder();
    let binary = program(name);
    record(&mut command(dir.path(), &[binary.to_str().unwrap()])).fine()
}

/// Asserts that all lines of `expected` are found in this order. Others may stand between.
fn in_order(found: &[String], expected: &[&str]) {
    let mut rest = found.iter();
    for line in expected {
        assert!(
            rest.any(|l| l == line),
            "no {line:?} (in its place) in {found:#?}"
        );
    }
}

fn with_path<'a>(run: &'a RecordedProgram, name: &str, path: &str) -> Vec<&'a Record> {
    run.of(name)
        .into_iter()
        .filter(|s| s.strings.iter().any(|p| p == path))
        .collect()
}

/// The programs that make the same calls by libc's functions and by number.
const WAYS: [&str; 2] = ["files", "numbers"];

#[test]
fn every_change_of_a_name_is_logged() {
    WAYS.iter()
        .for_each(|way| logs_every_change_of_a_name(&run(way)));
}

fn logs_every_change_of_a_name(run: &RecordedProgram) {
    let names = [
        "MKDIR", "LINK", "SYMLINK", "READLINK", "RENAME", "UNLINK", "MKNOD",
    ];
    in_order(
        &run.lines(&names),
        &[
            "MKDIR dir",
            "MKDIR dir2",
            "LINK made hard",
            "LINK made hard2",
            "SYMLINK made soft",
            "SYMLINK made soft2",
            "READLINK soft",
            "READLINK soft2",
            "RENAME hard renamed",
            "RENAME hard2 renamed2",
            "RENAME renamed renamed2",
            "UNLINK renamed",
            "UNLINK renamed2",
            "UNLINK soft2",
            "UNLINK dir",
            "UNLINK dir2",
            "UNLINK dir2",
            "MKNOD fifo",
            "MKNOD node",
        ],
    );
    assert!(
        run.of("UNLINK")
            .iter()
            .filter(|s| s.head.result == 0)
            .all(|s| s.ident.is_some()),
        "what was removed is known"
    );
    assert_eq!(
        with_path(run, "RENAME", "renamed")[1].head.aux,
        2,
        "RENAME_EXCHANGE"
    );
}

#[test]
fn opens_are_logged_with_their_outcome() {
    WAYS.iter()
        .for_each(|way| logs_opens_with_their_outcome(&run(way)));
}

fn logs_opens_with_their_outcome(run: &RecordedProgram) {
    let made = with_path(run, "OPEN", "made");
    assert_eq!(made[0].head.result, 3);
    assert!(made[0].ident.is_none(), "it was new");
    assert!(
        made[1].ident.is_some_and(|i| i.size == 8),
        "what is overwritten is known: {made:?}"
    );
    assert_eq!(with_path(run, "OPEN", "absent")[0].head.result, -2);
    assert_eq!(with_path(run, "OPEN", "created").len(), 1);
    let temporary: Vec<_> = run
        .of("OPEN")
        .into_iter()
        .filter(|s| s.strings[0].starts_with("temp"))
        .collect();
    assert_eq!(temporary.len(), 2);
    assert!(
        temporary
            .iter()
            .all(|s| s.strings[0].len() >= 10 && !s.strings[0].contains("XXXXXX"))
    );
}

#[test]
fn a_written_file_is_identified_when_it_is_closed() {
    WAYS.iter()
        .for_each(|way| identifies_what_was_written(&run(way)));
}

fn identifies_what_was_written(run: &RecordedProgram) {
    let closed: Vec<_> = run
        .of("CLOSE")
        .into_iter()
        .filter_map(|s| s.ident)
        .collect();
    let sizes: Vec<_> = closed.iter().map(|i| i.size).collect();
    assert_eq!(sizes, [8, 0, 8192, 0, 0]);
    assert!(
        closed
            .iter()
            .all(|i| i.ino != 0 && i.mtime > 0 && i.ctime > 0 && i.mode & 0o170_000 == 0o100_000)
    );
}

#[test]
fn only_the_first_read_and_write_of_a_descriptor_are_logged() {
    WAYS.iter()
        .for_each(|way| logs_the_first_read_and_write_only(&run(way)));
}

fn logs_the_first_read_and_write_only(run: &RecordedProgram) {
    assert_eq!(run.of("READ").len(), 1);
    assert_eq!(run.of("WRITE").len(), 2, "one for each open file");
    assert_eq!(run.of("COPY").len(), 1, "the same pair twice");
    assert_eq!(
        run.of("MAP").iter().filter(|s| s.head.aux & 1 != 0).count(),
        1
    );
    assert_eq!(run.lines(&["TRUNCATE"]), ["TRUNCATE ", "TRUNCATE made"]);
    assert_eq!(run.of("LIST").len(), 1);
}

#[test]
fn changes_of_attributes_are_logged() {
    WAYS.iter()
        .for_each(|way| logs_changes_of_attributes(&run(way)));
}

fn logs_changes_of_attributes(run: &RecordedProgram) {
    let of_kind = |kind| run.of("META").iter().filter(|s| s.head.arg == kind).count();
    assert_eq!(
        (of_kind(1), of_kind(2), of_kind(3), of_kind(4)),
        (3, 3, 6, 1)
    );
}

#[test]
fn lookups_are_logged_also_those_that_find_nothing() {
    let run = run("files");
    in_order(
        &run.lines(&["STAT", "ACCESS"]),
        &[
            "STAT made",
            "STAT soft",
            "STAT made",
            "ACCESS made",
            "ACCESS absent",
        ],
    );
    assert_eq!(with_path(&run, "ACCESS", "absent")[0].head.result, -2);
}

#[test]
fn a_change_of_directory_says_where_it_led() {
    let run = run("files");
    let changes = run.of("CHDIR");
    assert_eq!(changes[0].strings, ["/", "/"]);
    assert_eq!(changes[1].strings[0], "");
    assert!(changes[1].strings[1].starts_with('/') && changes[1].head.fd >= 0);
}

#[test]
fn copies_of_descriptors_are_logged() {
    let run = run("descriptors");
    let dups: Vec<_> = run
        .of("DUP")
        .iter()
        .map(|s| (s.head.fd, s.head.result, s.head.arg != 0, s.head.aux))
        .collect();
    assert_eq!(
        dups,
        [
            (3, 4, false, 0),
            (3, 10, false, 1),
            (3, 11, true, 1),
            (3, 20, false, 0),
            (3, 21, true, 0),
            (0, 10, false, 1)
        ]
    );
    assert_eq!(run.of("CLOEXEC").len(), 1);
    let ranges: Vec<_> = run
        .of("CLOSE_RANGE")
        .iter()
        .map(|s| (s.head.fd, s.head.aux))
        .collect();
    assert_eq!(ranges, [(4, 15), (16, u32::MAX)]);
    assert_eq!(run.of("WRITE").len(), 1);
    let identified = run
        .of("CLOSE")
        .iter()
        .filter(|s| s.ident.is_some_and(|i| i.size == 2))
        .count();
    assert_eq!(
        identified,
        6,
        "each copy, also one that dup2 closed: {:#?}",
        run.of("CLOSE")
    );
}

#[test]
fn a_files_identity_before_a_status_change_is_logged() {
    let run = run("files");
    for name in ["META", "LINK"] {
        let all = run.of(name);
        let unknown: Vec<_> = all
            .iter()
            .filter(|s| s.head.result == 0 && s.ident.is_none() && !s.strings[0].is_empty())
            .collect();
        assert!(!all.is_empty() && unknown.is_empty(), "{unknown:#?}");
    }
}

/// The records that `inherits HOW` logs of its standard descriptors.
fn used_of_inherited(how: &str) -> Vec<(&'static str, i32)> {
    let dir = folder();
    let binary = program("inherits");
    let input = std::fs::File::open(dir.path().join("input")).unwrap();
    let run = record(command(dir.path(), &[binary.to_str().unwrap(), how]).stdin(input)).fine();
    run.records()
        .filter(|s| ["READ", "WRITE"].contains(&s.name))
        .map(|s| (s.name, s.head.fd))
        .collect()
}

#[test]
fn streams_of_inherited_descriptors_are_seen_of_programs_that_call_nothing_else() {
    let both = vec![("READ", 0), ("WRITE", 1)];
    for how in ["rw", "rwf", "rwx", "rwb", "rwfb"] {
        assert_eq!(used_of_inherited(how), both, "{how}");
    }
    assert_eq!(used_of_inherited("r"), [("READ", 0)]);
    assert_eq!(used_of_inherited("f"), [("WRITE", 1)]);
    assert_eq!(used_of_inherited("u"), [("WRITE", 2)]);
    assert_eq!(used_of_inherited("rwfq"), both, "by _exit");
    assert_eq!(
        used_of_inherited("rwq"),
        [("READ", 0)],
        "what _exit left in the buffer was not written"
    );
}

#[test]
fn a_program_that_uses_no_stream_logs_nothing() {
    for how in ["", "b"] {
        let dir = folder();
        let binary = program("inherits");
        let run = record(&mut command(dir.path(), &[binary.to_str().unwrap(), how])).fine();
        assert_eq!(run.threads.len(), 0, "{how}");
    }
}

#[test]
fn reads_and_writes_of_stdio_streams_are_logged() {
    let run = run("streams");
    let opens = run.of("OPEN");
    let input = opens
        .iter()
        .find(|s| s.strings[0] == "input")
        .unwrap()
        .head
        .result;
    let out = opens
        .iter()
        .find(|s| s.strings[0] == "out")
        .unwrap()
        .head
        .result;
    assert!(run.of("READ").iter().any(|s| s.head.fd == input));
    assert!(run.of("WRITE").iter().any(|s| s.head.fd == out));
    assert!(
        run.of("WRITE").iter().any(|s| s.head.fd == 1),
        "flushed after main has returned"
    );
    let sizes: Vec<_> = run
        .of("CLOSE")
        .iter()
        .filter_map(|s| s.ident)
        .map(|i| i.size)
        .collect();
    assert_eq!(sizes, [19, 28, 28], "identified after the last flush");
    assert_eq!(opens.iter().filter(|s| s.head.result == -2).count(), 1);
    assert_eq!(opens.iter().filter(|s| s.head.result == -17).count(), 1);
}

#[test]
fn channels_are_logged_with_both_ends() {
    let run = run("channels");
    let pipes: Vec<_> = run
        .of("PIPE")
        .iter()
        .map(|s| (s.head.fd, s.head.arg))
        .collect();
    // The numbers depend on the descriptors that the test was started with.
    let [_, (sent, _)] = pipes[..] else {
        panic!("{pipes:?}");
    };
    let ends: Vec<_> = run
        .of("SOCKETPAIR")
        .iter()
        .map(|s| (s.head.fd, s.head.arg))
        .collect();
    let [(one, other)] = ends[..] else {
        panic!("{ends:?}");
    };
    let passed: Vec<_> = run
        .of("PASS")
        .iter()
        .map(|s| (s.head.fd, s.head.arg, s.head.aux))
        .collect();
    let [first, (receiver, received, 1)] = passed[..] else {
        panic!("{passed:?}");
    };
    assert_eq!((first, receiver), ((one, sent, 0), other));
    assert!(received > other, "{passed:?}");
    for name in [
        "SOCKET", "BIND", "LISTEN", "CONNECT", "ACCEPT", "MEMFD", "EVENTFD",
    ] {
        assert!(!run.of(name).is_empty(), "{name}");
    }
    assert_eq!(run.lines(&["MEMFD"]), ["MEMFD memory"]);
    assert!(run.of("CONNECT")[0].head.aux > 2, "the address follows");
}

#[test]
fn libcs_opens_for_locales_are_logged() {
    if !std::path::Path::new("/usr/lib/locale/C.utf8/LC_CTYPE").exists() {
        return;
    }
    let dir = folder();
    let run = record(&mut command(dir.path(), &["ls"])).fine();
    let found = run
        .of("OPEN")
        .iter()
        .filter(|s| s.strings[0].contains("/LC_") && s.head.result >= 0)
        .count();
    assert!(found > 5, "{:#?}", run.of("OPEN"));
}

#[test]
fn a_listing_made_inside_libc_is_recorded() {
    let binary = program("listings");
    for how in [
        "glob",
        "wordexp",
        "scandir",
        "ftw",
        "nftw",
        "nftw-chdir",
        "fts",
    ] {
        let dir = folder();
        let run = record(&mut command(dir.path(), &[binary.to_str().unwrap(), how])).fine();
        assert_eq!(run.of("LIST").len(), 2, "{how}");
    }
}
