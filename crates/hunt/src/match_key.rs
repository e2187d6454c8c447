//! The key that distinguishes the matches of a rule.

use backstory_eventlog::event::{Bytes, Pid};

use crate::correlation::CorrelationKind;
use crate::fact::{Fact, Operation};
use crate::rule::{Rule, Shape};
use crate::run_graph::RunGraph;

/// The distinction between the matches of a rule in a run. The versions of a file are one thing
/// here, so a match that is found again with more operations is the same one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MatchKey {
    /// A process, and what it used. Of many operations, this is the first one.
    First(Pid, Option<Bytes>),
    /// The thing that the first operation used, then the last operation with its thing or process.
    Ends(Option<Bytes>, Operation, Result<Bytes, Pid>),
}

impl MatchKey {
    /// The key of operations that a rule found together.
    pub fn of(graph: &RunGraph, rule: &Rule, facts: &[Fact]) -> Option<MatchKey> {
        match &rule.shape {
            Shape::Several(several) if matches!(several.kind, CorrelationKind::Ordered { .. }) => {
                MatchKey::of_chain(graph, facts)
            }
            _ => facts.first().map(|first| of_first(graph, first)),
        }
    }

    /// The key of operations in order.
    pub(crate) fn of_chain(graph: &RunGraph, facts: &[Fact]) -> Option<MatchKey> {
        let (first, last) = (facts.first()?, facts.last()?);
        let end = used(graph, last).ok_or(graph.activity(last.activity).pid);
        Some(MatchKey::Ends(used(graph, first), last.operation, end))
    }
}

/// The key of a single operation.
pub(crate) fn of_first(graph: &RunGraph, fact: &Fact) -> MatchKey {
    MatchKey::First(graph.activity(fact.activity).pid, used(graph, fact))
}

/// The path of what an operation used.
fn used(graph: &RunGraph, fact: &Fact) -> Option<Bytes> {
    fact.entity.map(|entity| graph.entity(entity).path.clone())
}
