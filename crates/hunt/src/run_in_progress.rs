//! A run that goes on, in which rules look for matches.
//!
//! In: its events, each once, in one order of time. Out: matches. Each look costs as much as the
//! events since the last one: the graph and the partial matches are kept.
//!
//! The memory is that of a fold of the events, of their graph, and of the operations that meet a
//! part of a rule.

use backstory_eventlog::event::{Event, Time};
use backstory_eventlog::run::RunHeader;
use backstory_graph::Fold;

use crate::growing_graph::GrowingGraph;
use crate::matching::{Limits, RuleFindings};
use crate::rule::Rule;
use crate::run_graph::RunGraph;
use crate::stream_matching::StreamMatcher;

/// A run that goes on.
pub struct RunInProgress<'a> {
    fold: Fold<'a, GrowingGraph>,
    matcher: StreamMatcher<'a>,
}

impl<'a> RunInProgress<'a> {
    /// A run before its first event.
    pub fn new(header: &'a RunHeader, rules: &'a [Rule], limits: Limits) -> RunInProgress<'a> {
        let fold = Fold::new(header, None, &(), GrowingGraph::new(rules));
        RunInProgress {
            fold: fold.noting_news(),
            matcher: StreamMatcher::new(rules, limits),
        }
    }

    /// Takes the next event.
    pub fn add(&mut self, event: Event) {
        let Ok(()) = self.fold.event(event);
    }

    /// Gives each rule with the matches that the events since the last look have completed. The
    /// events up to the time `now` have come. True if something is left for the next look.
    pub fn look(&mut self, now: Time, tell: impl FnMut(&RunGraph, &Rule, RuleFindings)) -> bool {
        let Ok(has_more) = self.fold.tell_news(now);
        let growing = self.fold.sink();
        let news = growing.take_news();
        self.matcher.take(&growing.graph, &news, tell);
        has_more
    }
}
