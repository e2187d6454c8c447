//! A part of a run, from one moment to another, and the parts before calls are missing.
//!
//! In: an arranged run, and time-stamp counters. Out: a run whose record ends at the second moment.
//! The program starts as it started, because a state in the middle of a run is not recorded. Output
//! before the first moment is compared, and a difference there does not count.

use crate::process::RecordedProcess;
use crate::recorded::RecordedRun;
use std::collections::HashMap;

/// Cuts a run to a window.
pub fn cut(run: &mut RecordedRun, from: Option<u64>, to: Option<u64>) {
    for process in &mut run.processes {
        if let Some(to) = to
            && end_at(process, to)
        {
            run.is_cut = true;
            process.goes_on();
        }
        if let Some(from) = from {
            for streams in process.streams.values_mut() {
                streams.output.prepares_until(from);
            }
        }
    }
}

/// Ends the record of each process before the first of its calls that is missing. The input behind
/// that does not follow from the input before. Processes whose records lack nothing stay whole.
pub fn end_at_gaps(run: &mut RecordedRun) {
    let executed = executed_another(&run.processes);
    for (process, executed) in run.processes.iter_mut().zip(executed) {
        let has_end = process.has_exited || process.killed_by.is_some() || executed;
        let has_end = has_end && !process.lacks_end;
        if let Some(moment) = process.whole_until {
            end_at(process, moment);
        } else if !process.lacks_calls || has_end {
            continue;
        }
        process.end_early(&run.resources);
    }
}

/// By process: true if it executed another program that has a record. So it did not end before.
fn executed_another(processes: &[RecordedProcess]) -> Vec<bool> {
    let mut later = HashMap::new();
    let mut all = Vec::with_capacity(processes.len());
    for process in processes.iter().rev() {
        let next = later.insert(process.pid, process.start.by_exec);
        all.push(next == Some(true));
    }
    all.reverse();
    all
}

/// Removes what came after a moment. True if there was something.
fn end_at(process: &mut RecordedProcess, to: u64) -> bool {
    let before = process.began <= to;
    let size = |process: &RecordedProcess| {
        let streams = process.streams.values();
        let moved = streams.map(|s| s.input.len() + s.output.len() + s.accepted.len());
        let results: usize = process.results.values().map(|queue| queue.len()).sum();
        moved.sum::<usize>() + results + process.turns.len() + process.children.len()
    };
    let whole = size(process);
    for streams in process.streams.values_mut() {
        streams.input.retain(|time| time <= to);
        streams.output.retain(|time| time <= to);
        streams.accepted.retain(|accepted| accepted.time <= to);
    }
    for queue in process.results.values_mut() {
        queue.retain(|(_, time)| *time <= to);
    }
    for queue in process.times.values_mut() {
        queue.retain(|(_, time)| *time <= to);
    }
    for queue in process.processors.values_mut() {
        queue.retain(|(_, time)| *time <= to);
    }
    for queue in process.counters.values_mut() {
        queue.retain(|(_, time)| *time <= to);
    }
    process.turns.retain(|turn| turn.time <= to);
    process.children.retain(|child| child.time <= to);
    let is_cut = !before || size(process) < whole;
    if is_cut {
        process.signals.clear();
        process.handlers.clear();
    }
    is_cut
}
