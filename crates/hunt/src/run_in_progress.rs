//! A run that goes on, in which rules look for matches.
//!
//! In: its log, which grows. Out: matches. Each look costs as much as the records since the last
//! one: the graph and the partial matches are kept.
//!
//! A busy machine can log an operation long after later ones of other threads. A graph that got
//! them in this order can lack matches, and have others. [`RunInProgress::begin_again`] takes the
//! log from its beginning, in the order of time.
//!
//! The memory is that of a fold of the events, of their graph, and of the operations that meet a
//! part of a rule.

use std::path::Path;
use std::time::Duration;

use backstory_eventlog::run::RunHeader;
use backstory_eventlog::{Error, LogTail, Patience};
use backstory_graph::Fold;

use crate::growing_graph::GrowingGraph;
use crate::matching::{Limits, RuleFindings};
use crate::rule::Rule;
use crate::run_graph::RunGraph;
use crate::stream_matching::StreamMatcher;

/// A run that goes on.
pub struct RunInProgress<'a> {
    header: &'a RunHeader,
    rules: &'a [Rule],
    limits: Limits,
    patience: Patience,
    /// The log, up to the records that were read.
    tail: LogTail,
    fold: Fold<'a, GrowingGraph>,
    matcher: StreamMatcher<'a>,
}

impl<'a> RunInProgress<'a> {
    /// A run before its first event.
    pub fn new(
        header: &'a RunHeader,
        rules: &'a [Rule],
        limits: Limits,
        patience: Patience,
    ) -> RunInProgress<'a> {
        let fold = Fold::new(header, None, &(), GrowingGraph::new(rules));
        RunInProgress {
            header,
            rules,
            limits,
            patience,
            tail: LogTail::new(patience),
            fold: fold.noting_news(),
            matcher: StreamMatcher::new(rules, limits),
        }
    }

    /// Takes note of what was appended to the log at this path.
    ///
    /// # Errors
    ///
    /// The log cannot be read.
    pub fn grow(&mut self, path: &Path) -> Result<(), Error> {
        self.tail.grow(path)
    }

    /// Gives each rule with the matches that the records since the last look have completed. The
    /// log has not grown for the time `quiet`. True if something is left for the next look.
    pub fn look(
        &mut self,
        quiet: Duration,
        tell: impl FnMut(&RunGraph, &Rule, RuleFindings),
    ) -> bool {
        let fold = &mut self.fold;
        let mut has_more = self.tail.read(quiet, |event| {
            let Ok(()) = fold.event(event);
        });
        let Ok(is_left) = fold.tell_news(self.tail.until());
        has_more |= is_left;
        let growing = fold.sink();
        let news = growing.take_news();
        self.matcher.take(&growing.graph, &news, tell);
        has_more
    }

    /// True if records came in another order than that of time. So matches can be missing.
    pub fn is_disordered(&self) -> bool {
        self.tail.is_disordered()
    }

    /// Forgets everything, and takes the log at this path from its beginning. The next look gives
    /// all matches again.
    ///
    /// # Errors
    ///
    /// The log cannot be read.
    pub fn begin_again(&mut self, path: &Path) -> Result<(), Error> {
        *self = RunInProgress::new(self.header, self.rules, self.limits, self.patience);
        self.grow(path)
    }
}
