//! A file in another format is refused with its position, and leaves nothing in the store.

use super::Desk;
use super::documents::document;
use std::path::Path;

#[track_caller]
fn refused(desk: &Desk, args: &[&str], status: i32, words: &[&str]) {
    let output = desk.backstory(args);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(status), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    for word in words {
        assert!(error.contains(word), "no {word:?} in {error}");
    }
    assert_eq!(desk.runs(), Vec::<String>::new());
}

#[test]
fn a_file_in_another_format_is_refused_with_line_column_and_what_was_expected() {
    let desk = Desk::new();
    let where_ = ["line 1, column 1", "no log of strace", "openat(AT_FDCWD"];
    desk.write("empty", b"");
    desk.write(
        "binary",
        &(0..=255).cycle().take(100_000).collect::<Vec<u8>>(),
    );
    desk.write("one-line", &vec![b'x'; 40 << 20]);
    desk.write("text", b"hello\nmain(1);\nfoo(bar, \"baz\");\n");
    for name in ["empty", "binary", "one-line", "text"] {
        refused(&desk, &["import", "strace", name], 1, &where_);
    }
    desk.write("later", b"12 10:00:00 hello\n");
    refused(
        &desk,
        &["import", "strace", "later"],
        1,
        &["line 1, column 13"],
    );
    refused(&desk, &["import", "strace", "no"], 1, &["cannot read no"]);
    refused(
        &desk,
        &["import", "strace", "."],
        1,
        &[". is a directory", "name the files of the log"],
    );
    let both = ["import", "strace", "text", "empty"];
    refused(&desk, &both, 1, &["text", "`strace -ff`"]);
}

#[test]
fn an_unknown_format_and_a_missing_file_are_misuse() {
    let desk = Desk::new();
    refused(
        &desk,
        &["import", "dtrace", "x"],
        2,
        &["\"dtrace\"", "strace"],
    );
    refused(&desk, &["import", "strace"], 2, &["the file is missing"]);
}

#[test]
fn without_a_format_the_formats_are_listed() {
    let desk = Desk::new();
    let output = desk.backstory(&["import"]);
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout.starts_with(b"strace "), "{output:?}");
    assert_eq!(
        desk.json(&["import", "--json"])["formats"][0]["format"],
        "strace"
    );
}

/// A log of each format, as `documents/make` and the other scripts made it.
const LOGS: [(&str, &str); 11] = [
    ("auditd", "audit/line.log"),
    ("bpftrace", "bpftrace/line.log"),
    ("nextflow", "nextflow/run/trace.txt"),
    ("openlineage", "events.jsonl"),
    ("perf", "perf/line.log"),
    ("probe", "probe/line.log"),
    ("prov-json", "cwlprov.json"),
    ("reprozip", "trace.rpz"),
    ("ro-crate", "crate.json"),
    ("snakemake", "snakemake/bG91ZC50eHQ="),
    ("spade", "spade.dsl"),
];
const STRACE: &[u8] = b"7 execve(\"/bin/true\", [\"true\"], 0x7f /* 3 vars */) = 0\n";

/// Each of the logs, given to each of the other formats.
#[test]
fn a_log_of_another_format_is_refused_with_the_command_that_imports_it() {
    let desk = Desk::new();
    let formats = LOGS.iter().map(|(format, _)| *format).chain(["strace"]);
    for own in formats.clone() {
        let path = match LOGS.iter().find(|(format, _)| *format == own) {
            Some((_, name)) => document(&desk, name),
            None => desk.write("trace.log", STRACE),
        };
        let path = path.to_str().unwrap();
        let wanted = format!("backstory import {own} {path}");
        for other in formats.clone().filter(|other| *other != own) {
            refused(&desk, &["import", other, path], 1, &[path, &wanted]);
        }
    }
}

