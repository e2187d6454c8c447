//! Puts the events of a binlog together to committed transactions with their row changes.
//!
//! In: events, in the order of the stream, and the catalog's columns. Out: committed groups. A
//! group ends with the query id of the transaction's first statement that used an engine. Groups of
//! engines without transactions have the thread instead.

use std::collections::{BTreeMap, HashMap};

use backstory_database::change_budget::ChangeBudget;
use backstory_database::row_change::{RowChange, RowOperation, StreamTable};
use backstory_database::sql_dialect::SqlDialect;

use crate::binlog_event::{BinlogEvent, EventRows, MappedTable, RowsKind};
use crate::byte_reader::ByteReader;
use crate::catalog_reader::ServerCatalog;
use crate::packed_row::{column, completed, has, known_columns, packed_row};
use crate::row_value::ColumnType;
use crate::statement_text::{first_words, names_of};

/// A transaction with its changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CommittedGroup {
    /// `DOMAIN-SERVER-SEQUENCE`
    pub(crate) number: String,
    /// The query id of its first statement that used an engine.
    pub(crate) query: Option<u64>,
    /// The number of its connection.
    pub(crate) thread: Option<u64>,
    /// The statements that changed its rows.
    pub(crate) statements: Vec<String>,
    /// Where it ends: file and offset.
    pub(crate) position: String,
    pub(crate) changes: Vec<RowChange>,
    /// The number of changes beyond the [`ChangeBudget`].
    pub(crate) left_out: u64,
    pub(crate) tables: BTreeMap<u64, StreamTable>,
    /// A single definition.
    standalone: bool,
}

/// The state of the stream.
#[derive(Debug, Default)]
pub(crate) struct RowGroups {
    /// Tables by their numbers in the stream. Each transaction describes its tables anew.
    mapped: HashMap<u64, MappedTable>,
    open: Option<CommittedGroup>,
    /// The limit of the changes that the open transaction keeps.
    budget: ChangeBudget,
    /// Transactions that another event commits.
    prepared: HashMap<String, CommittedGroup>,
    /// Definitions were changed since the catalog was read.
    pub(crate) is_outdated: bool,
    /// Rows whose columns are not in the catalog.
    pub(crate) unnamed: u64,
}

