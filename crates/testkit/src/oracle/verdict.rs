//! The result of a comparison.

use std::collections::BTreeMap;

use super::normal::Counts;
use crate::answer::{FileLine, ProcessLine};

/// backstory's account of a run.
#[derive(Debug, Clone, Default)]
pub struct Account {
    /// `files --json`
    pub files: Vec<FileLine>,
    /// `processes --json`
    pub processes: Vec<ProcessLine>,
}

/// The result for one case, or the sum for many.
#[derive(Debug, Clone, Default)]
pub struct Verdict {
    /// Facts that strace saw and backstory did not report, as messages.
    pub missed: Vec<String>,
    /// Claims that backstory marks as `seen` and strace did not see.
    pub invented: Vec<String>,
    /// Processes with a wrong record, in either direction.
    pub processes: Vec<String>,
    /// Required facts that were compared, by word.
    pub required: BTreeMap<String, u64>,
    /// `seen` claims that were compared.
    pub claims: u64,
    /// Processes compared.
    pub compared: u64,
    /// Uses of each rule of `normal`.
    pub ignored: Counts,
}

impl Verdict {
    /// True if no fact was missed and all processes are right.
    pub fn nothing_missed(&self) -> bool {
        self.missed.is_empty() && self.processes.is_empty()
    }

    /// Share of `seen` claims that are true.
    pub fn precision(&self) -> f64 {
        if self.claims == 0 {
            1.0
        } else {
            1.0 - self.invented.len() as f64 / self.claims as f64
        }
    }

    /// Adds another case's verdict.
    pub fn add(&mut self, name: &str, other: Verdict) {
        let named = |lines: Vec<String>| {
            lines
                .into_iter()
                .map(|l| format!("{name}: {l}"))
                .collect::<Vec<_>>()
        };
        self.missed.extend(named(other.missed));
        self.invented.extend(named(other.invented));
        self.processes.extend(named(other.processes));
        for (word, count) in other.required {
            *self.required.entry(word).or_default() += count;
        }
        self.claims += other.claims;
        self.compared += other.compared;
        for (sum, more) in self.ignored.iter_mut().zip(other.ignored) {
            *sum += more;
        }
    }
}
