//! `compare`: several runs in a table, with the rows first in which they differ.

use backstory_ordering::SmallSort;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use backstory_query::answer::{Access, RunSummary};
use backstory_query::{self as query, RunResult};
use backstory_store::{AnnotationKind, RunAnnotations};
use backstory_workflow::paths::relative;

use super::contents::store_contents;
use super::file_choice::OwnFilter;
use super::run_summary::{ending, number_or_text};
use super::{Outcome, answer, log};
use crate::args::search::CompareArgs;
use crate::current_store::CurrentStore;
use crate::error::{Failure, one_line};
use crate::json::{self, Value};
use crate::text::csv;
use crate::text::line::{columns, cut, width};
use crate::text::shell;
use crate::text::style::{Role, Style};
use crate::text::when;
use crate::text::words::counted;

/// Runs that are compared if none is named and no number is given.
const MOST: usize = 10;

/// The widest column of a terminal's table.
const WIDEST: usize = 40;

/// The groups of rows, in their order. The words are part of the JSON form.
const GROUPS: [&str; 5] = ["metric", "parameter", "tag", "run", "result"];

/// One row: a value for each run that has it.
struct Row {
    group: usize,
    name: String,
    values: Vec<Option<String>>,
    /// A value is not known. It may differ from another that looks the same.
    is_unsure: bool,
}

impl Row {
    fn differs(&self) -> bool {
        self.values.windows(2).any(|pair| pair[0] != pair[1])
    }

    /// False for a row in which all runs agree.
    fn is_of_interest(&self) -> bool {
        self.differs() || self.is_unsure
    }
}

/// Prints the table.
pub fn run(args: CompareArgs, store: Option<&Path>) -> Outcome {
    let mut filter = log::filter(&args.which)?;
    filter.most = filter.most.or(Some(MOST));
    let mut current = CurrentStore::open(store)?;
    store_contents(&mut current);
    let runs = match args.runs.is_empty() {
        true => query::runs_where(&current.store, &filter)?,
        false => {
            let named = args.runs.iter().map(|run| {
                let id = current.run(Some(run))?;
                Ok(query::facts(&current.store, &id)?.summary)
            });
            named.collect::<Result<Vec<RunSummary>, Failure>>()?
        }
    };
    if runs.is_empty() {
        return Err(Failure::not_found("no run meets the conditions"));
    }
    let mut rows = rows(&current, &runs)?;
    rows.sort_small_by(|a, b| {
        let key = |row: &Row| (!row.is_of_interest(), row.group);
        key(a).cmp(&key(b))
    });
    answer(|out| match (args.json, args.csv) {
        (true, _) => json(&runs, &rows, out),
        (_, true) => comma_separated(&runs, &rows, out),
        // In a table of one run no rows differ.
        _ => table(
            &runs,
            &rows,
            args.all || runs.len() == 1,
            Style::of_stdout(),
            out,
        ),
    })
}

/// All rows, by group and name.
fn rows(current: &CurrentStore, runs: &[RunSummary]) -> Result<Vec<Row>, Failure> {
    let mut all: BTreeMap<(usize, String), Vec<Option<String>>> = BTreeMap::new();
    let mut results: BTreeMap<String, Vec<Option<RunResult>>> = BTreeMap::new();
    for (at, run) in runs.iter().enumerate() {
        let mut set = |group: usize, name: String, value: String| {
            let row = all
                .entry((group, name))
                .or_insert_with(|| vec![None; runs.len()]);
            row[at] = Some(value);
        };
        for one in current.store.annotations(&run.id)? {
            let value = one.value.clone().unwrap_or_default();
            match one.kind {
                AnnotationKind::Metric => set(0, one.key, value),
                AnnotationKind::Parameter => set(1, one.key, value),
                AnnotationKind::Tag => set(2, one.key, value),
                // It is about the run's repetition, and no property of the run.
                AnnotationKind::Replay | AnnotationKind::Remote => {}
                AnnotationKind::Checkout => {
                    if let Some(checkout) = query::Checkout::of(&one) {
                        set(
                            3,
                            format!("git {}", one.key),
                            crate::checkout::text(&checkout),
                        );
                    }
                }
            }
        }
        let command = shell::words(run.command.iter().map(|word| &word[..]));
        set(3, "command".into(), command);
        set(3, "directory".into(), shell::quote(&run.cwd));
        set(3, "host".into(), run.host.clone());
        set(3, "status".into(), ending(run));
        set(3, "started".into(), when::moment(run.started));
        if let Some(ended) = run.ended {
            set(3, "took".into(), when::duration(ended - run.started));
        }
        let own = OwnFilter::of(current, &run.id)?;
        let own = |path: &[u8]| own.is_own(path, &[Access::Write]);
        for result in query::results(&current.store, &run.id, &own)? {
            let name = shell::quote(relative(&result.path, &run.cwd));
            let row = results
                .entry(name)
                .or_insert_with(|| vec![None; runs.len()]);
            row[at] = Some(result);
        }
    }
    let mut rows: Vec<Row> = all
        .into_iter()
        .map(|((group, name), values)| Row {
            group,
            name,
            values,
            is_unsure: false,
        })
        .collect();
    rows.extend(results.into_iter().map(|(name, row)| Row {
        group: 4,
        name,
        values: result_values(&row),
        is_unsure: row.iter().flatten().any(|result| result.digest.is_none()),
    }));
    Ok(rows)
}

