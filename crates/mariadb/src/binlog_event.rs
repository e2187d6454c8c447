//! The events of the server's binlog, as far as row changes need them.
//!
//! In: the bytes of an event. Out: what it says. The crates for the protocol leave MariaDB's own
//! events undecoded: numbers of transactions (GTID), statements (annotations), compressed events.
//! `https://mariadb.com/kb/en/replication-protocol/`

use crate::byte_reader::ByteReader;
use crate::compression::inflated;
use crate::row_value::ColumnKind;

/// Length of the head of an event.
const HEAD: usize = 19;
/// Length of the checksum at its end.
const CHECKSUM: usize = 4;
/// A GTID event that no commit follows: a definition.
const STANDALONE: u8 = 1;
/// The optional part of a table's description with the names of its columns.
const COLUMN_NAMES: u8 = 4;

/// An event, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BinlogEvent {
    /// The stream goes on in another file.
    Rotate {
        file: String,
        position: u64,
    },
    /// A new file: whether its events have checksums.
    Format {
        checksums: bool,
    },
    /// A transaction begins: its number, and whether it is a single definition.
    Begin {
        number: String,
        standalone: bool,
    },
    /// The statement of the rows that follow.
    Annotation(String),
    /// A statement in the log: a definition, or the end of a transaction.
    Query {
        thread: u64,
        database: String,
        text: String,
    },
    /// A table of the rows that follow.
    Table(u64, MappedTable),
    /// Changed rows.
    Rows(EventRows),
    /// A transaction commits: the query id of its first statement.
    Commit(u64),
    /// A transaction is prepared, and another event commits it.
    Prepared(String),
    /// The server lost changes.
    Incident,
    Other,
}

/// A table, as its event describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MappedTable {
    pub(crate) database: String,
    pub(crate) name: String,
    pub(crate) columns: Vec<ColumnKind>,
    /// The names of the columns, if `binlog_row_metadata` is `FULL`.
    pub(crate) names: Vec<String>,
}

/// The kind of changed rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowsKind {
    Insert,
    Update,
    Delete,
}

/// The rows of an event, still packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventRows {
    pub(crate) kind: RowsKind,
    pub(crate) table: u64,
    /// The number of the table's columns.
    pub(crate) width: usize,
    /// The columns in the packed rows, as a bit map.
    pub(crate) present: Vec<u8>,
    /// The columns in the rows after an update.
    pub(crate) present_after: Vec<u8>,
    pub(crate) packed: Vec<u8>,
}

/// The head of an event, and its body without checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventFrame<'a> {
    pub(crate) kind: u8,
    pub(crate) server: u32,
    /// Where the next event begins. 0 for an event that is in no file.
    pub(crate) next: u64,
    body: &'a [u8],
}

/// The frame of an event. `None` if the event is cut or damaged.
pub(crate) fn frame(bytes: &[u8], checksums: bool) -> Option<EventFrame<'_>> {
    let mut reader = ByteReader(bytes);
    reader.number(4)?;
    let kind = reader.byte()?;
    let server = reader.number(4)? as u32;
    let size = reader.number(4)? as usize;
    let next = reader.number(4)?;
    reader.number(2)?;
    (size == bytes.len() && size >= HEAD).then_some(())?;
    let whole = reader.0;
    let summed = whole.len().checked_sub(CHECKSUM).and_then(|end| {
        let (body, sum) = whole.split_at(end);
        let head = bytes.get(..HEAD + end)?;
        let holds = sum == crc32fast::hash(head).to_le_bytes();
        // The checksum of a file's first event is made without the mark that the file is open.
        (holds || checksums && kind == 15).then_some(body)
    });
    // An event that the server makes itself may lack the checksum.
    let body = match (summed, checksums) {
        (Some(body), _) => body,
        (None, true) if ![4, 15, 27].contains(&kind) => return None,
        (None, _) => whole,
    };
    Some(EventFrame {
        kind,
        server,
        next,
        body,
    })
}

