//! Entry points for the fuzzers in `fuzz/`, and for the tests that replay their findings. They
//! reach the code of this crate that reads the server's log and its messages.
//!
//! A watch never uses this module. Absent: expectations, which the fuzz targets assert.

use std::time::Instant;

use backstory_database::channel::Framing;
use backstory_database::row_change::{ColumnValue, RowChange};

use crate::connection::{TaggedFraming, refused, row};
use crate::csv_records::CsvRecords;
use crate::line_counter::LineCounter;
use crate::log_line::{LineHead, LogFormat, LogLine};
use crate::row_decoder::RowDecoder;
use crate::sessions::SessionTable;

/// The watched database.
const DATABASE: &str = "bank";

/// The result of reading a log.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ReadLog {
    /// Its records.
    pub records: Vec<Vec<u8>>,
    /// The number of records that are no lines of the log.
    pub unreadable: u64,
    /// The number of lines of which the two readers of a line find different sessions.
    pub contradictions: u64,
    /// The number of statements in transactions of the watched database.
    pub statements: usize,
}

/// Reads a log in the format `csvlog` or `jsonlog`, in portions of whole lines.
pub fn log(portions: &[&[u8]], is_csv: bool) -> ReadLog {
    let format = match is_csv {
        true => LogFormat::Csv,
        false => LogFormat::Json,
    };
    let mut splitter = CsvRecords::default();
    let mut counter = LineCounter::of(format);
    let mut table = SessionTable {
        database: DATABASE.to_owned(),
        ..SessionTable::default()
    };
    let mut read = ReadLog::default();
    for portion in portions {
        let lines = portion.split(|byte| *byte == b'\n');
        let records = match format {
            LogFormat::Csv => splitter.take(portion),
            LogFormat::Json => lines
                .filter(|line| !line.is_empty())
                .map(<[u8]>::to_vec)
                .collect(),
        };
        for record in records {
            if let Some(line) = counter.line(&record) {
                read.contradictions += u64::from(!has_same_head(&record, format, &line));
                match line.time(0) {
                    Some(time) => table.take(&line, time, Instant::now()),
                    None => counter.unreadable += 1,
                }
            }
            read.records.push(record);
        }
    }
    read.unreadable = counter.unreadable;
    let transactions = table.transactions.values();
    read.statements = transactions.map(|one| one.statements.len()).sum();
    read
}

fn has_same_head(record: &[u8], format: LogFormat, line: &LogLine) -> bool {
    let head = LineHead::parse(record, format);
    head.is_some_and(|head| head.session == line.session_id && head.database == line.dbname)
}

/// The result of decoding messages.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct DecodedMessages {
    /// The number of committed transactions.
    pub commits: usize,
    /// The number of changes that are kept.
    pub changes: u64,
    /// The number of the other ones.
    pub left_out: u64,
    /// The bytes of all values that are kept.
    pub bytes: usize,
    /// A message that cannot be read ended the stream.
    pub is_refused: bool,
}

/// Decodes messages of the output plug-in `pgoutput`.
pub fn row_changes<'m>(messages: impl IntoIterator<Item = &'m [u8]>) -> DecodedMessages {
    let mut decoder = RowDecoder::default();
    let mut decoded = DecodedMessages::default();
    for message in messages {
        let commit = match decoder.message(message) {
            Ok(Some(commit)) => commit,
            Ok(None) => continue,
            Err(_) => {
                decoded.is_refused = true;
                break;
            }
        };
        decoded.commits += 1;
        decoded.changes += commit.changes.len() as u64;
        decoded.left_out += commit.left_out;
        decoded.bytes += commit.changes.iter().map(bytes_of).sum::<usize>();
    }
    decoded
}

fn bytes_of(change: &RowChange) -> usize {
    let images = [&change.before, &change.after].into_iter().flatten();
    let values = images.flatten().map(|(_, value)| match value {
        ColumnValue::Text(text) => text.len(),
        ColumnValue::Null | ColumnValue::Unchanged => 0,
    });
    values.sum()
}

/// Reads the bytes that the server sends: rows of a statement, errors, and the stream of changes.
/// `None`: they are no messages of the protocol.
pub fn connection(bytes: &[u8]) -> Option<DecodedMessages> {
    let mut rest = bytes;
    let mut stream = Vec::new();
    while let (Some((tag, body)), length) = TaggedFraming.next(rest).ok()? {
        rest = rest.get(length..)?;
        match tag {
            b'D' => drop(row(&body)?),
            b'E' => drop(refused("a statement", &body)),
            // Three numbers stand before a part of the stream.
            b'd' if body.first() == Some(&b'w') => {
                stream.push(body.get(25..).unwrap_or_default().to_vec());
            }
            _ => (),
        }
    }
    Some(row_changes(stream.iter().map(Vec::as_slice)))
}
