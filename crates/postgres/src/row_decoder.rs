//! Decodes the messages of the output plug-in `pgoutput`, version 1 of its protocol.
//!
//! In: messages, in the order of the stream. Out: committed transactions with their row changes.
//! `https://www.postgresql.org/docs/15/protocol-logicalrep-message-formats.html`

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use backstory_database::change_budget::ChangeBudget;
use backstory_database::row_change::{ColumnValue, RowChange, RowImage, RowOperation, StreamTable};

/// Microseconds from 1970 to 2000, PostgreSQL's epoch.
const EPOCH: i64 = 946_684_800_000_000;
/// The numbers of the types `text` and `varchar` in the server's catalog, which are fixed.
const TEXTS: [u32; 2] = [25, 1043];

/// A committed transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommittedTransaction {
    pub(crate) id: u32,
    /// ns since 1970, by the server's clock.
    pub(crate) time: i64,
    /// The position of its commit in the write-ahead log.
    pub(crate) position: u64,
    pub(crate) changes: Vec<RowChange>,
    /// The changed tables by their numbers, as they were at the commit. A later transaction may
    /// alter them.
    pub(crate) tables: BTreeMap<u64, StreamTable>,
    /// The number of changes beyond the [`ChangeBudget`].
    pub(crate) left_out: u64,
}

/// The state of the stream.
#[derive(Debug, Default)]
pub(crate) struct RowDecoder {
    tables: HashMap<u32, StreamTable>,
    open: Option<CommittedTransaction>,
    /// The tables that the open transaction changed.
    changed: HashSet<u32>,
    /// The limit of the changes that it keeps.
    budget: ChangeBudget,
}

/// The rest of a message.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn byte(&mut self) -> Option<u8> {
        self.bytes::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_be_bytes)
    }

    fn string(&mut self) -> Option<String> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let text = String::from_utf8_lossy(&self.0[..end]).into_owned();
        self.0 = &self.0[end + 1..];
        Some(text)
    }

    fn row(&mut self) -> Option<Vec<ColumnValue>> {
        let count = self.bytes().map(u16::from_be_bytes)?;
        let mut values = Vec::new();
        for _ in 0..count {
            values.push(match self.byte()? {
                b'n' => ColumnValue::Null,
                b'u' => ColumnValue::Unchanged,
                b't' | b'b' => {
                    let length = self.u32()? as usize;
                    let text = self.0.get(..length)?;
                    self.0 = &self.0[length..];
                    ColumnValue::Text(String::from_utf8_lossy(text).into_owned())
                }
                _ => return None,
            });
        }
        Some(values)
    }
}

impl RowDecoder {
    /// Decodes the next message. A commit completes a transaction.
    ///
    /// # Errors
    ///
    /// The first byte of a message that cannot be read.
    pub(crate) fn message(&mut self, message: &[u8]) -> Result<Option<CommittedTransaction>, u8> {
        let kind = message.first().copied().unwrap_or(0);
        self.decode(message).ok_or(kind)
    }

    fn decode(&mut self, message: &[u8]) -> Option<Option<CommittedTransaction>> {
        let mut reader = Reader(message);
        match reader.byte()? {
            b'B' => {
                let position = reader.u64()?;
                let time = (reader.u64()? as i64).saturating_add(EPOCH);
                self.changed.clear();
                self.budget.begin();
                self.open = Some(CommittedTransaction {
                    id: reader.u32()?,
                    time: time.saturating_mul(1000),
                    position,
                    changes: Vec::new(),
                    tables: BTreeMap::new(),
                    left_out: 0,
                });
            }
            b'C' => return Some(self.committed()),
            b'R' => {
                let number = reader.u32()?;
                let table = relation(&mut reader)?;
                self.tables.insert(number, table);
            }
            b'I' => {
                let table = reader.u32()?;
                reader.byte()?;
                let after = self.image(table, reader.row()?, false);
                self.add(table, RowOperation::Insert, None, true, Some(after));
            }
            b'U' => {
                let table = reader.u32()?;
                let (mut before, mut whole) = (None, false);
                let mut part = reader.byte()?;
                if part != b'N' {
                    whole = is_whole(part)?;
                    before = Some(self.image(table, reader.row()?, !whole));
                    part = reader.byte()?;
                }
                (part == b'N').then_some(())?;
                let after = self.image(table, reader.row()?, false);
                self.add(table, RowOperation::Update, before, whole, Some(after));
            }
            b'D' => {
                let table = reader.u32()?;
                let whole = is_whole(reader.byte()?)?;
                let before = self.image(table, reader.row()?, !whole);
                self.add(table, RowOperation::Delete, Some(before), whole, None);
            }
            b'T' => {
                let count = reader.u32()?;
                reader.byte()?;
                for _ in 0..count {
                    let table = reader.u32()?;
                    self.add(table, RowOperation::Truncate, None, false, None);
                }
            }
            // The origin, a type, a message of an application.
            _ => (),
        }
        Some(None)
    }

