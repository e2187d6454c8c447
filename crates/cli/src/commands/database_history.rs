//! The part of an answer that is about a table or a row of a database: its history.

use std::io::{self, Write};

use backstory_graph::model::{Activity, Certainty};
use backstory_query::{self as query, RowEvent, TableEvent, TableHistory, TableQuestion};
use backstory_vocabulary::Word;

use super::contents::store_contents;
use crate::args::lineage::LineageArgs;
use crate::current_store::CurrentStore;
use crate::error::Failure;
use crate::file_rows;
use crate::json::{self, Fields};
use crate::subject::{self, FileSubject, Reach};
use crate::text::table_history::unresolved;
use crate::text::tree::Drawing;
use crate::text::words::Direction;
use crate::text::{row_history, table_history};

/// The number of transactions of a table that precede its tree.
const FEW: usize = 3;
/// The number of transactions that used a column that are printed.
const SCREEN: usize = 10;
/// The history of a table with more versions is printed for `--column` only, because it takes the
/// facts about all transactions of a run.
const MANY: usize = 10_000;

/// The history of a row or a table.
pub enum DatabaseHistory {
    /// The changes of a row, the newest first.
    Row(Vec<RowEvent>),
    /// The transactions of a table, the newest first.
    Table(TableHistory),
}

/// The versions of a table or a row that a question means, and its history. If no record of a
/// database has them, they are looked for in stored files of SQLite.
pub fn table_subject(
    current: &mut CurrentStore,
    (table, args): (&str, &LineageArgs),
    run: Option<&str>,
    (direction, reach): (Direction, Reach),
) -> Result<(FileSubject, Option<DatabaseHistory>), Failure> {
    let key = args.key.as_deref();
    let has_rows = key.is_some() && direction == Direction::Of;
    let run = match run {
        Some(run) => current.store.run(run)?.map(|record| record.key),
        None => None,
    };
    let (mut found, history) = match subject::of_table(current, table, key, run) {
        Ok(mut found) => {
            let history = match has_rows {
                true => Some(DatabaseHistory::Row(query::row_history(
                    &current.store,
                    &found.versions,
                )?)),
                false => table_history(current, &found, args, direction)?,
            };
            let is_left_out = is_told(args, direction) && found.versions.len() > MANY;
            let left_out = is_left_out.then(|| left_out(table, found.versions.len()));
            found.notes.extend(left_out);
            (found, history)
        }
        Err(
            error @ (query::Error::NoTable(_)
            | query::Error::OtherTables(..)
            | query::Error::NoRow { .. }
            | query::Error::NoRows { .. }),
        ) => {
            store_contents(current);
            let rows = file_rows::find(current, table, key, run)?;
            if rows.versions.is_empty() {
                let reasons = [vec![error.to_string()], rows.notes].concat();
                return Err(Failure::not_found(reasons.join("; ")));
            }
            let has_notes = !rows.notes.is_empty();
            let found = FileSubject {
                versions: rows.versions,
                notes: Vec::from_iter(has_notes.then(|| rows.notes.join("; "))),
            };
            (found, has_rows.then_some(DatabaseHistory::Row(rows.events)))
        }
        Err(error) => return Err(error.into()),
    };
    if let (Some(column), None) = (&args.column, &history) {
        return Err(Failure::not_found(format!(
            "no recorded run knows which statements used column {column} of table {table}; \
             `backstory watch` records them"
        )));
    }
    if reach == Reach::Newest {
        found.versions.truncate(1);
    }
    Ok((found, history))
}

/// The transactions of a table. `None` if the question is not about them, or no run knows which
/// columns they used.
fn table_history(
    current: &CurrentStore,
    found: &FileSubject,
    args: &LineageArgs,
    direction: Direction,
) -> Result<Option<DatabaseHistory>, Failure> {
    let column = args.column.as_deref();
    let reads = direction == Direction::Uses;
    let is_short = is_told(args, direction) && found.versions.len() <= MANY;
    if args.key.is_some() || column.is_none() && !is_short {
        return Ok(None);
    }
    let most = match column {
        _ if args.json || args.all => usize::MAX,
        Some(_) => SCREEN,
        None => FEW,
    };
    let question = TableQuestion {
        column,
        reads,
        most,
    };
    let history = query::table_history(&current.store, &found.versions, question)?;
    if let (Some(column), Some(history)) = (column, &history)
        && history.events.is_empty()
    {
        return Err(Failure::not_found(nothing_used(history, column, reads)));
    }
    Ok(history.map(DatabaseHistory::Table))
}

