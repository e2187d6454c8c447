//! OpenLineage: a START and a COMPLETE or FAIL event for each activity, one JSON object a line, in
//! order of time.
//!
//! A file is a dataset as the standard's naming page says: namespace `file`, name the absolute
//! path. The file's version is in the `version` facet.
//!
//! A job of a launcher of parallel work is a run above its ranks.

use backstory_ordering::SmallSort;
use std::collections::BTreeMap;

use backstory_eventlog::event::Time;
use backstory_eventlog::job_rank::{JOB_FACET, JobRank, RANK_FACET};
use backstory_graph::model::{Certainty, EntityKind, Interval, Relation};
use backstory_query::ByteUse;
use backstory_query::answer::Flow;
use backstory_vocabulary::Word;
use serde_json::{Value, json};

use super::notation::{self, moment, text, uuid, with};
use super::openlineage_jobs::{RankJob, job_name, rank_jobs};
use crate::family::Family;
use crate::format::{Format, Target};
use crate::view::{Endpoint, ViewActivity};
use crate::{Result, View};

/// `openlineage`
pub struct OpenLineage;

/// The schema of the standard's event.
const EVENT: &str = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent";

/// The base of the URLs of the standard's facets.
const FACETS: &str = "https://openlineage.io/spec/facets";

impl Format for OpenLineage {
    fn name(&self) -> &'static str {
        "openlineage"
    }
    fn about(&self) -> &'static str {
        "OpenLineage events, one a line"
    }
    fn family(&self) -> Family {
        Family::Standard
    }
    fn marks_bytes(&self) -> bool {
        true
    }
    fn proven_by(&self) -> &'static str {
        "the standard's JSON schema"
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let out = target.stream();
        let mut events = Vec::new();
        let jobs = rank_jobs(view);
        events.extend(jobs.iter().map(|job| {
            let start = job.interval.start;
            (start, job_event(view, job, start, "START"))
        }));
        for (at, activity) in view.activities.iter().enumerate() {
            let (inputs, outputs) = datasets(view, at);
            let Interval { start, end } = activity.interval;
            events.push((start, event(view, activity, start, "START", &inputs, &[])));
            let kind = last_event(activity.failed());
            events.push((end, event(view, activity, end, kind, &inputs, &outputs)));
        }
        events.extend(jobs.iter().map(|job| {
            let end = job.interval.end;
            (end, job_event(view, job, end, last_event(job.failed)))
        }));
        events.sort_small_by_key(|(time, _)| *time);
        for (_, event) in events {
            writeln!(out, "{event}")?;
        }
        Ok(())
    }
}

/// The type of the last event of a run.
fn last_event(failed: bool) -> &'static str {
    match failed {
        true => "FAIL",
        false => "COMPLETE",
    }
}

fn facet(name: &str, fields: Value) -> Value {
    let facet = json!({"_producer": producer(), "_schemaURL": format!("{FACETS}/{name}")});
    with(facet, fields)
}

/// A facet of a run that the standard does not have.
fn run_facet(fields: Value) -> Value {
    let mut facet = facet("", fields);
    facet["_schemaURL"] =
        Value::from("https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunFacet");
    facet
}

/// The facet that names the run above. Its id is made of the name of its job.
fn parent_facet(name: &str) -> Value {
    facet(
        "1-2-0/ParentRunFacet.json#/$defs/ParentRunFacet",
        json!({"run": {"runId": uuid(name)}, "job": job(name)}),
    )
}

fn job_type(kind: &str) -> Value {
    facet(
        "2-0-4/JobTypeJobFacet.json#/$defs/JobTypeJobFacet",
        json!({"processingType": "BATCH", "integration": "BACKSTORY", "jobType": kind}),
    )
}

fn producer() -> String {
    format!("urn:backstory:{}", notation::VERSION)
}

fn job(name: &str) -> Value {
    json!({"namespace": "backstory", "name": name})
}

/// An event about a job of a launcher of parallel work.
fn job_event(view: &View, of: &RankJob, time: Time, kind: &str) -> Value {
    let mut facets = json!({JOB_FACET: run_facet(terms(&of.place))});
    if let Some(parent) = of.parent {
        facets["parent"] = parent_facet(&view.activities[parent].id);
    }
    let mut job = job(&of.name);
    job["facets"] = json!({"jobType": job_type("PARALLEL_JOB")});
    json!({
        "eventType": kind, "eventTime": moment(time), "producer": producer(), "schemaURL": EVENT,
        "run": {"runId": uuid(&of.name), "facets": facets}, "job": job, "inputs": [], "outputs": [],
    })
}

