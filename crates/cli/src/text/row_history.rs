//! The history of a row of a watched database, one paragraph for each change.
//!
//! In: the changes, the newest first. Out: for each its time, its transaction, the statements that
//! can have made it, the client's command, and the columns that it changed.

use std::io::{self, Write};

use backstory_graph::model::{Activity, Certainty};
use backstory_query::{self as query, RowEvent};
use backstory_workflow::paths::{base_name, is_system};
use serde_json::{Map, Value};

use super::shell::{Call, SHORT};
use super::statement_columns;
use super::style::{Role, Style};
use super::when::moment;
use super::words::counted;

/// The number of changes that are printed, unless all are wanted.
const FEW: usize = 8;
/// The number of statements of a transaction that are printed.
const STATEMENTS: usize = 3;
/// The number of times without a watch that are printed between two changes.
const GAPS: usize = 3;
/// The number of characters of a statement or value that are printed.
const LONG: usize = 160;

/// Writes the history. `here` is the current directory.
pub fn write(
    events: &[RowEvent],
    all: bool,
    here: &[u8],
    style: Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let most = if all { usize::MAX } else { FEW };
    writeln!(
        out,
        "{}, the newest first:",
        counted(events.len(), "change", "changes")
    )?;
    for (at, event) in events.iter().enumerate().take(most) {
        // Across a time that no run watched, the row before the change is unknown.
        let older = events.get(at + 1).filter(|_| event.unwatched.is_empty());
        let older = older.map(|older| &older.change["after"]);
        writeln!(out, "  {}", title(event))?;
        for (statement, read) in statements(event).iter().take(STATEMENTS) {
            writeln!(out, "    {}", style.paint(Role::Command, statement))?;
            if let Some(read) = read {
                writeln!(out, "      {}", style.paint(Role::Dim, read))?;
            }
        }
        let by = by_client(&event.clients, here);
        for line in [Some(by), doubts(event)].into_iter().flatten() {
            writeln!(out, "    {}", style.paint(Role::Dim, &line))?;
        }
        for column in columns(&event.change, older) {
            writeln!(out, "      {column}")?;
        }
        for (from, to) in event.unwatched.iter().rev().take(GAPS) {
            let (from, to) = (moment(*from), moment(*to));
            let note = format!("  not watched {from} to {to}: the row may have changed");
            writeln!(out, "{}", style.paint(Role::Dim, &note))?;
        }
    }
    if events.len() > most {
        let more = counted(events.len() - most, "older change", "older changes");
        let note = format!("  … and {more}: --all lists them");
        writeln!(out, "{}", style.paint(Role::Dim, &note))?;
    }
    writeln!(out)
}

