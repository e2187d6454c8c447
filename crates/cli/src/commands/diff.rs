//! `diff`: compares two runs, or how two versions of a file were made.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use backstory_query::answer::RunDetails;
use backstory_replay::diff::{self, Diff, DiffSubject, Difference, DifferenceKind};

use super::{Outcome, answer};
use crate::args::lineage::DiffArgs;
use crate::contents_writer;
use crate::current_store::CurrentStore;
use crate::error::{Failure, chain, complain};
use crate::index::Busy;
use crate::json::{self, Value};
use crate::text::shell;
use crate::text::style::{Role, Style};
use crate::text::when;

/// Prints the differences; exits with 1 if there are any.
pub fn run(args: DiffArgs, store: Option<&Path>) -> Outcome {
    let mut current = CurrentStore::open(store)?;
    store_contents(&mut current);
    let (a, b) = match (&args.b, args.within.as_slice()) {
        (Some(b), []) => (subject(&current, &args.a)?, subject(&current, b)?),
        (None, [x, y]) => {
            let path = || PathBuf::from(&args.a);
            let (x, y) = (current.run(Some(x))?, current.run(Some(y))?);
            (
                DiffSubject::File(path(), Some(x)),
                DiffSubject::File(path(), Some(y)),
            )
        }
        _ => {
            return Err(Failure::misuse(
                "give two runs, two versions PATH@RUN, or PATH --in RUN RUN (see `backstory diff --help`)",
            ));
        }
    };
    let diff = diff::diff(&current.store, &a, &b)?;
    answer(|out| match args.json {
        true => json::object(out, fields(&diff)),
        false => text(&diff, Style::of_stdout(), out),
    })?;
    Ok(u8::from(!diff.differences.is_empty()))
}

/// Stores pending contents now. A comparison or a replay needs them, and they are otherwise stored
/// in the background.
pub fn store_contents(current: &mut CurrentStore) {
    if let Err(error) =
        contents_writer::bring_up_to_date(&current.home, &mut current.store, Busy::Wait)
    {
        complain(&format!("cannot store all contents: {}", chain(&error)));
    }
}

/// `PATH@RUN`, a run, else a file.
fn subject(current: &CurrentStore, wanted: &OsStr) -> Result<DiffSubject, Failure> {
    let bytes = wanted.as_bytes();
    if let Some(at) = bytes
        .iter()
        .rposition(|&byte| byte == b'@')
        .filter(|&at| at > 0)
        && let Ok(run) = std::str::from_utf8(&bytes[at + 1..])
        && let Ok(run) = current.run(Some(run).filter(|run| !run.is_empty()))
    {
        return Ok(DiffSubject::File(
            OsStr::from_bytes(&bytes[..at]).into(),
            Some(run),
        ));
    }
    let path = Path::new(wanted);
    let name = wanted.to_str().filter(|name| !name.contains('/'));
    match name.map(|name| current.run(Some(name))) {
        Some(Ok(run)) => Ok(DiffSubject::Run(run)),
        Some(Err(failure)) if !path.exists() => Err(failure),
        _ => Ok(DiffSubject::File(path.to_owned(), None)),
    }
}

fn fields(diff: &Diff) -> Vec<(&'static str, Value)> {
    let runs = |runs: &[RunDetails]| Value::array(runs.iter().map(|run| &run.summary.id));
    vec![
        ("same", diff.differences.is_empty().into()),
        ("a", runs(&diff.a)),
        ("b", runs(&diff.b)),
        (
            "earliest",
            diff.differences.first().map_or(Value::Null, object),
        ),
        (
            "differences",
            Value::Array(diff.differences.iter().map(object).collect()),
        ),
        ("same_outputs", names(&diff.same_outputs)),
        ("unknown", names(&diff.unknown)),
    ]
}

fn names(names: &[Vec<u8>]) -> Value {
    Value::array(names.iter().map(Vec::as_slice))
}

