//! Describes a match: its operations, the programs that led to it, the first cause, and the extent.

use backstory_eventlog::event::{Bytes, Pid, Time};
use backstory_graph::model::{ActivityId, Certainty};

use crate::cause::CauseSearch;
use crate::extent::Extent;
use crate::fact::Fact;
use crate::matching::Found;
use crate::run_graph::RunGraph;

/// A program.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FoundProgram {
    /// Process id.
    pub pid: Pid,
    /// Arguments.
    pub argv: Vec<Bytes>,
}

/// An operation of a match.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FoundStep {
    /// When it was done first.
    pub time: Time,
    /// The word for the act.
    pub operation: &'static str,
    /// The file or address.
    pub target: Option<Bytes>,
    /// The file that was renamed, linked or copied to the target.
    pub source: Option<Bytes>,
    /// True if it only can have happened.
    pub is_possible: bool,
    /// The program that did it.
    pub program: FoundProgram,
}

/// A match of a rule.
#[derive(Debug, Clone)]
pub struct RuleMatch {
    /// The operations, in the order of the rule.
    pub steps: Vec<FoundStep>,
    /// How many operations there are, if `steps` has only some.
    pub count: usize,
    /// The programs from the run's command down to the one of the last operation.
    pub chain: Vec<FoundProgram>,
    /// The program that a file or the network told what to do, above or at an operation.
    pub cause: FoundProgram,
    /// That file: a script, an own program, an input. `None` if no such file is known.
    pub cause_file: Option<Bytes>,
    /// The file that a shell below the cause got its commands from, through a pipe.
    pub cause_input: Option<Bytes>,
    /// The address that the cause's file or commands came from in this run.
    pub cause_origin: Option<Bytes>,
    /// It is not certain that they came from there.
    pub cause_origin_is_possible: bool,
    /// The program that received them there.
    pub cause_receiver: Option<FoundProgram>,
    /// The acts of the cause's process and of those that it started.
    pub extent: Extent,
}

/// Describes the matches of one graph. They share the searches for what was received.
pub struct MatchDescriber<'g> {
    graph: &'g RunGraph,
    most: usize,
    causes: CauseSearch<'g>,
}

impl<'g> MatchDescriber<'g> {
    /// A describer of matches.
    pub fn of(graph: &'g RunGraph) -> MatchDescriber<'g> {
        MatchDescriber::within(graph, usize::MAX)
    }

    /// A describer that needs a bounded time. It looks at `most` operations of each program for the
    /// cause. It looks at as many in all for the origin of the cause, and for each part of the
    /// extent.
    pub fn within(graph: &'g RunGraph, most: usize) -> MatchDescriber<'g> {
        MatchDescriber {
            graph,
            most,
            causes: CauseSearch::new(graph, most),
        }
    }

    /// Describes a match.
    pub fn describe(&self, found: &Found) -> RuleMatch {
        let graph = self.graph;
        let last = found.facts[found.facts.len() - 1];
        let cause = self.causes.cause(&found.facts);
        let mut chain: Vec<FoundProgram> = Vec::new();
        for up in graph.up(last.activity) {
            let activity = graph.activity(up);
            if !activity.argv.is_empty() {
                chain.push(program(graph, up));
            }
        }
        chain.reverse();
        RuleMatch {
            steps: found.facts.iter().map(|fact| step(graph, fact)).collect(),
            count: found.count,
            chain,
            cause: program(graph, cause.activity),
            cause_file: cause.file,
            cause_input: cause.input,
            cause_receiver: cause
                .origin
                .as_ref()
                .map(|one| program(graph, one.receiver)),
            cause_origin_is_possible: cause.origin.as_ref().is_some_and(|one| one.is_possible),
            cause_origin: cause.origin.map(|one| one.address),
            extent: Extent::of(graph, cause.activity, self.most),
        }
    }
}

fn program(graph: &RunGraph, id: ActivityId) -> FoundProgram {
    FoundProgram {
        pid: graph.activity(id).pid,
        argv: graph.activity(graph.programmed(id)).argv.clone(),
    }
}

/// The description of an operation.
pub fn step(graph: &RunGraph, fact: &Fact) -> FoundStep {
    let target = fact.entity.map(|entity| match graph.address(entity) {
        Some(address) => address.into(),
        None => graph.entity(entity).path.clone(),
    });
    let source = fact.entity.and_then(|entity| graph.source(entity));
    FoundStep {
        time: fact.start,
        operation: fact.operation.word(),
        target,
        source: source.map(|source| source.path.clone()),
        is_possible: fact.certainty == Certainty::Possible,
        program: program(graph, fact.activity),
    }
}