fn terms(place: &JobRank) -> Value {
    place.terms().into_iter().collect()
}

fn event(
    view: &View,
    activity: &ViewActivity,
    time: Time,
    kind: &str,
    inputs: &[Value],
    outputs: &[Value],
) -> Value {
    let mut facets = json!({
        "backstory_process": run_facet(json!({
            "run": view.runs[activity.run].summary.id, "pid": activity.pid, "epoch": activity.epoch,
            "cwd": text(&activity.cwd), "exit": activity.exit, "signal": activity.signal,
            "argv": activity.argv.iter().map(|word| text(word)).collect::<Vec<_>>(),
        })),
    });
    if let Some(place) = &activity.job_rank {
        facets[RANK_FACET] = run_facet(terms(place));
        facets["parent"] = parent_facet(&job_name(view, activity, place));
    } else if let Some(parent) = activity.parent {
        facets["parent"] = parent_facet(&view.activities[parent].id);
    }
    let mut job = job(&activity.id);
    job["facets"] = json!({
        "sourceCode": facet("1-0-1/SourceCodeJobFacet.json#/$defs/SourceCodeJobFacet",
            json!({"language": "sh", "sourceCode": activity.label})),
        "jobType": job_type("COMMAND"),
    });
    json!({
        "eventType": kind, "eventTime": moment(time), "producer": producer(), "schemaURL": EVENT,
        "run": {"runId": uuid(&activity.id), "facets": facets}, "job": job, "inputs": inputs, "outputs": outputs,
    })
}

/// The datasets that an activity read, and those that it made.
fn datasets(view: &View, activity: usize) -> (Vec<Value>, Vec<Value>) {
    let (mut inputs, mut outputs) = (BTreeMap::new(), BTreeMap::new());
    for link in &view.links {
        let (entity, used) = match (link.from, link.to, link.flow) {
            (
                Endpoint::Entity(at),
                Endpoint::Activity(who),
                Flow::Used(Relation::Read | Relation::Execute),
            ) if who == activity => (at, true),
            (
                Endpoint::Activity(who),
                Endpoint::Entity(at),
                Flow::Generated(Relation::Write | Relation::Rename | Relation::Make),
            ) if who == activity => (at, false),
            _ => continue,
        };
        if view.entities[entity].kind != EntityKind::File {
            continue;
        }
        let side = if used { &mut inputs } else { &mut outputs };
        let (certainty, bytes) = side.entry(entity).or_insert((link.certainty, link.bytes));
        *certainty = (*certainty).max(link.certainty);
        *bytes = bytes.or(link.bytes);
    }
    let list = |side: BTreeMap<usize, EdgeFacts>, facets: &str| {
        let each = side.into_iter();
        each.map(|(at, edge)| dataset(view, at, edge, facets))
            .collect()
    };
    (list(inputs, "inputFacets"), list(outputs, "outputFacets"))
}

/// The facts about an input or output of an activity.
type EdgeFacts = (Certainty, Option<ByteUse>);

fn dataset(view: &View, at: usize, (certainty, bytes): EdgeFacts, facets: &str) -> Value {
    let entity = &view.entities[at];
    let content = view.contents.of(entity.run, &entity.path, entity.version);
    let digest = content
        .and_then(|content| content.digest)
        .map(|digest| digest.to_string());
    let version = digest.clone().unwrap_or_else(|| entity.id.clone());
    let mut own = facet(
        "",
        json!({"entity": entity.id, "certainty": certainty.word(), "blake3": digest}),
    );
    if let Some(bytes) = bytes {
        own["bytes"] = bytes.word().into();
    }
    let none_of: Vec<String> = super::no_byte_of(view, entity).map(text).collect();
    if facets == "outputFacets" && !none_of.is_empty() {
        own["noByteOf"] = none_of.into();
    }
    let sort = if facets == "inputFacets" {
        "InputDatasetFacet"
    } else {
        "OutputDatasetFacet"
    };
    own["_schemaURL"] = Value::from(format!(
        "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/{sort}"
    ));
    let mut dataset = json!({
        "namespace": "file", "name": text(&entity.path),
        "facets": {
            "version": facet("1-0-1/DatasetVersionDatasetFacet.json#/$defs/DatasetVersionDatasetFacet",
                json!({"datasetVersion": version})),
        },
    });
    dataset[facets] = json!({"backstory_edge": own});
    dataset
}