/// Decodes an event. `None` if it is cut.
pub(crate) fn decode(frame: EventFrame<'_>) -> Option<BinlogEvent> {
    let reader = ByteReader(frame.body);
    match frame.kind {
        2 => query(reader, false),
        165 => query(reader, true),
        4 => rotate(reader),
        15 => format_of(frame.body),
        16 => {
            let mut reader = reader;
            Some(BinlogEvent::Commit(reader.number(8)?))
        }
        19 => table(reader),
        23 | 30 | 166 | 169 => rows(reader, frame.kind, RowsKind::Insert),
        24 | 31 | 167 | 170 => rows(reader, frame.kind, RowsKind::Update),
        25 | 32 | 168 | 171 => rows(reader, frame.kind, RowsKind::Delete),
        26 => Some(BinlogEvent::Incident),
        38 => prepared(reader),
        160 => Some(BinlogEvent::Annotation(text(frame.body))),
        162 => begin(reader, frame.server),
        _ => Some(BinlogEvent::Other),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn rotate(mut reader: ByteReader<'_>) -> Option<BinlogEvent> {
    let position = reader.number(8)?;
    let file = text(reader.0);
    Some(BinlogEvent::Rotate { file, position })
}

/// The first event of a file. Its last byte says how events are checked. Where the checksum was
/// already removed, that is the last byte here.
fn format_of(body: &[u8]) -> Option<BinlogEvent> {
    let algorithm = body.last()?;
    let checksums = *algorithm == 1;
    Some(BinlogEvent::Format { checksums })
}

fn begin(mut reader: ByteReader<'_>, server: u32) -> Option<BinlogEvent> {
    let sequence = reader.number(8)?;
    let domain = reader.number(4)?;
    let flags = reader.byte()?;
    Some(BinlogEvent::Begin {
        number: format!("{domain}-{server}-{sequence}"),
        standalone: flags & STANDALONE != 0,
    })
}

fn query(mut reader: ByteReader<'_>, compressed: bool) -> Option<BinlogEvent> {
    let thread = reader.number(4)?;
    reader.number(4)?;
    let length = reader.byte()?;
    reader.number(2)?;
    let variables = reader.number(2)? as usize;
    reader.take(variables)?;
    let database = text(reader.take(usize::from(length))?);
    reader.byte()?;
    let text = match compressed {
        true => text(&inflated(reader.0)?),
        false => text(reader.0),
    };
    Some(BinlogEvent::Query {
        thread,
        database,
        text,
    })
}

/// The names of a prepared transaction, as its commit has them: `X'7831',X'',1`.
fn prepared(mut reader: ByteReader<'_>) -> Option<BinlogEvent> {
    reader.byte()?;
    let format = reader.number(4)?;
    let (global, branch) = (reader.number(4)? as usize, reader.number(4)? as usize);
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
    let (global, branch) = (hex(reader.take(global)?), hex(reader.take(branch)?));
    Some(BinlogEvent::Prepared(format!(
        "X'{global}',X'{branch}',{format}"
    )))
}

fn table(mut reader: ByteReader<'_>) -> Option<BinlogEvent> {
    let number = reader.number(6)?;
    reader.number(2)?;
    let mut name = || {
        let length = usize::from(reader.byte()?);
        let name = text(reader.take(length)?);
        reader.byte()?;
        Some(name)
    };
    let (database, name) = (name()?, name()?);
    let width = reader.length()?;
    let kinds = reader.take(width)?;
    let length = reader.length()?;
    let mut metadata = ByteReader(reader.take(length)?);
    let columns: Option<Vec<ColumnKind>> = kinds
        .iter()
        .map(|kind| ColumnKind::read(*kind, &mut metadata))
        .collect();
    reader.take(width.div_ceil(8))?;
    let mut names = Vec::new();
    while let Some(kind) = reader.byte() {
        let length = reader.length()?;
        let mut part = ByteReader(reader.take(length)?);
        while kind == COLUMN_NAMES && !part.0.is_empty() {
            let length = part.length()?;
            names.push(text(part.take(length)?));
        }
    }
    let table = MappedTable {
        database,
        name,
        columns: columns?,
        names,
    };
    Some(BinlogEvent::Table(number, table))
}

fn rows(mut reader: ByteReader<'_>, kind: u8, rows: RowsKind) -> Option<BinlogEvent> {
    let table = reader.number(6)?;
    reader.number(2)?;
    let is_second_version = matches!(kind, 30..=32 | 169..=171);
    if is_second_version {
        let extra = reader.number(2)? as usize;
        reader.take(extra.checked_sub(2)?)?;
    }
    let width = reader.length()?;
    let present = reader.take(width.div_ceil(8))?.to_vec();
    let present_after = match rows {
        RowsKind::Update => reader.take(width.div_ceil(8))?.to_vec(),
        _ => Vec::new(),
    };
    let packed = match kind >= 166 {
        true => inflated(reader.0)?,
        false => reader.0.to_vec(),
    };
    Some(BinlogEvent::Rows(EventRows {
        kind: rows,
        table,
        width,
        present,
        present_after,
        packed,
    }))
}