/// The digests of one result in each run. If one is not known, the sizes: a digest and a size
/// cannot be compared. Equal sizes are no equal contents, so an unknown content is said to be one.
fn result_values(row: &[Option<RunResult>]) -> Vec<Option<String>> {
    let by_digest = row.iter().flatten().all(|result| result.digest.is_some());
    let bytes = |size: i64| counted(usize::try_from(size).unwrap_or(0), "byte", "bytes");
    let value = |result: &RunResult| match (result.digest, result.size) {
        (Some(digest), _) if by_digest => digest.to_string()[..12].to_owned(),
        (Some(_), Some(size)) => bytes(size),
        (None, Some(size)) => format!("{}, content not known", bytes(size)),
        _ => "not known".to_owned(),
    };
    row.iter()
        .map(|result| result.as_ref().map(value))
        .collect()
}

fn json(runs: &[RunSummary], rows: &[Row], out: &mut impl Write) -> io::Result<()> {
    let row = |row: &Row| {
        let values = row
            .values
            .iter()
            .map(|value| number_or_text(value.as_deref()));
        Value::Object(vec![
            ("group", GROUPS[row.group].into()),
            ("name", (&row.name).into()),
            ("differs", row.differs().into()),
            ("values", Value::Array(values.collect())),
        ])
    };
    json::object(
        out,
        vec![
            ("runs", Value::array(runs.iter().map(|run| &run.id))),
            (
                "names",
                Value::array(runs.iter().map(|run| run.name.as_ref())),
            ),
            ("rows", Value::Array(rows.iter().map(row).collect())),
        ],
    )
}

fn comma_separated(runs: &[RunSummary], rows: &[Row], out: &mut impl Write) -> io::Result<()> {
    let ids = runs.iter().map(|run| run.id.as_str());
    csv::row(["group", "name"].into_iter().chain(ids), out)?;
    for row in rows {
        let values = row.values.iter();
        let values = values.map(|value| value.as_deref().unwrap_or_default());
        csv::row(
            [GROUPS[row.group], &row.name].into_iter().chain(values),
            out,
        )?;
    }
    Ok(())
}

/// A column for each run, a row for each name. Without `all`, rows in which all agree are counted.
fn table(
    runs: &[RunSummary],
    rows: &[Row],
    all: bool,
    style: Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let shown: Vec<&Row> = rows
        .iter()
        .filter(|row| all || row.is_of_interest())
        .collect();
    let head = |run: &RunSummary| match &run.name {
        Some(name) => format!("{} {}", run.id, one_line(name)),
        None => run.id.clone(),
    };
    let text = |value: &Option<String>| value.as_deref().map_or("-".to_owned(), one_line);
    let widest = columns().map(|_| WIDEST);
    let limit = |wide: usize| widest.map_or(wide, |widest| wide.min(widest));
    let first = limit(shown.iter().map(|row| width(&row.name)).max().unwrap_or(0));
    let wide: Vec<usize> = (0..runs.len())
        .map(|at| {
            let values = shown.iter().map(|row| width(&text(&row.values[at])));
            limit(values.chain([width(&head(&runs[at]))]).max().unwrap_or(0))
        })
        .collect();
    let padded = |text: &str, wide: usize| {
        let text = cut(text, wide);
        let blanks = wide - width(&text);
        format!("{text}{}", " ".repeat(blanks))
    };
    let mut line = padded("", first + 11);
    for (run, wide) in runs.iter().zip(&wide) {
        line.push_str(&format!("  {}", padded(&head(run), *wide)));
    }
    writeln!(out, "{}", style.paint(Role::Subject, line.trim_end()))?;
    for row in shown {
        let lead = format!("{:<9}  {}", GROUPS[row.group], padded(&row.name, first));
        let mut line = String::new();
        for (value, wide) in row.values.iter().zip(&wide) {
            line.push_str(&format!("  {}", padded(&text(value), *wide)));
        }
        writeln!(out, "{}{}", style.paint(Role::Dim, &lead), line.trim_end())?;
    }
    let same = rows.iter().filter(|row| !row.is_of_interest()).count();
    if same > 0 && !all {
        let rows = counted(same, "row", "rows");
        let note = format!("… and {rows} in which all agree (--all lists them)");
        writeln!(out, "{}", style.paint(Role::Dim, &note))?;
    }
    Ok(())
}