#[test]
fn compressed_and_wide_texts_are_refused_with_the_command_that_converts_them() {
    let desk = Desk::new();
    let refused = |bytes: &[u8], words: &[&str]| {
        desk.write("log", bytes);
        refused(&desk, &["import", "strace", "log"], 1, words);
    };
    desk.write("plain", STRACE);
    let gzip = desk.shell("gzip -c plain").stdout;
    let advice = "gzip -dc log > LOG && backstory import strace LOG";
    refused(&gzip, &["gzip compressed the file", advice]);
    for (magic, tool) in [
        (&b"\xfd7zXZ\0\0\x04"[..], "xz -dc"),
        (b"\x28\xb5\x2f\xfd\x24", "zstd -dc"),
        (b"BZh91AY", "bzip2 -dc"),
        (b"PK\x03\x04", "unzip -p"),
    ] {
        refused(magic, &[&format!("{tool} log > LOG")]);
    }
    let wide = |unit: fn(u16) -> [u8; 2]| -> Vec<u8> {
        let text = std::str::from_utf8(STRACE).unwrap();
        text.encode_utf16().flat_map(unit).collect()
    };
    let little = wide(u16::to_le_bytes);
    refused(&little, &["iconv -f UTF-16LE"]);
    refused(&wide(u16::to_be_bytes), &["iconv -f UTF-16BE"]);
    refused(&[b"\xff\xfe", &little[..]].concat(), &["iconv -f UTF-16 "]);
    refused(b"", &["the file is empty"]);
    let perf = b"     0.011 ( 0.004 ms): cat/77 openat(dfd: CWD, filename: 0x7f) = 3\n";
    refused(
        perf,
        &["a log of `perf trace`", "backstory import perf log"],
    );
    let interpreted = b"type=SYSCALL msg=audit(11/23/2026 03:01:43.123:7) : arch=x86_64\n";
    refused(interpreted, &["ausearch --raw"]);
}

#[test]
fn json_that_begins_with_a_byte_order_mark_says_how_to_remove_it() {
    let desk = Desk::new();
    desk.write("log", b"\xef\xbb\xbf{\"entity\": {}}");
    refused(
        &desk,
        &["import", "prov-json", "log"],
        1,
        &["line 1, column 1", "byte order mark", "tail -c +4 log"],
    );
}

#[test]
fn an_archive_that_is_no_pack_of_reprozip_is_named_by_its_first_file() {
    let desk = Desk::new();
    let args = ["import", "reprozip", "pack"];
    let archive = |name: &str| {
        let line = format!("mkdir -p $(dirname {name}) && touch {name} && tar czf pack {name}");
        assert!(desk.shell(&line).status.success());
    };
    archive("src/main.c");
    let words = ["pack is no pack of ReproZip", "\"src/main.c\""];
    refused(&desk, &args, 1, &words);
    archive("METADATA/trace.sqlite3");
    let words = ["before 1.0 is compressed", "gzip -dc pack > LOG"];
    refused(&desk, &args, 1, &words);
}

#[test]
fn a_directory_of_a_tool_is_refused_with_the_files_in_it() {
    let desk = Desk::new();
    for (format, files, shown) in [
        (
            "reprozip",
            ".reprozip-trace/trace.sqlite3",
            "work/.reprozip-trace/trace.sqlite3",
        ),
        (
            "ro-crate",
            "ro-crate-metadata.json",
            "work/ro-crate-metadata.json",
        ),
        (
            "snakemake",
            ".snakemake/metadata/x",
            "work/.snakemake/metadata/*",
        ),
    ] {
        let path = Path::new("work").join(files);
        let parents: Vec<_> = path.ancestors().skip(1).collect();
        for parent in parents
            .iter()
            .rev()
            .filter(|one| one.components().count() > 1)
        {
            desk.stage.directory(parent.to_str().unwrap()).unwrap();
        }
        desk.write(files, b"");
        let wanted = format!("backstory import {format} ../{shown}");
        let words = ["is a directory", &wanted];
        refused(&desk, &["import", format, "../work"], 1, &words);
    }
}

#[test]
fn a_pipe_is_refused_with_the_option_for_pipes() {
    let desk = Desk::new();
    let made = desk.shell("mkfifo fifo");
    assert!(made.status.success(), "{made:?}");
    for name in ["fifo", "-"] {
        let words = [name, "is a pipe", "--pipe PIPE"];
        refused(&desk, &["import", "strace", name], 1, &words);
    }
}

/// The position is that of the event, which may have several lines.
#[test]
fn a_refused_event_is_named_by_its_own_line() {
    let desk = Desk::new();
    let event = "{\n  \"run\": {\"runId\": \"x\"},\n  \"job\": {}\n}\n";
    desk.write("events", format!("{event}\n  3\n").as_bytes());
    let words = ["line 6, column 3", "an event is an object"];
    refused(&desk, &["import", "openlineage", "events"], 1, &words);
}