    fn committed(&mut self) -> Option<CommittedTransaction> {
        let mut transaction = self.open.take()?;
        let changed = self.changed.iter();
        let tables =
            changed.filter_map(|one| Some((u64::from(*one), self.tables.get(one)?.clone())));
        transaction.tables = tables.collect();
        Some(transaction)
    }

    /// True between the first message of a transaction and its commit.
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.open.is_some()
    }

    fn image(&self, table: u32, row: Vec<ColumnValue>, keys_alone: bool) -> RowImage {
        let columns = self.tables.get(&table).map(|table| &*table.columns);
        let named = columns.unwrap_or_default().iter().zip(row);
        named
            .filter(|((_, key), _)| *key || !keys_alone)
            .map(|((name, _), value)| (name.clone(), value))
            .collect()
    }

    fn add(
        &mut self,
        table: u32,
        operation: RowOperation,
        before: Option<RowImage>,
        whole_before: bool,
        after: Option<RowImage>,
    ) {
        let Some(open) = &mut self.open else { return };
        let is_new = self.changed.insert(table);
        if self.budget.is_spent() && !is_new {
            open.left_out += 1;
            return;
        }
        let change = RowChange {
            table: u64::from(table),
            operation,
            before,
            whole_before,
            after,
            statement: None,
        };
        self.budget.spend(&change);
        open.changes.push(change);
    }
}

/// Whether the row before a change has all columns (`O`, with the replica identity FULL) or those
/// of its key alone (`K`). `None` for another mark.
fn is_whole(mark: u8) -> Option<bool> {
    match mark {
        b'O' => Some(true),
        b'K' => Some(false),
        _ => None,
    }
}

