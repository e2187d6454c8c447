//! The answers of inspectors for rules that ask for them.
//!
//! Bounded: a run gets the time of a rule. A version that is not inspected by then has no answer.

use std::time::Instant;

use backstory_eventlog::event::Bytes;
use backstory_hunt::{ContentAnswers, Field, Rule, RunGraph, contents_asked};
use backstory_sql::{Inspection, Inspections};
use backstory_store::{EntityKey, RunKey};
use serde_json::Value;

use crate::args::hunt::limits;
use crate::error::{Failure, complain};

/// Adds to a run's graph what inspectors say of the versions on which a match depends. Returns
/// whether the time was too short for all of them.
///
/// # Errors
///
/// No inspector can be asked, or the store cannot be read.
pub fn ask(
    graph: &mut RunGraph,
    run: &str,
    key: RunKey,
    rules: &[Rule],
    inspections: &dyn Inspections,
    seconds: u64,
) -> Result<bool, Failure> {
    let is_asked = |field| rules.iter().any(|rule| rule.asks_for(field));
    let (changes, facts) = (is_asked(Field::ContentChange), is_asked(Field::ContentFact));
    let time = limits(seconds).time;
    let end = Instant::now().checked_add(time);
    let (versions, mut is_cut) = contents_asked(graph, rules, time);
    for version in versions {
        if end.is_some_and(|end| Instant::now() > end) {
            is_cut = true;
            break;
        }
        let file = EntityKey::new(key, version);
        let mut answers = ContentAnswers::default();
        if changes {
            let found = inspections.changes(file).map_err(Failure::not_found)?;
            answers.changes = said(found, |(sentence, _)| sentence);
        }
        if facts {
            let found = inspections.facts(file).map_err(Failure::not_found)?;
            answers.facts = said(found, |(name, value)| match value {
                Some(Value::String(text)) => format!("{name}={text}"),
                Some(other) => format!("{name}={other}"),
                None => name,
            });
        }
        graph.set_content(version, answers);
    }
    if is_cut {
        complain(&format!(
            "inspectors were not asked about all files of run {run} within {seconds} s (--timeout)"
        ));
    }
    Ok(is_cut)
}

fn said(found: Option<Inspection>, text: impl Fn((String, Option<Value>)) -> String) -> Vec<Bytes> {
    let parts = found.map(|one| one.said).unwrap_or_default().into_iter();
    parts.map(|part| text(part).into_bytes().into()).collect()
}

/// Says which rules find nothing, because inspectors are not asked about these runs.
pub fn tell_not_asked(rules: &[Rule], runs: &str) {
    for rule in rules.iter().filter(|rule| rule.asks_inspectors()) {
        complain(&format!(
            "rule {} asks inspectors about contents, which is possible for stored runs, and not for those {runs}",
            rule.id
        ));
    }
}
