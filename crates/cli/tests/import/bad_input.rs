//! A file in another format is refused with its position, and leaves nothing in the store.

use super::Desk;

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
        &["not a regular file"],
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
