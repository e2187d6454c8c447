//! Entry points for the fuzzers in `fuzz/`, and for the tests that replay their findings. They
//! reach the code of this crate that reads the server's logs and its packets.
//!
//! A watch never uses this module. Absent: expectations, which the fuzz targets assert.

use backstory_database::catalog::CatalogTable;
use backstory_database::channel::Framing;
use backstory_database::sql_dialect::SqlDialect;
use backstory_database::statement_cache::StatementCache;

use crate::audit_file::TimedLine;
use crate::audit_line::AuditLine;
use crate::audit_sessions::AuditSessions;
use crate::catalog_reader::{ServerCatalog, column_type};
use crate::connection::{PacketFraming, greeted, refused, row};
use crate::event_reader::{BinlogPosition, EventReader};
use crate::row_groups::CommittedGroup;
use crate::statement_text::names_of;

/// The watched database.
const DATABASE: &str = "bank";

/// The columns of the table in `captured_binlog.hex`: one of each type.
const COLUMNS: [(&str, &str); 24] = [
    ("a", "tinyint(3) unsigned"),
    ("b", "smallint(6)"),
    ("c", "mediumint(9)"),
    ("d", "bigint(20) unsigned"),
    ("e", "float"),
    ("f", "double"),
    ("g", "decimal(20,5)"),
    ("h", "date"),
    ("i", "time(3)"),
    ("j", "datetime(6)"),
    ("k", "timestamp"),
    ("l", "year(4)"),
    ("m", "char(5)"),
    ("n", "varchar(300)"),
    ("o", "varbinary(10)"),
    ("p", "text"),
    ("q", "blob"),
    ("r", "enum('x','y')"),
    ("s", "set('p','q','r')"),
    ("t", "bit(10)"),
    ("v", "varchar(20)"),
    ("w", "uuid"),
    ("x", "inet6"),
    ("y", "text /*M!100301 COMPRESSED*/"),
];

/// The catalog of the server whose binlog was captured.
pub(crate) fn captured_catalog() -> ServerCatalog {
    let mut catalog = ServerCatalog::default();
    let columns = COLUMNS.iter().map(|(name, kind)| {
        let charset = if *name == "v" { "latin1" } else { "" };
        column_type((*name).to_owned(), kind, charset)
    });
    let name = |table: &str| ("cap".to_owned(), table.to_owned());
    catalog.columns.insert(name("types"), columns.collect());
    let id = column_type("id".to_owned(), "int(11)", "");
    catalog.columns.insert(name("ary"), vec![id]);
    catalog.catalog.add(name("ary"), CatalogTable::default());
    catalog
}

/// Events of a server of version 10.11.19: `INSERT`, `UPDATE` and `DELETE` of a table with a
/// column of each type, `INSERT` into a table of the engine Aria, and `TRUNCATE`.
#[cfg(test)]
pub(crate) fn captured_events() -> Vec<Vec<u8>> {
    let bytes = |line: &str| {
        let digits = (0..line.len()).step_by(2);
        digits
            .map(|at| u8::from_str_radix(&line[at..at + 2], 16).expect("two digits"))
            .collect()
    };
    include_str!("captured_binlog.hex")
        .lines()
        .map(bytes)
        .collect()
}

/// The result of reading the log of `server_audit`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ReadAuditLog {
    /// The number of lines.
    pub lines: u64,
    /// The number of lines of another form.
    pub unreadable: u64,
    /// The number of statements in transactions.
    pub statements: usize,
}

/// Reads lines of the log.
pub fn audit_log<'l>(lines: impl IntoIterator<Item = &'l [u8]>) -> ReadAuditLog {
    let mut sessions = AuditSessions {
        database: DATABASE.to_owned(),
        autocommit: true,
        parsed: StatementCache::new(SqlDialect::MariaDb { lower_case: false }, names_of),
        ..AuditSessions::default()
    };
    let mut read = ReadAuditLog::default();
    for (time, line) in (1..).zip(lines) {
        let Some(line) = AuditLine::parse(line) else {
            read.unreadable += 1;
            continue;
        };
        read.lines += 1;
        let after = line.second(3600).unwrap_or(time).min(time);
        sessions.take(&TimedLine { line, time, after });
    }
    let units = sessions.units.values();
    read.statements = units.map(|unit| unit.logged.statements.len()).sum();
    for session in sessions.connections() {
        sessions.end_session(session, i64::MAX);
    }
    read
}

/// The result of decoding events of a binlog.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct DecodedEvents {
    /// The number of committed transactions.
    pub commits: usize,
    /// The number of changes that are kept.
    pub changes: u64,
    /// The number of the other ones.
    pub left_out: u64,
    /// The number of changes whose table or statement is not in their transaction.
    pub unknown: usize,
    /// An event that cannot be read ended the stream.
    pub is_refused: bool,
}

/// Decodes events. `checksums`: each ends with one.
pub fn binlog<'e>(events: impl IntoIterator<Item = &'e [u8]>, checksums: bool) -> DecodedEvents {
    let begin = BinlogPosition {
        file: "binlog.1".to_owned(),
        offset: 4,
    };
    let mut reader = EventReader::begin(begin, checksums);
    let mut catalog = captured_catalog();
    let mut decoded = DecodedEvents::default();
    for bytes in events {
        match reader.take(bytes, &mut catalog, &mut |_| ()) {
            Ok(Some(group)) => decoded.add(&group),
            Ok(None) => (),
            Err(_) => {
                decoded.is_refused = true;
                break;
            }
        }
    }
    decoded
}

impl DecodedEvents {
    fn add(&mut self, group: &CommittedGroup) {
        self.commits += 1;
        self.changes += group.changes.len() as u64;
        self.left_out += group.left_out;
        let unknown = group.changes.iter().filter(|change| {
            let statement = change.statement;
            !group.tables.contains_key(&change.table)
                || statement.is_some_and(|at| at >= group.statements.len())
        });
        self.unknown += unknown.count();
    }
}

/// Reads the bytes that the server sends: a greeting, rows of a statement, errors, and a binlog.
/// `None`: they are no packets of the protocol.
pub fn connection(bytes: &[u8]) -> Option<DecodedEvents> {
    let mut framing = PacketFraming::default();
    let mut rest = bytes;
    let mut events = Vec::new();
    loop {
        let (packet, length) = framing.next(rest).ok()?;
        let Some(packet) = packet else { break };
        rest = rest.get(length..)?;
        let _ = (greeted(&packet), row(&packet));
        match packet.split_first() {
            Some((0, event)) => events.push(event.to_vec()),
            Some((0xff, _)) => drop(refused("a statement", &packet)),
            _ => (),
        }
    }
    Some(binlog(events.iter().map(Vec::as_slice), true))
}
