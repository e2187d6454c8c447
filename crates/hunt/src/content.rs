//! Rules about contents of files: the versions that inspectors are asked about, and the answers.
//!
//! An inspector takes up to seconds for a file. So the caller gets the versions on which a match
//! depends. It asks the inspectors about these only, and adds the answers to the graph.

use std::collections::BTreeSet;
use std::time::Duration;

use backstory_graph::model::{EntityId, EntityKind};

use crate::deadline::Deadline;
use crate::rule::Rule;
use crate::run_graph::RunGraph;

/// The versions of files whose contents decide whether a rule matches: an operation on them meets
/// everything else in a selection. True: the time was over before all of them were found.
pub fn contents_asked(graph: &RunGraph, rules: &[Rule], time: Duration) -> (Vec<EntityId>, bool) {
    let clock = Deadline::after(time);
    let mut found = BTreeSet::new();
    for rule in rules.iter().filter(|rule| rule.asks_inspectors()) {
        let facts = graph.facts().take_while(|_| clock.goes_on());
        for fact in facts.filter(|fact| rule.is_about(fact.operation)) {
            let file = fact
                .entity
                .filter(|id| graph.entity(*id).kind == EntityKind::File);
            if let Some(file) = file.filter(|id| !found.contains(id))
                && rule.depends_on_content(graph, &fact, &clock)
            {
                found.insert(file);
            }
        }
    }
    (found.into_iter().collect(), clock.is_over())
}