fn relation(reader: &mut Reader<'_>) -> Option<StreamTable> {
    let schema = reader.string()?;
    let name = reader.string()?;
    let identity = reader.byte()?;
    let count = reader.bytes().map(u16::from_be_bytes)?;
    let (mut columns, mut texts) = (Vec::new(), BTreeSet::new());
    for _ in 0..count {
        let key = reader.byte()? & 1 != 0;
        let column = reader.string()?;
        let kind = reader.u32()?;
        // The modifier.
        reader.u32()?;
        if TEXTS.contains(&kind) {
            texts.insert(column.clone());
        }
        columns.push((column, key));
    }
    // The system's own schema has an empty name.
    let schema = match schema.is_empty() {
        true => "pg_catalog".to_owned(),
        false => schema,
    };
    let keys = columns.iter().filter(|(_, key)| *key);
    let keys = keys.map(|(name, _): &(String, bool)| name.clone());
    let (identity, incomplete) = match identity {
        // All columns are the identity.
        b'f' => (Vec::new(), "the server sent none"),
        _ => (keys.collect(), "the table's REPLICA IDENTITY is not FULL"),
    };
    Some(StreamTable {
        schema,
        name,
        columns,
        identity,
        incomplete,
        texts,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relation() -> Vec<u8> {
        identified(b'd', [true, false])
    }

    /// The table with a replica identity of this kind, and the columns that the server marks as
    /// parts of it.
    fn identified(kind: u8, [id, sum]: [bool; 2]) -> Vec<u8> {
        let mut message = b"R\0\0\0\x07public\0accounts\0".to_vec();
        message.extend_from_slice(&[kind, 0, 2, u8::from(id)]);
        message.extend_from_slice(b"id\0\0\0\0\x17\xff\xff\xff\xff");
        message.push(u8::from(sum));
        message.extend_from_slice(b"sum\0\0\0\0\x17\xff\xff\xff\xff");
        message
    }

    /// The table with the replica identity FULL. The server then marks all columns.
    fn full() -> Vec<u8> {
        identified(b'f', [true, true])
    }

    /// A change of the table, with the marks and the values of its rows. `None` is NULL.
    fn change(kind: u8, rows: &[(u8, [Option<&str>; 2])]) -> Vec<u8> {
        let mut message = vec![kind, 0, 0, 0, 7];
        for (mark, values) in rows {
            message.extend_from_slice(&[*mark, 0, 2]);
            for value in values {
                let Some(text) = value else {
                    message.push(b'n');
                    continue;
                };
                message.push(b't');
                message.extend_from_slice(&(text.len() as u32).to_be_bytes());
                message.extend_from_slice(text.as_bytes());
            }
        }
        message
    }

    /// The changes of a transaction with these messages.
    fn changes(messages: &[Vec<u8>]) -> Vec<RowChange> {
        let mut decoder = RowDecoder::default();
        assert_eq!(decoder.message(&begin()), Ok(None));
        for message in messages {
            assert_eq!(decoder.message(message), Ok(None));
        }
        decoder.message(b"C").unwrap().unwrap().changes
    }

    fn text(value: &str) -> ColumnValue {
        ColumnValue::Text(value.to_owned())
    }

    fn row(id: ColumnValue, sum: ColumnValue) -> Option<RowImage> {
        Some(vec![("id".to_owned(), id), ("sum".to_owned(), sum)])
    }

    fn begin() -> Vec<u8> {
        let mut message = b"B\0\0\0\0\0\0\0\x09".to_vec();
        message.extend_from_slice(&1_000_000_u64.to_be_bytes());
        message.extend_from_slice(&742_u32.to_be_bytes());
        message
    }

    #[test]
    fn an_update_without_a_former_row_has_the_new_row_alone() {
        let mut decoder = RowDecoder::default();
        assert_eq!(decoder.message(&relation()), Ok(None));
        assert_eq!(decoder.message(&begin()), Ok(None));
        let update = b"U\0\0\0\x07N\0\x02t\0\0\0\x0242u";
        assert_eq!(decoder.message(update), Ok(None));
        let commit = decoder.message(b"C").unwrap().unwrap();
        assert_eq!((commit.id, commit.position), (742, 9));
        assert_eq!(commit.time, (EPOCH + 1_000_000) * 1000);
        let change = &commit.changes[0];
        assert_eq!(change.before, None);
        let after = [
            ("id".to_owned(), ColumnValue::Text("42".to_owned())),
            ("sum".to_owned(), ColumnValue::Unchanged),
        ];
        assert_eq!(change.after.as_deref(), Some(&after[..]));
    }

    #[test]
    fn a_deleted_row_has_its_key_alone_by_default() {
        let mut decoder = RowDecoder::default();
        decoder.message(&relation()).unwrap();
        decoder.message(&begin()).unwrap();
        decoder.message(b"D\0\0\0\x07K\0\x02t\0\0\0\x017n").unwrap();
        let commit = decoder.message(b"C").unwrap().unwrap();
        let change = &commit.changes[0];
        let key = [("id".to_owned(), ColumnValue::Text("7".to_owned()))];
        assert_eq!(change.before.as_deref(), Some(&key[..]));
        assert!(!change.whole_before);
    }

    #[test]
    fn an_update_of_a_table_with_full_identity_has_both_rows_whole() {
        let update = change(
            b'U',
            &[
                (b'O', [Some("42"), Some("10")]),
                (b'N', [Some("42"), Some("11")]),
            ],
        );
        let changes = changes(&[full(), update]);
        let [change] = &changes[..] else {
            panic!("{changes:?}");
        };
        assert_eq!(change.operation, RowOperation::Update);
        assert_eq!(change.before, row(text("42"), text("10")));
        assert!(change.whole_before);
        assert_eq!(change.after, row(text("42"), text("11")));
    }

    #[test]
    fn a_deleted_row_of_a_table_with_full_identity_is_whole() {
        let changes = changes(&[full(), change(b'D', &[(b'O', [Some("7"), None])])]);
        let [change] = &changes[..] else {
            panic!("{changes:?}");
        };
        assert_eq!(change.operation, RowOperation::Delete);
        assert_eq!(change.before, row(text("7"), ColumnValue::Null));
        assert!(change.whole_before);
        assert_eq!(change.after, None);
    }

    #[test]
    fn an_update_of_a_key_has_the_former_key_alone_by_default() {
        let update = change(
            b'U',
            &[(b'K', [Some("7"), None]), (b'N', [Some("8"), Some("11")])],
        );
        let changes = changes(&[relation(), update]);
        let [change] = &changes[..] else {
            panic!("{changes:?}");
        };
        assert_eq!(change.before, Some(vec![("id".to_owned(), text("7"))]));
        assert!(!change.whole_before);
        assert_eq!(change.after, row(text("8"), text("11")));
    }

    /// The server stores a long value outside of the row. It sends the value with the row before,
    /// and marks it as unchanged in the row after.
    #[test]
    fn a_long_value_that_an_update_left_is_in_the_whole_row_before() {
        let mut update = change(b'U', &[(b'O', [Some("42"), Some("10")])]);
        update.extend_from_slice(b"N\0\x02t\0\0\0\x0242u");
        let changes = changes(&[full(), update]);
        assert_eq!(changes[0].before, row(text("42"), text("10")));
        assert!(changes[0].whole_before);
        assert_eq!(changes[0].after, row(text("42"), ColumnValue::Unchanged));
    }

    #[test]
    fn the_rows_before_are_whole_from_the_description_with_full_identity_on() {
        let deletion = |mark: u8, id: &str, sum: Option<&str>| {
            let values = [Some(id), sum];
            change(b'D', &[(mark, values)])
        };
        let changes = changes(&[
            relation(),
            deletion(b'K', "1", None),
            full(),
            deletion(b'O', "2", Some("20")),
        ]);
        assert_eq!(changes[0].before, Some(vec![("id".to_owned(), text("1"))]));
        assert_eq!(changes[1].before, row(text("2"), text("20")));
        let whole: Vec<bool> = changes.iter().map(|change| change.whole_before).collect();
        assert_eq!(whole, [false, true]);
    }

    #[test]
    fn a_transaction_has_its_tables_as_they_were_at_its_commit() {
        let mut decoder = RowDecoder::default();
        let mut transaction = |messages: [&[u8]; 2]| {
            decoder.message(&begin()).unwrap();
            for message in messages {
                decoder.message(message).unwrap();
            }
            decoder.message(b"C").unwrap().unwrap()
        };
        let insertion = change(b'I', &[(b'N', [Some("1"), None])]);
        let former = transaction([&relation(), &insertion]);
        let later = transaction([&full(), &insertion]);
        assert_eq!(former.tables[&7].identity, ["id"]);
        assert!(later.tables[&7].identity.is_empty());
    }

    #[test]
    fn a_table_with_full_identity_has_no_key_of_the_stream_and_lacks_nothing() {
        let mut decoder = RowDecoder::default();
        let mut table = |message: Vec<u8>| {
            decoder.message(&message).unwrap();
            decoder.tables[&7].clone()
        };
        let by_default = table(relation());
        assert_eq!(by_default.identity, ["id"]);
        assert!(by_default.incomplete.contains("REPLICA IDENTITY"));
        let by_index = table(identified(b'i', [false, true]));
        assert_eq!(by_index.identity, ["sum"]);
        let whole = table(full());
        assert!(whole.identity.is_empty());
        assert!(!whole.incomplete.contains("REPLICA IDENTITY"));
        let columns: Vec<&str> = whole.columns.iter().map(|(name, _)| &**name).collect();
        assert_eq!(columns, ["id", "sum"]);
    }

    #[test]
    fn changes_beyond_the_memory_of_a_transaction_are_counted_and_their_tables_known() {
        let mut decoder = RowDecoder {
            budget: ChangeBudget::of_bytes(1 << 14),
            ..RowDecoder::default()
        };
        decoder.message(&relation()).unwrap();
        decoder.message(&begin()).unwrap();
        let mut insertion = b"I\0\0\0\x07N\0\x02t\0\0\x04\0".to_vec();
        insertion.extend([b'x'; 1024]);
        insertion.push(b'n');
        for _ in 0..50 {
            decoder.message(&insertion).unwrap();
        }
        // Two other tables, one of them twice.
        let truncation = b"T\0\0\0\x03\0\0\0\0\x08\0\0\0\x08\0\0\0\x09";
        decoder.message(truncation).unwrap();
        let commit = decoder.message(b"C").unwrap().unwrap();
        assert!(commit.changes.len() < 20, "{}", commit.changes.len());
        assert_eq!(commit.changes.len() as u64 + commit.left_out, 53);
        let tables: BTreeSet<u64> = commit.changes.iter().map(|one| one.table).collect();
        assert_eq!(tables, BTreeSet::from([7, 8, 9]));
        // The next transaction begins anew.
        decoder.message(&begin()).unwrap();
        decoder.message(&insertion).unwrap();
        let commit = decoder.message(b"C").unwrap().unwrap();
        assert_eq!((commit.changes.len(), commit.left_out), (1, 0));
    }

    #[test]
    fn a_message_cut_at_any_byte_is_refused_and_not_misread() {
        let before = (b'O', [Some("42"), Some("10")]);
        let after = (b'N', [Some("42"), None]);
        for (kind, rows) in [
            (b'I', &[after][..]),
            (b'U', &[after]),
            (b'U', &[before, after]),
            (b'D', &[before]),
        ] {
            let message = change(kind, rows);
            for end in 1..message.len() {
                let mut decoder = RowDecoder::default();
                decoder.message(&full()).unwrap();
                decoder.message(&begin()).unwrap();
                assert_eq!(decoder.message(&message[..end]), Err(kind), "{end}");
            }
        }
    }

    #[test]
    fn a_row_before_a_change_with_an_unknown_mark_is_refused() {
        let row = (b'X', [Some("42"), Some("10")]);
        for kind in [b'U', b'D'] {
            let mut decoder = RowDecoder::default();
            decoder.message(&full()).unwrap();
            decoder.message(&begin()).unwrap();
            let message = change(kind, &[row, (b'N', [Some("42"), None])]);
            assert_eq!(decoder.message(&message), Err(kind));
        }
    }
}
