//! Applies the user's filters to a run on its way into the store.
//!
//! In: a fold of the run's log. Out: a filtered run in the store, or in memory. The log is not
//! changed.

use backstory_eventlog::run::{RunEnd, RunHeader};
use backstory_files::Ident;
use backstory_pipeline::run_graph::{collect, emit};
use backstory_pipeline::{FilteredRun, Pipeline, PipelineReport};
use backstory_store::{self as store, Body, Store, VersionMatch};

use crate::error::complain;

/// A run whose log was read.
#[derive(Debug, Clone, Copy)]
pub struct LoggedRun<'r> {
    /// The header of its log.
    pub header: &'r RunHeader,
    /// Its end.
    pub end: &'r RunEnd,
    /// Bytes of the log.
    pub bytes: u64,
}

/// Folds a run into memory, filters it, and appends it. A filter that fails has a line on standard
/// error and a warning of the run.
pub fn append_filtered(
    store: &mut dyn Store,
    run: LoggedRun<'_>,
    pipeline: &Pipeline,
    body: &mut Body<'_>,
) -> store::Result<()> {
    let (filtered, report) = filtered(&*store, run.header, pipeline, body)?;
    let mut end = run.end.clone();
    for warning in report.warnings() {
        complain(&format!("run {}: {warning}", run.header.id));
        end.warnings.push(warning.to_owned());
    }
    if let (Some(line), Some(text)) = (&filtered.header.line, &mut end.line_text) {
        text.clone_from(&line.text);
    }
    store.append(&filtered.header, &end, run.bytes, &mut |sink| {
        emit(&filtered.graph, sink)
    })?;
    Ok(())
}

/// Folds a run into memory and filters it.
pub fn filtered(
    store: &dyn Store,
    header: &RunHeader,
    pipeline: &Pipeline,
    body: &mut Body<'_>,
) -> store::Result<(FilteredRun, PipelineReport)> {
    let own = store.run(&header.id)?.map(|run| run.key);
    let made_before = |ident: &Ident| {
        let made = store.same(ident, VersionMatch::Made);
        made.is_ok_and(|made| made.iter().any(|key| Some(key.run()) != own))
    };
    let mut run = FilteredRun {
        header: header.clone(),
        graph: collect(&made_before, body)?,
    };
    let report = pipeline.apply(&mut run, &made_before);
    Ok((run, report))
}
