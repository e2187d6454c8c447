//! A part of a run, from one moment to another.
//!
//! In: an arranged run, and time-stamp counters. Out: a run whose record ends at the second moment.
//! The program starts as it started, because a state in the middle of a run is not recorded. Output
//! before the first moment is compared, and a difference there does not count.

use crate::process::RecordedProcess;
use crate::recorded::RecordedRun;

/// Cuts a run to a window.
pub fn cut(run: &mut RecordedRun, from: Option<u64>, to: Option<u64>) {
    for process in &mut run.processes {
        if let Some(to) = to {
            run.is_cut |= end_at(process, to);
        }
        if let Some(from) = from {
            for streams in process.streams.values_mut() {
                streams.output.prepares_until(from);
            }
        }
    }
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
        for streams in process.streams.values_mut() {
            streams.output.goes_on();
        }
        process.exit = None;
        process.has_exited = false;
        process.signals.clear();
    }
    is_cut
}
