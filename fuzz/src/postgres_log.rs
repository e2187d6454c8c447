//! The log of a server of PostgreSQL, as a killed server, a full disk or an attacker left it. The
//! first byte selects the format. The rest is the log. The server then writes two more records.

use backstory_postgres::fuzz_entry;

/// A line in the format `csvlog`, without a statement.
const CSV: &[u8] = b"2026-11-22 12:00:01.250 UTC,\"ann\",\"bank\",7,\"[local]\",s.7,3,\"idle\",\
2026-11-22 12:00:00 UTC,3/0,0,LOG,00000,\"a message\",,,,,,,,,\"psql\",\"client backend\",,0\n";

/// The same in the format `jsonlog`.
const JSON: &[u8] = b"{\"timestamp\":\"2026-11-22 12:00:01.250 UTC\",\"user\":\"ann\",\
\"dbname\":\"bank\",\"pid\":7,\"session_id\":\"s.7\",\"line_num\":3,\"message\":\"a message\"}\n";

/// Reads the log at once and line by line.
pub fn run(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else {
        return;
    };
    let (is_csv, record) = match choice % 2 {
        0 => (true, CSV),
        _ => (false, JSON),
    };
    let whole = [text, b"\n", record, record].concat();
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let read = fuzz_entry::log(&[&whole], is_csv);
    let by_line = fuzz_entry::log(&lines, is_csv);
    assert_eq!(read, by_line, "it depends on the portions of the log");
    assert_eq!(read.contradictions, 0, "a line is of two sessions");
    let last = read.records.last().map(|last| last.trim_ascii_end());
    assert_eq!(last, Some(record.trim_ascii_end()), "a damage has no end");
    let bytes: usize = read.records.iter().map(Vec::len).sum();
    assert!(bytes <= whole.len(), "a line is read twice");
}
