//! The jobs of launchers of parallel work (`mpirun`, `srun`) in a crate.
//!
//! A job is an `OrganizeAction` of its launcher, whose results are the actions of its ranks. The
//! parts of the place in a job are in `identifier`, as values of backstory's own terms.

use std::collections::BTreeMap;

use backstory_eventlog::job_rank::{JobRank, RANK_TERM};
use serde_json::{Value, json};

use super::notation::{TERMS, escaped};
use super::ro_crate_ids::{action_id, references};
use crate::inventory::{Inventory, InventoryStep};

/// The actions of all jobs, with their launchers and their values. `whole` is the identifier of the
/// action of all steps.
pub(super) fn rank_jobs(
    bill: &Inventory,
    whole: &str,
    control_id: impl Fn(usize) -> String,
) -> Vec<Value> {
    let mut jobs: BTreeMap<String, (JobRank, Vec<usize>)> = BTreeMap::new();
    for (at, step) in bill.steps.iter().enumerate() {
        if let (Some(id), Some(place)) = (job_id(step), &step.job_rank) {
            let job = jobs.entry(id);
            let (_, steps) = job.or_insert_with(|| (place.whole(), Vec::new()));
            steps.push(at);
        }
    }
    let mut graph = Vec::new();
    for (id, (job, steps)) in jobs {
        let launcher = format!("#launcher-{}", escaped(job.launcher.as_bytes()));
        let actions = steps.iter().map(|at| action_id(&bill.steps[*at]));
        let actions = actions.chain(common_place(bill).map(|_| whole.to_owned()));
        let terms = job.terms();
        graph.push(json!({
            "@id": id, "@type": "OrganizeAction", "name": job.job_text(),
            "instrument": {"@id": launcher},
            "object": references(steps.iter().map(|at| control_id(*at))),
            "result": references(actions),
            "identifier": references(terms.iter().map(|(term, _)| value_id(&id, term))),
        }));
        graph.push(json!({"@id": launcher, "@type": "SoftwareApplication", "name": job.launcher}));
        graph.extend(terms.iter().map(|(term, value)| property(&id, term, value)));
    }
    let mut known = std::collections::BTreeSet::new();
    graph.retain(|node| known.insert(node["@id"].to_string()));
    graph.extend(bill.steps.iter().filter_map(|step| {
        let rank = step.job_rank.as_ref()?.rank?;
        Some(property(&action_id(step), RANK_TERM, &rank.into()))
    }));
    let common = common_place(bill).and_then(|place| place.rank);
    graph.extend(common.map(|rank| property(whole, RANK_TERM, &rank.into())));
    graph
}

/// The place that all steps have: the whole is then the work of one rank.
fn common_place(bill: &Inventory) -> Option<&JobRank> {
    let mut places = bill.steps.iter().map(|step| step.job_rank.as_ref());
    let first = places.next()??;
    places.all(|place| place == Some(first)).then_some(first)
}

/// The identifier of the value with the rank of the action of all steps, which has the identifier
/// `whole`.
pub(super) fn common_rank_id(bill: &Inventory, whole: &str) -> Option<String> {
    common_place(bill)?.rank?;
    Some(value_id(whole, RANK_TERM))
}

/// The identifiers of the jobs' actions.
pub(super) fn job_ids(bill: &Inventory) -> impl Iterator<Item = String> {
    bill.steps.iter().filter_map(job_id)
}

/// The identifier of the value with a step's rank. `None` if it has no rank.
pub(super) fn rank_id(step: &InventoryStep) -> Option<String> {
    let place = step.job_rank.as_ref()?;
    place.rank.map(|_| value_id(&action_id(step), RANK_TERM))
}

/// A job without an id is one of its run.
fn job_id(step: &InventoryStep) -> Option<String> {
    let place = step.job_rank.as_ref()?;
    let (launcher, job) = (place.launcher.as_bytes(), place.job.as_ref());
    let job = job.map_or(step.run.to_string(), |job| escaped(job.as_bytes()));
    Some(format!("#job-{}-{job}", escaped(launcher)))
}

fn value_id(of: &str, term: &str) -> String {
    format!("{of}-{term}")
}

fn property(of: &str, term: &str, value: &Value) -> Value {
    json!({
        "@id": value_id(of, term), "@type": "PropertyValue", "name": term,
        "propertyID": format!("{TERMS}{term}"), "value": value,
    })
}
