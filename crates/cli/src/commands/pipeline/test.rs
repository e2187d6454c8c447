//! `pipeline test`: the effect of the filters on recorded runs. Nothing is changed.
//!
//! In: the logs of runs. Out: how many files and processes each filter takes or changes, and some
//! of them. Counts come first.

use std::io::{self, Write};
use std::path::Path;

use backstory_pipeline::{FilterReport, PipelineReport};
use backstory_store::GraphStore;

use super::{Outcome, answer};
use crate::args::pipeline::PipelineTestArgs;
use crate::current_store::CurrentStore;
use crate::error::{Failure, complain, one_line};
use crate::index;
use crate::json::{self, Value};
use crate::pipeline_file::{PipelineFiles, effect, report_fields};
use crate::text::paths::shown;
use crate::text::words::counted;

/// Applies the filters.
pub fn run(args: &PipelineTestArgs, store: Option<&Path>) -> Outcome {
    let current = CurrentStore::open(store)?;
    let files = PipelineFiles::load(&current.home);
    files.warnings.iter().for_each(|warning| complain(warning));
    let Some(pipeline) = &files.pipeline else {
        let failure = "there is no filter; `backstory pipeline add` adds one";
        return Err(Failure::not_found(failure));
    };
    let runs = match args.last {
        None => vec![current.run(args.run.as_deref())?],
        Some(most) => {
            let all = current.store.runs()?.into_iter().take(most);
            all.map(|run| run.header.id).collect()
        }
    };
    let mut tested = Vec::new();
    for run in &runs {
        match index::filter_log(&current.home, run, &*current.store, pipeline) {
            Ok((_, report)) => tested.push((run.as_str(), report)),
            Err(why) => complain(&format!("run {run} is left out: {why}")),
        }
    }
    let mut warnings: Vec<&str> = Vec::new();
    for warning in tested.iter().flat_map(|(_, report)| report.warnings()) {
        // A mistake in the file is printed already.
        let printed = files.warnings.iter().any(|one| warning.contains(one));
        if !printed && !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    warnings.iter().for_each(|warning| complain(warning));
    let failed = !warnings.is_empty() || tested.len() < runs.len() || !files.warnings.is_empty();
    answer(|out| match args.json {
        true => json::lines(out, tested.iter().map(|(run, report)| fields(run, report))),
        false => text(&tested, out),
    })?;
    Ok(u8::from(failed))
}

fn fields(run: &str, report: &PipelineReport) -> Value {
    let examples = report.filters.iter().map(|filter| {
        let examples = filter.examples.iter().map(|(before, after)| {
            Value::Object(vec![
                ("before", before.as_slice().into()),
                ("after", after.as_deref().into()),
            ])
        });
        Value::Array(examples.collect())
    });
    Value::Object(vec![
        ("run", run.into()),
        ("report", report_fields(report)),
        ("examples", Value::Array(examples.collect())),
    ])
}

/// All runs together: counts, then examples.
fn text(tested: &[(&str, PipelineReport)], out: &mut impl Write) -> io::Result<()> {
    let Some((first, _)) = tested.first() else {
        return Ok(());
    };
    let of = match tested.len() {
        1 => format!("run {first}"),
        runs => counted(runs, "run", "runs"),
    };
    writeln!(out, "{of}, if it entered the store now:")?;
    let filters = summed(tested);
    for (number, filter) in (1..).zip(&filters) {
        let (name, action) = (one_line(&filter.name), &filter.action);
        writeln!(out, "  {number} {name:<16} {action:<11} {}", effect(filter))?;
    }
    let (removed, anonymous) =
        tested
            .iter()
            .fold(((0, 0), (0, 0)), |(removed, hidden), (_, one)| {
                (
                    (
                        removed.0 + one.removed.files,
                        removed.1 + one.removed.processes,
                    ),
                    (
                        hidden.0 + one.anonymous.files,
                        hidden.1 + one.anonymous.processes,
                    ),
                )
            });
    let nodes = |(files, processes): (usize, usize)| {
        let files = counted(files, "file", "files");
        format!("{files} and {}", counted(processes, "process", "processes"))
    };
    writeln!(out, "  gone: {}", nodes(removed))?;
    writeln!(
        out,
        "  without a name, for lineage passes through: {}",
        nodes(anonymous)
    )?;
    for filter in filters.iter().filter(|filter| !filter.examples.is_empty()) {
        writeln!(out, "{}:", one_line(&filter.name))?;
        for (before, after) in &filter.examples {
            let before = one_line(&shown(before));
            match after {
                None => writeln!(out, "  {before}")?,
                Some(after) => writeln!(out, "  {before} -> {}", one_line(&shown(after)))?,
            }
        }
    }
    Ok(())
}

/// The counts of each filter over all runs, with the examples of the first run that has some.
fn summed(tested: &[(&str, PipelineReport)]) -> Vec<FilterReport> {
    let mut sums: Vec<FilterReport> = Vec::new();
    for (_, report) in tested {
        for (at, filter) in report.filters.iter().enumerate() {
            match sums.get_mut(at) {
                None => sums.push(filter.clone()),
                Some(sum) => {
                    sum.files += filter.files;
                    sum.processes += filter.processes;
                    sum.header |= filter.header;
                    if sum.examples.is_empty() {
                        sum.examples.clone_from(&filter.examples);
                    }
                }
            }
        }
    }
    sums
}
