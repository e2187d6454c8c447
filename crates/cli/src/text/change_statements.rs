//! The statement that made a change of a row, among those of its transaction.
//!
//! In: a change, and the one before it in the list. Out: the statement that the record names. If it
//! names none, those that name the table, as possible ones. They stand at the newest change of the
//! transaction.

use std::io::{self, Write};

use backstory_query::{self as query, RowEvent};
use serde_json::Value;

use super::statement_columns;
use super::style::{Role, Style};
use super::words::counted;

/// The number of statements of a transaction that are printed.
const STATEMENTS: usize = 3;
/// The number of characters of a statement or value that are printed.
const LONG: usize = 160;

/// Writes the statement that made a change, or those that possibly did. `newer`: the change before
/// it in the list.
pub(super) fn write_statements(
    event: &RowEvent,
    newer: Option<&RowEvent>,
    style: Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let dim = |line: &str| style.paint(Role::Dim, line);
    let statements = match made_by(event) {
        MadeBy::Listed(statement) => vec![statement],
        MadeBy::Unlisted(place) => {
            let count = statement_count(event);
            let line = format!("statement {place} of {count}, which the record does not list");
            return writeln!(out, "    {}", dim(&line));
        }
        MadeBy::Unknown => {
            let statements = statements(event);
            let is_same = |newer: &RowEvent| {
                let is_one = newer.run == event.run && newer.transaction == event.transaction;
                let is_unknown = newer.change["statement"].is_null();
                is_one && is_unknown && self::statements(newer) == statements
            };
            if statements.len() > 1 && newer.is_some_and(is_same) {
                return writeln!(out, "    {}", dim("possibly by one of the same statements"));
            }
            if !statements.is_empty() && statement_count(event) > 1 {
                let label = possible_label(statements.len(), has_others(event));
                writeln!(out, "    {}", dim(label))?;
            }
            statements
        }
    };
    for (statement, read) in statements.iter().take(STATEMENTS) {
        writeln!(out, "    {}", style.paint(Role::Command, statement))?;
        if let Some(read) = read {
            writeln!(out, "      {}", dim(read))?;
        }
    }
    let more = statements.len().saturating_sub(STATEMENTS);
    if more > 0 {
        let note = format!(
            "… and {}",
            counted(more, "more statement", "more statements")
        );
        writeln!(out, "    {}", dim(&note))?;
    }
    Ok(())
}

/// A statement, with the columns of other tables that it read.
type ToldStatement = (String, Option<String>);

/// The statement that made a change.
enum MadeBy {
    Listed(ToldStatement),
    /// Its place among the statements of the transaction, from 1.
    Unlisted(u64),
    Unknown,
}

fn made_by(event: &RowEvent) -> MadeBy {
    let Some(place) = event.change["statement"].as_u64() else {
        return MadeBy::Unknown;
    };
    let statement = &event.transaction["statements"][place as usize];
    match told(statement, &qualified_table(event)) {
        Some(told) => MadeBy::Listed(told),
        None => MadeBy::Unlisted(place + 1),
    }
}

/// The number of statements in the transaction of a change.
fn statement_count(event: &RowEvent) -> usize {
    let listed = event.transaction["statements"].as_array();
    let count = event.transaction["count"].as_u64();
    count.map_or(listed.map_or(0, Vec::len), |count| count as usize)
}

/// The full name of the row's table.
fn table_of(event: &RowEvent) -> &str {
    let row = event.change["row"].as_str().unwrap_or_default();
    row.split('?').next().unwrap_or_default()
}

fn qualified_table(event: &RowEvent) -> String {
    query::qualified_table(table_of(event).as_bytes()).unwrap_or_default()
}

fn told(statement: &Value, table: &str) -> Option<ToldStatement> {
    let read = statement_columns::read_elsewhere(&statement["columns"], table);
    Some((shortened(&statement_text(statement)?), read))
}

/// The line above so many possible statements. `others`: another statement of the transaction
/// possibly made the change, too.
fn possible_label(count: usize, others: bool) -> &'static str {
    match (count, others) {
        (1, false) => "possibly by:",
        (1, true) => "possibly by this statement, or another one of the transaction:",
        (_, false) => "possibly by one of these statements:",
        (_, true) => "possibly by one of these statements, or another one of the transaction:",
    }
}

/// The statements of a transaction that name the row's table as changed.
fn naming(event: &RowEvent) -> impl Iterator<Item = &Value> {
    let name = table_of(event).rsplit(['/', '.']).next();
    let name = name.unwrap_or_default();
    listed(event).filter(move |statement| {
        let names = statement["writes"].as_array().into_iter().flatten();
        let mut names = names.filter_map(Value::as_str);
        names.any(|written| written.rsplit('.').next() == Some(name))
    })
}

/// The statements of a transaction that the record lists.
fn listed(event: &RowEvent) -> impl Iterator<Item = &Value> {
    let all = event.transaction["statements"].as_array();
    all.into_iter().flatten()
}

/// The statements that name the row's table, or all if none does.
fn statements(event: &RowEvent) -> Vec<ToldStatement> {
    let table = qualified_table(event);
    let text = |statement: &Value| told(statement, &table);
    let known: Vec<ToldStatement> = naming(event).filter_map(text).collect();
    match known.is_empty() {
        true => listed(event).filter_map(text).collect(),
        false => known,
    }
}

/// True if a statement possibly made the change that does not name the table: by a trigger, a
/// function, or another name of the table.
fn has_others(event: &RowEvent) -> bool {
    let all = listed(event).filter(|one| may_change_rows(one)).count();
    let naming = naming(event).count();
    naming > 0 && (all > naming || statement_count(event) > listed(event).count())
}

/// False for a statement that certainly changes no row.
fn may_change_rows(statement: &Value) -> bool {
    let text = statement_text(statement).unwrap_or_default().to_lowercase();
    let mut words = text.split_whitespace();
    match (words.next(), words.next()) {
        (Some("begin"), Some("not")) => true,
        (Some("begin" | "start" | "commit" | "end" | "rollback"), _) => false,
        (Some("savepoint" | "release" | "show"), _) => false,
        // SET @x = f() of MariaDB calls a function.
        (Some("set"), _) => text.contains('('),
        // A query without a function makes no table.
        (Some("select"), _) => text.contains('(') || text.contains(" into "),
        _ => true,
    }
}

/// The text of a statement in one line.
pub(super) fn statement_text(statement: &Value) -> Option<String> {
    let text = statement["text"].as_str()?.trim_end_matches(';');
    let words: Vec<&str> = text.split_whitespace().collect();
    Some(words.join(" "))
}

/// A text, cut if it is long.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONG) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_statement_that_calls_a_function_may_change_rows() {
        let may = |text: &str| may_change_rows(&json!({ "text": text }));
        for text in [
            "SET @x = pay(1)",
            "SELECT pay(1)",
            "BEGIN NOT ATOMIC CALL p(); END",
        ] {
            assert!(may(text), "{text}");
        }
        for text in ["SET search_path = a", "SELECT 1", "COMMIT", "BEGIN"] {
            assert!(!may(text), "{text}");
        }
    }
}