/// The client's command, or those of the processes that can be the client.
pub(super) fn by_client(clients: &[(Activity, Certainty)], here: &[u8]) -> String {
    let command = |client: &Activity| {
        let mut client = client.clone();
        // A program of the system is called by its name alone.
        if let Some(program) = client.argv.first_mut().filter(|program| is_system(program)) {
            *program = base_name(program).into();
        }
        shortened(&Call::of(&client).line(here, SHORT).0)
    };
    let mut certain = clients.iter().filter(|(_, how)| *how == Certainty::Seen);
    if let Some((client, _)) = certain.next() {
        return format!("by {}", command(client));
    }
    let mut commands: Vec<String> = Vec::new();
    for (client, _) in clients {
        let command = command(client);
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    match commands.is_empty() {
        true => "by an unknown process".to_owned(),
        false => format!("possibly by {}", commands.join(", or ")),
    }
}

/// The functions that the transaction called and whose tables are unknown.
fn doubts(event: &RowEvent) -> Option<String> {
    let names = event.transaction["unknown_functions"].as_array()?.iter();
    let names: Vec<&str> = names.filter_map(Value::as_str).collect();
    let names = shortened(&names.join(", "));
    (!names.is_empty()).then(|| format!("possibly from other tables, through {names}"))
}

/// Time, operation, transaction, and the user of the database.
fn title(event: &RowEvent) -> String {
    let operation = word(&event.change["operation"]);
    let words = transaction_words(&event.transaction);
    let mut title = format!("{}  {operation}", moment(event.time));
    if !words.is_empty() {
        title.push_str(&format!(", {words}"));
    }
    if event.transaction["matched_by"] == "possible" {
        title.push_str(", possibly");
    }
    title
}

/// The number of a transaction, the user of the database and the application.
pub(super) fn transaction_words(transaction: &Value) -> String {
    let fields = [
        ("transaction", "number"),
        ("user", "user"),
        ("application", "application"),
    ];
    let parts = fields
        .map(|(name, field)| (name, word(&transaction[field])))
        .into_iter()
        .filter(|(_, value)| !value.is_empty());
    let parts: Vec<String> = parts
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    parts.join(", ")
}

fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// The statements that changed the row's table, as far as that is known, each with the columns of
/// other tables that it read.
fn statements(event: &RowEvent) -> Vec<(String, Option<String>)> {
    let all = event.transaction["statements"].as_array();
    let all: Vec<&Value> = all.into_iter().flatten().collect();
    let row = event.change["row"].as_str().unwrap_or_default();
    let table = row.split('?').next().unwrap_or_default();
    let name = table.rsplit(['/', '.']).next().unwrap_or_default();
    let writes = |statement: &&&Value| {
        let names = statement["writes"].as_array().into_iter().flatten();
        names
            .filter_map(Value::as_str)
            .any(|written| written.rsplit('.').next() == Some(name))
    };
    let qualified = query::qualified_table(table.as_bytes()).unwrap_or_default();
    let text = |statement: &&Value| {
        let read = statement_columns::read_elsewhere(&statement["columns"], &qualified);
        Some((shortened(&statement_text(statement)?), read))
    };
    let known: Vec<_> = all.iter().filter(writes).filter_map(text).collect();
    match known.is_empty() {
        true => all.iter().filter_map(text).collect(),
        false => known,
    }
}

/// The text of a statement in one line.
pub(super) fn statement_text(statement: &Value) -> Option<String> {
    let text = statement["text"].as_str()?.trim_end_matches(';');
    let words: Vec<&str> = text.split_whitespace().collect();
    Some(words.join(" "))
}

/// The columns that a change gave another value. `older` is the row after the change before it.
fn columns(change: &Value, older: Option<&Value>) -> Vec<String> {
    let object = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let known = |value: &Value| value.get("unchanged").is_none();
    let (mut before, after) = (object(&change["before"]), object(&change["after"]));
    if before.len() < after.len() && change["operation"] == "update" {
        let mut former = older.map(object).unwrap_or_default();
        former.append(&mut before);
        before = former;
    }
    if after.is_empty() {
        return before
            .iter()
            .map(|(name, value)| format!("{name}: {}", shown(value)))
            .collect();
    }
    let changed = |name: &str, value: &Value, before: &Map<String, Value>| match before.get(name) {
        Some(former) if former == value => None,
        Some(former) => Some(format!("{name}: {} → {}", shown(former), shown(value))),
        None => Some(format!("{name}: {}", shown(value))),
    };
    let mut lines: Vec<String> = Vec::new();
    for (name, value) in after.iter().filter(|(_, value)| known(value)) {
        lines.extend(changed(name, value, &before));
    }
    lines
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => shortened(text),
        Value::Object(cut) => match cut.get("begins").and_then(Value::as_str) {
            Some(begin) => format!("{}…", shortened(begin)),
            None => value.to_string(),
        },
        other => other.to_string(),
    }
}

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

    fn event(change: Value) -> RowEvent {
        let statements = [
            json!({"text": "UPDATE b\n  SET x = 1", "writes": ["b"]}),
            json!({"text": "UPDATE s.a SET x = 2", "writes": ["s.a"]}),
        ];
        RowEvent {
            run: "r1".to_owned(),
            time: 0,
            change,
            transaction: json!({"number": 7, "user": "ann", "statements": statements}),
            clients: Vec::new(),
            unwatched: Vec::new(),
        }
    }

    fn written(events: &[RowEvent]) -> String {
        let mut out = Vec::new();
        write(events, false, b"/", Style::PLAIN, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_change_shows_its_transaction_its_statement_and_the_changed_columns() {
        let row = "postgres://h:1/bank/s.a?id=1";
        let first =
            json!({"row": row, "operation": "insert", "after": {"id": "1", "x": "1", "y": null}});
        let second = json!({"row": row, "operation": "update", "before": {"id": "1"},
            "after": {"id": "1", "x": "2", "y": null}});
        let wanted = "\
2 changes, the newest first:
  at an unknown time  update, transaction 7, user ann
    UPDATE s.a SET x = 2
    by an unknown process
      x: 1 → 2
  at an unknown time  insert, transaction 7, user ann
    UPDATE s.a SET x = 2
    by an unknown process
      id: 1
      x: 1
      y: NULL

";
        assert_eq!(written(&[event(second), event(first)]), wanted);
    }

    #[test]
    fn a_time_without_a_watch_stands_between_two_changes_and_hides_the_value_before() {
        let row = "postgres://h:1/bank/s.a?id=1";
        let first = json!({"row": row, "operation": "insert", "after": {"id": "1", "x": "1"}});
        let second = json!({"row": row, "operation": "update", "before": {"id": "1"},
            "after": {"id": "1", "x": "2"}});
        let mut second = event(second);
        second.unwatched = vec![(0, 0)];
        let text = written(&[second, event(first)]);
        let gap = "      x: 2\n  not watched at an unknown time to at an unknown time: \
                   the row may have changed\n";
        assert!(text.contains(gap), "{text}");
    }

    #[test]
    fn old_changes_are_counted() {
        let change = json!({"row": "r", "operation": "delete", "before": {"id": "1"}});
        let text = written(&vec![event(change); FEW + 2]);
        assert!(
            text.contains("… and 2 older changes: --all lists them"),
            "{text}"
        );
        assert_eq!(text.matches("id: 1").count(), FEW);
    }
}
