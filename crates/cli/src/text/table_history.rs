//! The transactions that changed or read a table of a watched database, a paragraph for each.
//!
//! In: the transactions, the newest first. Out: for each its time, its statements with the columns
//! that they used, and the client's command.

use std::io::{self, Write};

use backstory_graph::model::Certainty;
use backstory_query::{TableEvent, TableHistory};
use serde_json::Value;

use super::change_statements::{shortened, statement_text};
use super::row_history::{by_client, transaction_words};
use super::statement_columns;
use super::style::{Role, Style};
use super::when::moment;
use super::words::counted;

/// The number of statements of a transaction that are printed.
const STATEMENTS: usize = 3;

/// Writes the transactions. `column`: they are those that used it. `reads`: they read.
pub fn write(
    history: &TableHistory,
    (column, reads): (Option<&str>, bool),
    here: &[u8],
    style: Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let count = counted(history.all, "transaction", "transactions");
    let verb = match (reads, column) {
        (true, _) => "read",
        (false, Some(_)) => "wrote",
        (false, None) => "changed",
    };
    let what = column.map_or_else(String::new, |column| format!("{column} of "));
    writeln!(
        out,
        "{count} {verb} {what}{}, the newest first:",
        style.paint(Role::Subject, &history.table)
    )?;
    for event in &history.events {
        write_event(event, &history.table, here, style, out)?;
    }
    let left = history.all - history.events.len();
    if left > 0 {
        let more = counted(left, "older transaction", "older transactions");
        let note = format!("  … and {more}: --all lists them");
        writeln!(out, "{}", style.paint(Role::Dim, &note))?;
    }
    if history.unresolved > 0 {
        let note = format!("  {}", unresolved(history.unresolved));
        writeln!(out, "{}", style.paint(Role::Dim, &note))?;
    }
    writeln!(out)
}

/// The note about other transactions that possibly used a column.
pub fn unresolved(transactions: usize) -> String {
    let count = counted(transactions, "transaction", "transactions");
    let whose = if transactions == 1 { "its" } else { "their" };
    format!("{count} possibly did: the catalog did not explain some of {whose} names")
}

fn write_event(
    event: &TableEvent,
    table: &str,
    here: &[u8],
    style: Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let possibly = match event.certainty {
        Certainty::Seen => "",
        Certainty::Possible => ", possibly",
    };
    let words = transaction_words(&event.transaction);
    writeln!(out, "  {}  {words}{possibly}", moment(event.time))?;
    let all = event.transaction["statements"].as_array();
    let all: Vec<&Value> = all.into_iter().flatten().collect();
    let using: Vec<&Value> = event
        .statements
        .iter()
        .filter_map(|at| all.get(*at).copied())
        .collect();
    // `CREATE TABLE` and `DELETE` write no single column. Which of many statements it was is not
    // known then.
    let knows_columns = !using.is_empty();
    let using = match knows_columns || all.len() > STATEMENTS {
        true => using,
        false => all,
    };
    for statement in using.iter().take(STATEMENTS) {
        let text = statement_text(statement).unwrap_or_default();
        writeln!(out, "    {}", style.paint(Role::Command, &shortened(&text)))?;
        let columns = statement_columns::line(&statement["columns"], table);
        if let Some(line) = columns.filter(|_| knows_columns) {
            writeln!(out, "      {}", style.paint(Role::Dim, &line))?;
        }
    }
    let more = using.len().saturating_sub(STATEMENTS);
    if more > 0 {
        let note = format!(
            "… and {}",
            counted(more, "more statement", "more statements")
        );
        writeln!(out, "    {}", style.paint(Role::Dim, &note))?;
    }
    let by = by_client(&event.clients, here);
    writeln!(out, "    {}", style.paint(Role::Dim, &by))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_transaction_shows_its_statements_with_their_columns() {
        let statements = [
            json!({"text": "SELECT 1", "columns": {}}),
            json!({"text": "UPDATE a\n SET x = y;",
                "columns": {"written": ["public.a.x"], "read": ["public.a.y"]}}),
        ];
        let event = TableEvent {
            run: "r1".to_owned(),
            time: 0,
            certainty: Certainty::Possible,
            transaction: json!({"number": 7, "user": "ann", "statements": statements}),
            statements: vec![1],
            clients: Vec::new(),
        };
        let history = TableHistory {
            table: "public.a".to_owned(),
            events: vec![event],
            all: 3,
            unresolved: 2,
        };
        let mut out = Vec::new();
        let asked = (Some("x"), false);
        write(&history, asked, b"/", Style::PLAIN, &mut out).unwrap();
        let wanted = "\
3 transactions wrote x of public.a, the newest first:
  at an unknown time  transaction 7, user ann, possibly
    UPDATE a SET x = y
      wrote x; read y
    by an unknown process
  … and 2 older transactions: --all lists them
  2 transactions possibly did: the catalog did not explain some of their names

";
        assert_eq!(String::from_utf8(out).unwrap(), wanted);
    }

    #[test]
    fn a_transaction_that_used_no_column_shows_its_statements() {
        let statements = [json!({"text": "CREATE TABLE a (x int)", "columns": {}})];
        let event = TableEvent {
            run: "r1".to_owned(),
            time: 0,
            certainty: Certainty::Seen,
            transaction: json!({"user": "ann", "statements": statements}),
            statements: Vec::new(),
            clients: Vec::new(),
        };
        let mut out = Vec::new();
        write_event(&event, "public.a", b"/", Style::PLAIN, &mut out).unwrap();
        let wanted = "  at an unknown time  user ann
    CREATE TABLE a (x int)
    by an unknown process
";
        assert_eq!(String::from_utf8(out).unwrap(), wanted);
    }
}
