//! `replay --deep --request 3,5-9`: several requests of one run, each alone, one after the other.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use backstory_export::unfinished::CleanupPath;

use super::copies::Starts;
use super::report::Report;
use super::{Prepared, clear, deep, deep_report};
use crate::args::replay::ReplayArgs;
use crate::commands::{Outcome, answer};
use crate::error::{Failure, complain};
use crate::json::{self, Value};
use crate::text::paths::shown;
use crate::text::style::Style;

/// The directory of the start that all requests share.
const START: &str = "start";

/// Runs the requests. A line tells of each as soon as it has run, or all are members of an array
/// of JSON. Exits with 1 if an output differs.
pub fn run(
    prepared: &Prepared,
    deep: &deep::DeepRequest,
    args: &ReplayArgs,
    own: &Path,
) -> Outcome {
    for note in &prepared.plan.notes {
        complain(note);
    }
    // The program starts once for all of them, if its copies can stand for new starts.
    let start = own.join(START);
    fs::create_dir(&start)?;
    let leaving = CleanupPath::at(&start);
    *prepared.starts.borrow_mut() = Starts::shared(start.clone());
    let mut results = Results::default();
    let done = each(prepared, deep, args, own, &mut results);
    prepared.starts.borrow_mut().end();
    clear(&start);
    drop(leaving);
    let _ = fs::remove_dir(own);
    done?;
    let Results { all, equal, values } = results;
    let mut report = io::stderr().lock();
    match args.json {
        true => drop(answer(|out| json::lines(out, values))?),
        false => writeln!(report, "{equal} of {all} requests are equal")?,
    }
    if own.exists() {
        writeln!(report, "outputs are below {}", own.display())?;
    }
    Ok(u8::from(equal < all))
}

/// The results of a series.
#[derive(Default)]
struct Results {
    all: usize,
    equal: usize,
    /// With `--json`, the report of each request.
    values: Vec<Value>,
}

/// Runs each of the requests, once.
fn each(
    prepared: &Prepared,
    deep: &deep::DeepRequest,
    args: &ReplayArgs,
    own: &Path,
    results: &mut Results,
) -> Result<(), Failure> {
    let mut known = HashSet::new();
    let ranges = args.reconstruction.request.iter();
    let numbers = ranges.flat_map(|&(first, last)| first..=last);
    for number in numbers.filter(|number| known.insert(*number)) {
        let place = own.join(format!("request-{number}"));
        fs::create_dir(&place)?;
        let report = prepared.once(args, Some(deep.only(number)), place)?;
        results.all += 1;
        results.equal += usize::from(report.is_identical());
        match args.json {
            true => results.values.push(Value::Object(report.fields())),
            false => tell(number, &report)?,
        }
        if !report.has_files() {
            clear(&report.directory);
        }
    }
    Ok(())
}

/// Prints the result of one request in one line, and the files that differ.
fn tell(number: usize, report: &Report<'_>) -> io::Result<()> {
    let Some(reconstruction) = &report.played.reconstruction else {
        return Ok(());
    };
    let mut out = io::stderr().lock();
    write!(out, "{number:>6}  ")?;
    let style = Style::of_stderr();
    deep_report::line(reconstruction, style, &mut out)?;
    deep_report::whole_reports(reconstruction, style, &mut out)?;
    for path in report.different() {
        writeln!(out, "        different: {}", shown(path))?;
    }
    Ok(())
}
