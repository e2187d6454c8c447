//! The facts about transactions and rows that are no edges, as JSON.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::columns::StatementColumns;
use crate::commit::{Commit, CommitCertainty};
use crate::database_records::cut;
use crate::logged_transaction::{ClientSession, LoggedTransaction};
use crate::row_change::{ColumnValue, RowChange, RowImage, RowOperation, StreamTable};
use crate::sql_dialect::WrittenName;

/// Most characters of a value in a fact.
const VALUE: usize = 512;
/// Most characters of a statement in a fact.
const STATEMENT: usize = 4 << 10;
/// Most statements in the fact of a transaction.
pub const LISTED: usize = 8;

/// The facts about a client of what had arrived at a time, in ns since 1970. `network`: the cookie
/// of this process's network namespace.
pub(crate) fn client(session: &ClientSession, network: Option<u64>, time: i64) -> Value {
    let is_certain = session.client.is_certain_at(time);
    let port = session.port.filter(|port| *port != 0);
    let pids = || session.client.processes.iter().map(|client| client.pid);
    json!({
        "address": session.host,
        "port": port,
        "network": network.filter(|_| port.is_some()),
        "seen": session.seen,
        "pid": pids().next().filter(|_| is_certain),
        "possible_pids": pids().filter(|_| !is_certain).collect::<Vec<_>>(),
    })
}

pub(crate) fn transaction_fact(
    logged: &LoggedTransaction,
    (session, network): (&ClientSession, Option<u64>),
    commits: &[Commit<'_>],
    certainty: CommitCertainty,
    (columns, unknown_functions): (&[Arc<StatementColumns>], &BTreeSet<WrittenName>),
) -> Value {
    let names = |set: &BTreeSet<WrittenName>| -> Vec<String> {
        set.iter().map(|name| name.join(".")).collect()
    };
    let has_committed = !commits.is_empty() || logged.has_committed();
    let wrote = (!logged.is_rolled_back()).then_some(has_committed);
    let listed = logged.statements.iter().zip(columns).take(LISTED);
    let statements = listed.map(|(one, columns)| {
        let tables = one.tables.as_ref();
        let is_done = one.error.is_none();
        json!({
            "text": cut(&one.text, STATEMENT), "parameters": one.parameters, "error": one.error,
            "reads": tables.ok().map(|tables| names(&tables.reads)),
            "writes": tables.ok().map(|tables| names(&tables.writes)),
            "columns": columns.json(is_done, wrote.filter(|_| is_done)),
            "unparsed": tables.err(),
        })
    });
    let first = commits.first();
    let last = commits.last();
    let rows: usize = commits.iter().map(|commit| commit.changes.len()).sum();
    let left_out: u64 = commits.iter().map(|commit| commit.left_out).sum();
    json!({
        "number": first.map(|commit| &commit.number).or(logged.id.as_ref()),
        "virtual": logged.virtual_id, "user": session.user, "database": session.database,
        "application": session.application, "client": client(session, network, logged.arrived()),
        "committed": last.map(|commit| commit.time),
        "position": last.map(|commit| &commit.position),
        "matched_by": certainty.word(),
        "rows": last.map(|_| rows),
        "rows_left_out": last.map(|_| left_out),
        "count": logged.statements.len(),
        "statements": statements.collect::<Vec<_>>(),
        "columns": all_columns(logged, columns).map(|columns| columns.json(true, wrote)),
        "unknown_functions": names(unknown_functions),
    })
}

/// The columns of all statements, if some of these are not listed.
fn all_columns(
    logged: &LoggedTransaction,
    columns: &[Arc<StatementColumns>],
) -> Option<StatementColumns> {
    if logged.statements.len() <= LISTED {
        return None;
    }
    // A statement that is repeated has the same columns, which are added once.
    let mut seen = BTreeSet::new();
    let mut all = StatementColumns::default();
    for (statement, columns) in logged.statements.iter().zip(columns) {
        let is_done = statement.error.is_none();
        if seen.insert((Arc::as_ptr(columns), is_done)) {
            all.add(columns, is_done, is_done);
        }
    }
    Some(all)
}

/// `former`: the row's name before a change of its key. `maker`: the place of the statement that
/// made the change.
pub(crate) fn row_fact(
    (row, former): (&str, Option<&str>),
    table: &StreamTable,
    change: &RowChange,
    maker: Option<usize>,
) -> Value {
    let image = |image: &Option<RowImage>| match image {
        Some(image) => {
            let columns = image
                .iter()
                .map(|(name, value)| (name.clone(), value_json(value)));
            Value::Object(columns.collect())
        }
        None => Value::Null,
    };
    let operation = match change.operation {
        RowOperation::Insert => "insert",
        RowOperation::Update => "update",
        RowOperation::Delete => "delete",
        RowOperation::Truncate => "truncate",
    };
    let has_former = matches!(
        change.operation,
        RowOperation::Update | RowOperation::Delete
    );
    let lacks = has_former && !change.whole_before;
    json!({
        "row": row, "former": former, "operation": operation, "statement": maker,
        "before": image(&change.before), "after": image(&change.after),
        "before_incomplete": lacks.then_some(table.incomplete),
    })
}

pub(crate) fn value_json(value: &ColumnValue) -> Value {
    match value {
        ColumnValue::Null => Value::Null,
        ColumnValue::Unchanged => json!({"unchanged": true}),
        ColumnValue::Text(text) if text.len() > VALUE => {
            json!({"begins": cut(text, VALUE), "bytes": text.len()})
        }
        ColumnValue::Text(text) => Value::String(text.clone()),
    }
}
