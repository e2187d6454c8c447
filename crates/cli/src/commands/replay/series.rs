//! `replay --deep --request 3,5-9`: several requests of one run, each alone, one after the other.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use backstory_export::unfinished::CleanupPath;

use super::copies::Starts;
use super::report::Report;
use super::{Prepared, clear, deep, deep_report};
use crate::args::replay::ReplayArgs;
use crate::commands::{Outcome, answer};
use crate::error::complain;
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
    let (mut all, mut equal) = (0, 0);
    let mut values = Vec::new();
    for note in &prepared.plan.notes {
        complain(note);
    }
    // The program starts once for all of them, if its copies can stand for new starts.
    let start = own.join(START);
    fs::create_dir(&start)?;
    let leaving = CleanupPath::at(&start);
    *prepared.starts.borrow_mut() = Starts::shared(start.clone());
    let ranges = args.reconstruction.request.iter();
    for number in ranges.flat_map(|&(first, last)| first..=last) {
        let place = own.join(format!("request-{number}"));
        fs::create_dir(&place)?;
        let report = match prepared.once(args, Some(deep.only(number)), place) {
            Ok(report) => report,
            Err(failure) => {
                prepared.starts.borrow_mut().end();
                clear(&start);
                let _ = fs::remove_dir(own);
                return Err(failure);
            }
        };
        all += 1;
        equal += u64::from(report.is_identical());
        match args.json {
            true => values.push(Value::Object(report.fields())),
            false => tell(number, &report)?,
        }
        if !report.has_files() {
            clear(&report.directory);
        }
    }
    prepared.starts.borrow_mut().end();
    clear(&start);
    drop(leaving);
    let _ = fs::remove_dir(own);
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
