//! Decodes the messages of the output plug-in `pgoutput`, version 1 of its protocol.
//!
//! In: messages, in the order of the stream. Out: committed transactions with their row changes.
//! `https://www.postgresql.org/docs/15/protocol-logicalrep-message-formats.html`

use std::collections::{BTreeSet, HashMap, HashSet};

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
    /// A table of a change.
    pub(crate) fn table(&self, number: u64) -> Option<&StreamTable> {
        self.tables.get(&u32::try_from(number).ok()?)
    }

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
                    left_out: 0,
                });
            }
            b'C' => return Some(self.open.take()),
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
                    whole = part == b'O';
                    before = Some(self.image(table, reader.row()?, !whole));
                    part = reader.byte()?;
                }
                (part == b'N').then_some(())?;
                let after = self.image(table, reader.row()?, false);
                self.add(table, RowOperation::Update, before, whole, Some(after));
            }
            b'D' => {
                let table = reader.u32()?;
                let whole = reader.byte()? == b'O';
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
        let mut message = b"R\0\0\0\x07public\0accounts\0d\0\x02".to_vec();
        message.extend_from_slice(b"\x01id\0\0\0\0\x17\xff\xff\xff\xff");
        message.extend_from_slice(b"\0sum\0\0\0\0\x17\xff\xff\xff\xff");
        message
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
        let update = b"U\0\0\0\x07N\0\x02t\0\0\0\x0242n";
        for end in 1..update.len() {
            let mut decoder = RowDecoder::default();
            decoder.message(&relation()).unwrap();
            decoder.message(&begin()).unwrap();
            assert_eq!(decoder.message(&update[..end]), Err(b'U'), "{end}");
        }
    }
}
