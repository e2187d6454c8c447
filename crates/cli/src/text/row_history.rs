//! The history of a row of a watched database, one paragraph for each change.
//!
//! In: the changes, the newest first. Out: for each its time, its transaction, the statement that
//! made it, the client's command, and the columns that it changed.

use std::io::{self, Write};

use backstory_graph::model::{Activity, Certainty};
use backstory_query::RowEvent;
use backstory_workflow::paths::{base_name, is_system};
use serde_json::{Map, Value};

use super::change_statements::{shortened, write_statements};
use super::shell::{Call, SHORT};
use super::style::{Role, Style};
use super::when::moment;
use super::words::counted;

/// The number of changes that are printed, unless all are wanted.
const FEW: usize = 8;
/// The number of times without a watch that are printed between two changes.
const GAPS: usize = 3;

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
        let newer = at.checked_sub(1).and_then(|newer| events.get(newer));
        write_statements(event, newer, style, out)?;
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
        let first = json!({"row": row, "operation": "insert", "statement": 1,
            "after": {"id": "1", "x": "1", "y": null}});
        let second = json!({"row": row, "operation": "update", "before": {"id": "1"},
            "statement": 1, "after": {"id": "1", "x": "2", "y": null}});
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
    fn a_change_has_its_statement_and_several_possible_ones_are_listed_once() {
        let changed = |statement: Value, number: u32| {
            let statements: Vec<Value> = ["x", "y"]
                .map(
                    |column| json!({"text": format!("UPDATE a SET {column} = 1"), "writes": ["a"]}),
                )
                .into();
            let transaction = json!({"number": number, "statements": statements, "count": 9});
            RowEvent {
                transaction,
                ..event(
                    json!({"row": "postgres://h:1/bank/s.a?id=1", "operation": "update",
                    "statement": statement}),
                )
            }
        };
        let (x, y) = ("    UPDATE a SET x = 1\n", "    UPDATE a SET y = 1\n");
        let text = written(&[changed(json!(1), 7), changed(json!(0), 7)]);
        let places = [x, y].map(|line| text.match_indices(line).map(|(at, _)| at).collect());
        let [first, second]: [Vec<usize>; 2] = places;
        assert!(
            first.len() == 1 && second.len() == 1 && second < first,
            "{text}"
        );
        let text = written(&[changed(json!(8), 7)]);
        assert!(text.contains("    statement 9 of 9, which"), "{text}");
        let none = || changed(Value::Null, 7);
        let text = written(&[none(), none(), changed(Value::Null, 6)]);
        let label = "possibly by one of these statements, or another one of the transaction:";
        let listed = format!("    {label}\n{x}{y}");
        assert_eq!(text.matches(&listed).count(), 2, "{text}");
        let again = text.matches("    possibly by one of the same statements\n");
        assert_eq!(again.count(), 1, "{text}");
    }

    #[test]
    fn the_only_statement_that_names_the_table_is_possible_among_others() {
        let change = json!({"row": "postgres://h:1/bank/s.a?id=1", "operation": "update"});
        let of = |statement: Value| {
            let mut event = event(change.clone());
            event.transaction["statements"][0] = statement;
            written(&[event])
        };
        let update = "\n    UPDATE s.a SET x = 2\n";
        let begin = of(json!({"text": "BEGIN;", "writes": []}));
        assert!(
            begin.contains(&format!("    possibly by:{update}")),
            "{begin}"
        );
        let execute = of(json!({"text": "EXECUTE up(1)", "writes": []}));
        let label = "    possibly by this statement, or another one of the transaction:";
        assert!(execute.contains(&format!("{label}{update}")), "{execute}");
        let mut alone = event(change);
        alone.transaction["statements"] = json!([{"text": "EXECUTE up(1)", "writes": []}]);
        let text = written(&[alone]);
        assert!(
            text.contains("ann\n    EXECUTE up(1)\n") && !text.contains("possibly"),
            "{text}"
        );
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
