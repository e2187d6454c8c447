//! The order in which runs were recorded.
//!
//! Invariant: of two runs of one boot of a machine, the later one is the newer, even if the clock
//! was set in between. The later setting of the clock counts. Between boots and machines only the
//! calendar decides.

use backstory_ordering::SmallSort;
use std::cmp::Reverse;
use std::collections::HashMap;

use backstory_eventlog::event::Time;
use backstory_eventlog::run::RunHeader;
use serde::Deserialize;

use crate::{RunKey, RunRecord};

/// The facts about a run that decide its place in the order.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct RunBegin {
    started: Time,
    since_boot: Time,
    boot_id: String,
}

impl From<&RunHeader> for RunBegin {
    fn from(header: &RunHeader) -> RunBegin {
        RunBegin {
            started: header.started,
            since_boot: header.since_boot,
            boot_id: header.boot_id.clone(),
        }
    }
}

/// The runs, the newest first: the order of [`GraphStore::runs`](crate::GraphStore::runs).
pub fn order_of_runs(mut runs: Vec<(RunKey, RunBegin)>) -> Vec<RunKey> {
    runs.sort_small_by_key(|(key, begin)| Reverse((begin.since_boot, *key)));
    let mut lowest: HashMap<&str, Time> = HashMap::new();
    let mut begun = Vec::with_capacity(runs.len());
    for (key, begin) in &runs {
        let mut started = begin.started;
        if begin.since_boot != 0 && !begin.boot_id.is_empty() {
            let low = lowest.entry(&begin.boot_id).or_insert(started);
            started = started.min(*low);
            *low = started;
        }
        begun.push((started, begin.since_boot, *key));
    }
    begun.sort_small_by_key(|&known| Reverse(known));
    begun.into_iter().map(|(_, _, key)| key).collect()
}

/// Sorts records of runs as [`order_of_runs`] does.
pub fn newest_first(runs: &mut [RunRecord]) {
    let begins = runs.iter().map(|run| (run.key, (&run.header).into()));
    let order = order_of_runs(begins.collect());
    let places: HashMap<RunKey, usize> = order.into_iter().zip(0..).collect();
    runs.sort_small_by_key(|run| places[&run.key]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunKey;
    use backstory_eventlog::run::{RunEnd, RunHeader};

    fn run(key: u32, boot: &str, since_boot: i64, started: i64) -> RunRecord {
        let header = RunHeader {
            id: format!("{boot}{since_boot}"),
            boot_id: boot.into(),
            since_boot,
            started,
            ..RunHeader::default()
        };
        RunRecord {
            key: RunKey(key),
            header,
            end: RunEnd::default(),
            name: None,
            note: None,
            log_bytes: 0,
            unknown: Vec::new(),
            counts: crate::Counts::default(),
        }
    }

    fn order(mut runs: Vec<RunRecord>) -> Vec<String> {
        newest_first(&mut runs);
        runs.into_iter().map(|run| run.header.id).collect()
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_make_the_next_run_the_older() {
        let runs = vec![
            run(1, "a", 10, 9_000),
            run(2, "a", 20, 500),
            run(3, "a", 30, 510),
        ];
        assert_eq!(order(runs), ["a30", "a20", "a10"]);
    }

    #[test]
    fn a_clock_that_was_wrong_once_does_not_hide_the_runs_of_later_boots() {
        let runs = vec![
            run(1, "a", 10, 9_000),
            run(2, "a", 20, 500),
            run(3, "b", 5, 600),
        ];
        assert_eq!(order(runs), ["b5", "a20", "a10"]);
    }

    #[test]
    fn without_a_time_since_boot_the_calendar_and_then_the_order_decide() {
        let runs = vec![
            run(1, "a", 0, 300),
            run(2, "a", 0, 100),
            run(3, "a", 0, 300),
        ];
        let keys = |mut runs: Vec<RunRecord>| {
            newest_first(&mut runs);
            runs.iter().map(|run| run.key.0).collect::<Vec<_>>()
        };
        assert_eq!(keys(runs), [3, 1, 2]);
    }
}