/// True for a question whose answer begins with the transactions that changed the table.
fn is_told(args: &LineageArgs, direction: Direction) -> bool {
    let is_of_table = args.key.is_none() && args.column.is_none();
    is_of_table && direction == Direction::Of && args.tells_change()
}

/// The note of an answer without the history of a table.
fn left_out(table: &str, versions: usize) -> String {
    format!(
        "the history of {table} is left out, because it has {versions} versions: \
         --column COLUMN prints that of a column"
    )
}

/// The answer where no transaction is known to have used a column.
fn nothing_used(history: &TableHistory, column: &str, reads: bool) -> String {
    let verb = if reads { "read" } else { "wrote" };
    let table = &history.table;
    match history.unresolved {
        0 => format!("no recorded statement {verb} column {column} of {table}"),
        possible => format!(
            "no recorded statement is known to have {} column {column} of {table}; {}",
            if reads { "read" } else { "written" },
            unresolved(possible)
        ),
    }
}

impl DatabaseHistory {
    /// Writes the history as text, unless a tree alone is wanted.
    pub fn write(
        &self,
        args: &LineageArgs,
        drawing: Drawing<'_>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let (here, style) = (drawing.here, drawing.style);
        match self {
            _ if args.tree => Ok(()),
            DatabaseHistory::Row(events) => {
                row_history::write(events, drawing.all, here, style, out)
            }
            DatabaseHistory::Table(history) => {
                let reads = drawing.direction == Direction::Uses;
                let asked = (args.column.as_deref(), reads);
                table_history::write(history, asked, here, style, out)
            }
        }
    }

    /// Writes the history as a list of objects.
    pub fn objects(&self, out: &mut impl Write) -> io::Result<()> {
        match self {
            DatabaseHistory::Row(events) => json::objects(out, events, row_event),
            DatabaseHistory::Table(history) => json::objects(out, &history.events, table_event),
        }
    }
}

fn row_event(event: &RowEvent, fields: &mut Fields<'_>) {
    fields.bytes("run", Some(&event.run));
    fields.time("time", event.time);
    fields.written("change", &event.change.to_string());
    fields.written("transaction", &event.transaction.to_string());
    clients(&event.clients, fields);
    fields.objects("unwatched", event.unwatched.iter(), |(from, to), fields| {
        fields.time("from", *from);
        fields.time("to", *to);
    });
}

fn table_event(event: &TableEvent, fields: &mut Fields<'_>) {
    fields.bytes("run", Some(&event.run));
    fields.time("time", event.time);
    fields.bytes("certainty", Some(event.certainty.word()));
    fields.written("transaction", &event.transaction.to_string());
    let places: Vec<String> = event.statements.iter().map(usize::to_string).collect();
    fields.written("statements", &format!("[{}]", places.join(",")));
    clients(&event.clients, fields);
}

fn clients(clients: &[(Activity, Certainty)], fields: &mut Fields<'_>) {
    let mut certain = clients.iter().filter(|(_, how)| *how == Certainty::Seen);
    match certain.next() {
        Some((client, _)) => fields.object("client", |fields| process(client, fields)),
        None => fields.null("client"),
    }
    let possible = clients.iter();
    let possible = possible.filter(|(_, certainty)| *certainty == Certainty::Possible);
    fields.objects("possible_clients", possible, |(client, _), fields| {
        process(client, fields);
    });
}

fn process(process: &Activity, fields: &mut Fields<'_>) {
    fields.number("pid", process.pid);
    fields.bytes("exec_path", process.exec_path.as_ref());
    fields.list("argv", &process.argv);
    fields.bytes("cwd", Some(&process.cwd));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_the_catalog_did_not_explain_possibly_used_the_column() {
        let history = |unresolved| TableHistory {
            table: "public.a".to_owned(),
            events: Vec::new(),
            all: 0,
            unresolved,
        };
        assert_eq!(
            nothing_used(&history(0), "x", true),
            "no recorded statement read column x of public.a"
        );
        assert_eq!(
            nothing_used(&history(1), "x", false),
            "no recorded statement is known to have written column x of public.a; 1 transaction \
             possibly did: the catalog did not explain some of its names"
        );
    }

    #[test]
    fn an_answer_without_the_history_of_a_table_says_so() {
        assert_eq!(
            left_out("a", 10_001),
            "the history of a is left out, because it has 10001 versions: --column COLUMN prints \
             that of a column"
        );
    }
}