fn object(difference: &Difference) -> Value {
    Value::Object(vec![
        ("kind", difference.kind.word().into()),
        ("of", difference.of.as_slice().into()),
        ("a", difference.a.as_deref().into()),
        ("b", difference.b.as_deref().into()),
        ("after_ns", difference.at.into()),
        ("fed_by", Value::array(difference.fed_by.iter().copied())),
    ])
}

fn text(diff: &Diff, style: Style, out: &mut impl Write) -> io::Result<()> {
    for (side, runs) in [("a", &diff.a), ("b", &diff.b)] {
        for run in runs {
            let run = &run.summary;
            let command: Vec<String> = run.command.iter().map(|arg| shell::quote(arg)).collect();
            let head = format!("{side}  run {}  {}", run.id, when::moment(run.started));
            writeln!(
                out,
                "{}  {}",
                style.paint(Role::Dim, &head),
                style.paint(Role::Command, &command.join(" "))
            )?;
        }
    }
    match diff.differences.split_first() {
        None => writeln!(out, "{}", style.paint(Role::Good, "no difference"))?,
        Some((first, rest)) => {
            writeln!(out, "\n{}", style.paint(Role::Subject, "differs first in"))?;
            lines(diff, first, style, out)?;
            if !rest.is_empty() {
                writeln!(out, "{}", style.paint(Role::Subject, "then in"))?;
            }
            for difference in rest {
                lines(diff, difference, style, out)?;
            }
        }
    }
    if !diff.same_outputs.is_empty() {
        match diff.same_outputs.len() {
            1 => writeln!(out, "1 output is the same")?,
            many => writeln!(out, "{many} outputs are the same")?,
        }
    }
    if !diff.unknown.is_empty() {
        let count = diff.unknown.len();
        let first = shell::quote(&diff.unknown[0]);
        writeln!(
            out,
            "{count} files could not be compared, because their contents are not stored ({first} …): record with --contents=lazy"
        )?;
    }
    Ok(())
}

fn lines(
    diff: &Diff,
    difference: &Difference,
    style: Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let of = shell::quote(&difference.of);
    writeln!(
        out,
        "  {} {of}",
        style.paint(Role::Dim, &format!("{:<11}", difference.kind.word()))
    )?;
    for (side, role, value) in [
        ("a", Role::Bad, &difference.a),
        ("b", Role::Good, &difference.b),
    ] {
        let shown = value
            .as_ref()
            .map_or("–".to_owned(), |value| shell::quote(value));
        writeln!(
            out,
            "    {side} {}",
            style.paint(role, shown.trim_matches('\''))
        )?;
    }
    if difference.kind == DifferenceKind::Output {
        let named = |&at: &usize| {
            let from = &diff.differences[at];
            format!("{} {}", from.kind.word(), shell::quote(&from.of))
        };
        let mut fed: Vec<String> = difference.fed_by.iter().take(5).map(named).collect();
        match difference.fed_by.len() {
            0 if diff.differences.iter().any(Difference::is_general) => {
                fed.push(
                    "no recorded input: the environment, the machine, the time or random numbers"
                        .to_owned(),
                );
            }
            0 => fed
                .push("no recorded input: the time, random numbers or a process number".to_owned()),
            more if more > 5 => fed.push(format!("{} more", more - 5)),
            _ => {}
        }
        writeln!(
            out,
            "    {} {}",
            style.paint(Role::Dim, "fed by"),
            fed.join(", ")
        )?;
    }
    Ok(())
}

impl From<backstory_replay::Error> for Failure {
    fn from(error: backstory_replay::Error) -> Failure {
        use backstory_replay::Error;
        let line = chain(&error);
        match error {
            Error::Query(error) => error.into(),
            Error::Store(error) => error.into(),
            Error::Workflow(error) => error.into(),
            Error::Currency(error) => error.into(),
            _ => Failure::not_found(line),
        }
    }
}
