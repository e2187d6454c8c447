//! `query`: answers a question in SQL.

mod forms;

use std::io::{self, Read, Write};
use std::path::Path;

use backstory_sql::{INSPECTED_VIEWS, Inspections, VIEWS, ask};

use super::contents::store_contents;
use super::{Outcome, answer};
use crate::args::query::QueryArgs;
use crate::current_store::CurrentStore;
use crate::error::{Failure, one_line};
use crate::json::{self, Value};
use crate::text::similar::suggestion;
use crate::text::style::{Role, Style};
use crate::version_inspections::VersionInspections;
use forms::{CsvRows, Ended, JsonRows, TableRows};

/// Characters of a question that a message shows before and behind a mistake.
const CONTEXT: usize = 24;

/// Answers the question, or lists the tables.
pub fn run(mut args: QueryArgs, store: Option<&Path>) -> Outcome {
    if let Some(lake) = args.lake.take() {
        return super::lake::ask(args, lake);
    }
    if args.schema {
        return answer(|out| match args.json {
            true => json::lines(out, schema_objects()),
            false => schema(Style::of_stdout(), out),
        });
    }
    let question = question(&args)?;
    // SQLite keeps its tables, and they keep the store, until the process ends.
    let mut current = CurrentStore::open(store)?;
    if asks_inspectors(&question) {
        store_contents(&mut current);
    }
    let current: &'static CurrentStore = Box::leak(Box::new(current));
    let inspections = Box::leak(Box::new(VersionInspections::new(current)));
    let mut failed = None;
    let outcome = answer(
        |out| match answered(&args, &question, (current, inspections), out) {
            Ok(()) => Ok(()),
            Err(Ended::Unwritable(error)) => Err(error),
            Err(Ended::Failed(error)) => {
                failed = Some(failure(&error, &question));
                Ok(())
            }
        },
    );
    current.leave_the_rest();
    failed.map_or(outcome, Err)
}

fn question(args: &QueryArgs) -> Result<String, Failure> {
    let given = args.sql.as_deref().unwrap_or_default();
    if given != "-" {
        return Ok(given.to_owned());
    }
    let mut text = String::new();
    match io::stdin().read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(error) => Err(Failure::misuse(format!(
            "cannot read the question from standard input: {error}"
        ))),
    }
}

/// True if a question may read a view of inspectors. It then waits for contents, which are
/// otherwise stored in the background.
fn asks_inspectors(question: &str) -> bool {
    let question = question.to_ascii_lowercase();
    let mut words = question.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
    words.any(|word| INSPECTED_VIEWS.contains(&word))
}

fn answered(
    args: &QueryArgs,
    question: &str,
    (current, inspections): (&'static CurrentStore, &'static VersionInspections<'static>),
    out: &mut impl Write,
) -> Result<(), Ended> {
    let limits = args.bounds.limits();
    let store = &*current.store;
    let inspections: Option<&dyn Inspections> = Some(inspections);
    match (args.json, args.csv) {
        (true, _) => {
            let mut rows = JsonRows::new(out);
            ask(store, inspections, question, limits, &mut rows)?;
            rows.end()?;
        }
        (_, true) => ask(store, inspections, question, limits, &mut CsvRows::new(out))?,
        _ => {
            let mut rows = TableRows::new(Style::of_stdout(), out);
            ask(store, inspections, question, limits, &mut rows)?;
            rows.end()?;
        }
    }
    Ok(())
}

fn failure(error: &backstory_sql::Error, question: &str) -> Failure {
    if !error.is_misuse() {
        return Failure::not_found(crate::error::chain(error));
    }
    let near = match error {
        backstory_sql::Error::Syntax { at: Some(at), .. } => near(question, *at),
        _ => String::new(),
    };
    let error = error.to_string();
    let meant = meant(&error);
    Failure::misuse(format!(
        "{error}{near}{meant}; `backstory query --schema` lists the tables"
    ))
}

/// The table or column that SQLite does not find, and that was probably meant.
fn meant(error: &str) -> String {
    if let Some(table) = error.strip_prefix("no such table: ") {
        return suggestion(table, VIEWS.iter().map(|view| view.name));
    }
    let Some(column) = error.strip_prefix("no such column: ") else {
        return String::new();
    };
    let column = column.rsplit('.').next().unwrap_or_default();
    let columns = VIEWS.iter().flat_map(|view| view.columns);
    suggestion(column, columns.map(|column| column.name))
}

/// Where a mistake is: the line, the column, and the text around it.
fn near(question: &str, at: usize) -> String {
    let before = question.get(..at).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    let rest: String = question
        .chars()
        .skip(before.chars().count())
        .take(CONTEXT)
        .collect();
    format!(" (line {line}, column {column}: {})", one_line(&rest))
}

/// The tables and their columns as JSON.
fn schema_objects() -> impl Iterator<Item = Value> {
    let columns = |view: &'static backstory_sql::View| {
        view.columns.iter().map(move |column| {
            Value::Object(vec![
                ("table", view.name.into()),
                ("column", column.name.into()),
                ("type", column.kind.word().into()),
                ("key", column.key.is_some().into()),
                ("hidden", column.hidden.into()),
                ("about", column.about.into()),
            ])
        })
    };
    VIEWS.iter().flat_map(columns)
}

fn schema(style: Style, out: &mut impl Write) -> io::Result<()> {
    for (at, view) in VIEWS.iter().enumerate() {
        let gap = if at == 0 { "" } else { "\n" };
        let name = style.paint(Role::Subject, view.name);
        writeln!(out, "{gap}{name}  {}", view.about)?;
        for column in view.columns.iter().filter(|column| !column.hidden) {
            let key = if column.key.is_some() { "key" } else { "" };
            let kind = column.kind.word();
            writeln!(
                out,
                "  {:<14} {kind:<9} {key:<4} {}",
                column.name, column.about
            )?;
        }
    }
    Ok(())
}