impl RowGroups {
    /// True between the begin of a transaction and its commit.
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.open.is_some()
    }

    /// True if a table's event does not fit the catalog.
    pub(crate) fn lacks(&self, event: &BinlogEvent, catalog: &ServerCatalog) -> bool {
        let BinlogEvent::Table(_, table) = event else {
            return false;
        };
        let known = catalog
            .columns
            .get(&(table.database.clone(), table.name.clone()));
        self.is_outdated || known.is_none_or(|known| known.len() != table.columns.len())
    }

    /// Takes the next event. `None` if rows are cut.
    pub(crate) fn take(
        &mut self,
        event: BinlogEvent,
        position: &str,
        catalog: &ServerCatalog,
    ) -> Option<Option<CommittedGroup>> {
        match event {
            BinlogEvent::Begin { number, standalone } => {
                self.mapped.clear();
                self.budget.begin();
                self.open = Some(CommittedGroup {
                    number,
                    standalone,
                    ..CommittedGroup::default()
                });
            }
            BinlogEvent::Annotation(text) => {
                let statements = self.open.as_mut().map(|open| &mut open.statements);
                statements
                    .into_iter()
                    .for_each(|all| all.push(text.clone()));
            }
            BinlogEvent::Table(number, table) => {
                self.mapped.insert(number, table);
            }
            BinlogEvent::Rows(rows) => self.add_rows(&rows, catalog)?,
            BinlogEvent::Commit(query) => {
                return Some(self.closed(position).map(|group| CommittedGroup {
                    query: Some(query),
                    ..group
                }));
            }
            BinlogEvent::Prepared(name) => {
                if let Some(group) = self.open.take() {
                    self.prepared.insert(name, group);
                }
            }
            BinlogEvent::Query {
                thread,
                database,
                text,
            } => return Some(self.query(thread, &database, text, position, catalog)),
            _ => (),
        }
        Some(None)
    }

    fn closed(&mut self, position: &str) -> Option<CommittedGroup> {
        let group = self.open.take()?;
        let position = position.to_owned();
        Some(CommittedGroup { position, ..group })
    }

    /// A statement in the stream: the end of a transaction, or a definition.
    fn query(
        &mut self,
        thread: u64,
        database: &str,
        text: String,
        position: &str,
        catalog: &ServerCatalog,
    ) -> Option<CommittedGroup> {
        if let Some(open) = &mut self.open {
            open.thread = Some(thread);
        }
        let (first, second) = first_words(&text);
        match (&*first, &*second) {
            ("COMMIT", _) => self.closed(position),
            ("ROLLBACK", "") => {
                self.open = None;
                None
            }
            ("XA", "COMMIT" | "ROLLBACK") => {
                self.open = None;
                let name = text
                    .splitn(3, char::is_whitespace)
                    .nth(2)
                    .unwrap_or_default();
                let group = self.prepared.remove(name)?;
                let position = position.to_owned();
                (second == "COMMIT").then_some(CommittedGroup { position, ..group })
            }
            ("BEGIN" | "SAVEPOINT" | "XA", _) => None,
            _ => {
                self.is_outdated = true;
                let is_alone = self.open.as_ref().is_some_and(|open| open.standalone);
                let mut group = self.closed(position).filter(|_| is_alone)?;
                (first == "TRUNCATE").then_some(())?;
                let dialect = SqlDialect::MariaDb { lower_case: false };
                let names = names_of(&text, dialect).ok()?;
                let name = names.writes.first()?;
                let table = catalog.catalog.resolve(name, &[database.to_owned()])?;
                let number = number_of(&mut group.tables, &table.0, &table.1);
                group.changes.push(RowChange {
                    table: number,
                    operation: RowOperation::Truncate,
                    before: None,
                    whole_before: false,
                    after: None,
                    statement: Some(group.statements.len()),
                });
                group.statements.push(text);
                Some(group)
            }
        }
    }

    fn add_rows(&mut self, rows: &EventRows, catalog: &ServerCatalog) -> Option<()> {
        let (Some(open), Some(table)) = (&mut self.open, self.mapped.get(&rows.table)) else {
            return Some(());
        };
        let name = (table.database.clone(), table.name.clone());
        let known = catalog.columns.get(&name).map_or(&[][..], Vec::as_slice);
        let types: Vec<ColumnType> = (0..table.columns.len())
            .map(|at| column(table, known, at))
            .collect();
        if types.iter().any(|column| column.name.is_empty()) {
            self.unnamed += 1;
        }
        let is_new = !open
            .tables
            .values()
            .any(|known| (&known.schema, &known.name) == (&name.0, &name.1));
        let number = number_of(&mut open.tables, &name.0, &name.1);
        let width = rows.width;
        // Rows of another width would be misread.
        (width == types.len()).then_some(())?;
        let image = |row: &mut ByteReader<'_>, present: &[u8]| {
            packed_row(row, present, width, table, &types)
        };
        let mut row = ByteReader(&rows.packed);
        let mut first = is_new;
        while !row.0.is_empty() {
            let left = row.0.len();
            let one = image(&mut row, &rows.present)?;
            let (operation, before, after) = match rows.kind {
                RowsKind::Insert => (RowOperation::Insert, None, Some(one)),
                RowsKind::Delete => (RowOperation::Delete, Some(one), None),
                RowsKind::Update => {
                    let after = image(&mut row, &rows.present_after)?;
                    (RowOperation::Update, Some(one), Some(after))
                }
            };
            // Rows without columns take no bytes, and would never end.
            (row.0.len() < left).then_some(())?;
            // One change of each table is kept, so that the table is known.
            if self.budget.is_spent() && !std::mem::take(&mut first) {
                open.left_out += 1;
                continue;
            }
            let whole_before = (0..width).all(|at| has(&rows.present, at));
            let change = RowChange {
                table: number,
                operation,
                after: after.map(|after| completed(after, before.as_ref(), &types)),
                before: before.map(known_columns),
                whole_before,
                statement: open.statements.len().checked_sub(1),
            };
            self.budget.spend(&change);
            open.changes.push(change);
        }
        Some(())
    }
}

/// The number of a table in a group.
fn number_of(tables: &mut BTreeMap<u64, StreamTable>, schema: &str, name: &str) -> u64 {
    let known = tables
        .iter()
        .find(|(_, table)| table.schema == schema && table.name == name);
    if let Some((number, _)) = known {
        return *number;
    }
    let number = tables.len() as u64;
    let table = StreamTable {
        schema: schema.to_owned(),
        name: name.to_owned(),
        columns: Vec::new(),
        identity: Vec::new(),
        incomplete: "binlog_row_image is not FULL",
        texts: Default::default(),
    };
    tables.insert(number, table);
    number
}

#[cfg(test)]
mod tests;
