//! RO-Crate 1.1 with the Provenance Run Crate 0.5 profile: the steps, their software, inputs and
//! results, beside the files themselves.
//!
//! A step is a `CreateAction`. A file is in the crate if its content is stored or the file is
//! unchanged. Other files are described only.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde_json::{Value, json};

use super::notation::{self, escaped, file_uri, moment, purl, text, with};
use super::ro_crate_ids::{action_id, references};
use super::ro_crate_jobs::{job_ids, rank_id};
use super::ro_crate_run::{PROFILES, WHOLE, WORKFLOW_CRATE, execution, put_workflow};
use crate::family::Family;
use crate::format::{Format, Shape, Target};
use crate::inventory::{Inventory, InventoryFile, InventoryStep};
use crate::unfinished::make_below;
use crate::{Error, Result, View};

/// The file with the seals of the runs.
const SEALS: &str = "backstory-evidence.json";

/// `ro-crate`
pub struct RoCrate;

impl Format for RoCrate {
    fn name(&self) -> &'static str {
        "ro-crate"
    }
    fn about(&self) -> &'static str {
        "an RO-Crate (Workflow Run RO-Crate) with the files and a workflow"
    }
    fn family(&self) -> Family {
        Family::Standard
    }
    fn proven_by(&self) -> &'static str {
        "roc-validator, rdflib"
    }
    fn carries_evidence(&self) -> bool {
        true
    }
    fn shape(&self) -> Shape {
        Shape::Directory
    }
    /// Its main entity is a workflow.
    fn is_executed(&self) -> bool {
        true
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let directory = target.directory();
        let bill = Inventory::of(view)?;
        // A crate describes steps.
        view.steps()?;
        let (mut names, mut ids) = (HashSet::new(), Vec::new());
        let copied = bill.items.iter().filter(|item| in_crate(item));
        let copied = copied.flat_map(|item| &item.sums).map(|sums| sums.size);
        view.contents.meter.expect(copied.sum());
        for item in &bill.items {
            ids.push(match in_crate(item) {
                true => put(view, item, directory, &mut names)?,
                false => format!("{}#v{}-{}", file_uri(&item.path), item.version, item.run),
            });
        }
        let (workflow, language) = put_workflow(view, directory)?;
        let mut graph = vec![
            json!({
                "@id": "ro-crate-metadata.json", "@type": "CreativeWork", "about": {"@id": "./"},
                "conformsTo": [{"@id": "https://w3id.org/ro/crate/1.1"}, {"@id": WORKFLOW_CRATE}],
            }),
            root(view, &bill, &ids, workflow),
            json!({"@id": "#recorder", "@type": "SoftwareApplication", "name": notation::TOOL, "softwareVersion": notation::VERSION}),
        ];
        graph.extend(view.evidence.as_ref().map(|_| {
            json!({"@id": SEALS, "@type": "File", "name": "seals of the runs", "encodingFormat": "application/json",
                   "description": "verified by: backstory store verify --evidence DIRECTORY"})
        }));
        graph.extend((0..bill.items.len()).map(|at| file(&bill.items[at], &ids[at])));
        let distribution = &view.runs[view.runs.len() - 1].machine.distribution;
        graph.extend(bill.packages.iter().map(|package| {
            json!({"@id": purl(package, distribution), "@type": "SoftwareApplication", "name": package.name,
                   "softwareVersion": package.version})
        }));
        let mut instruments = BTreeMap::new();
        let mut tools = Vec::new();
        for step in &bill.steps {
            let tool = instrument(view, &bill, step, distribution, &mut instruments);
            graph.push(action(step, &ids, &tool));
            tools.push(tool);
        }
        graph.extend(instruments.into_values());
        graph.extend(execution(view, &bill, &ids, &tools, (workflow, &language)));
        graph.push(language);
        graph.extend(PROFILES.map(
            |(id, name, version)| json!({"@id": id, "@type": "CreativeWork", "name": name, "version": version}),
        ));
        let document = json!({
            "@context": [
                "https://w3id.org/ro/crate/1.1/context",
                {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"},
            ],
            "@graph": graph,
        });
        if let Some(evidence) = &view.evidence {
            let seals = json!({notation::EVIDENCE: evidence});
            let text = serde_json::to_vec_pretty(&seals).map_err(io::Error::from)?;
            fs::write(directory.join(SEALS), text)?;
        }
        let text = serde_json::to_vec_pretty(&document).map_err(io::Error::from)?;
        fs::write(directory.join("ro-crate-metadata.json"), text)?;
        Ok(())
    }
}

/// True for files that are copied into the crate: files of the system are only named.
fn in_crate(item: &InventoryFile) -> bool {
    item.sums.is_some() && !item.tool
}

/// Copies a file's content into the crate, and gives its name there.
fn put(
    view: &View,
    item: &InventoryFile,
    directory: &Path,
    names: &mut HashSet<Vec<u8>>,
) -> Result<String> {
    let mut name = [b"files".as_slice(), &item.path].concat();
    if !names.insert(name.clone()) {
        name.extend(format!("~{}-{}", item.run, item.version).into_bytes());
        names.insert(name.clone());
    }
    let path = directory.join(std::ffi::OsStr::from_bytes(&name));
    let content = view.contents.of(item.run, &item.path, item.version);
    let content = content.ok_or_else(|| Error::NoContent {
        path: backstory_workflow::shell::quote(&item.path),
        why: "the run does not know this version".to_owned(),
        advice: "record again with --contents=lazy",
    })?;
    if let Some(parent) = path.parent() {
        make_below(directory, parent)?;
    }
    io::copy(
        &mut view.contents.open_metered(content)?,
        &mut fs::File::create(&path)?,
    )?;
    Ok(escaped(&name))
}

fn root(view: &View, bill: &Inventory, ids: &[String], workflow: &str) -> Value {
    let last = &view.runs[view.runs.len() - 1];
    let files = ids
        .iter()
        .zip(&bill.items)
        .filter(|(_, item)| in_crate(item))
        .map(|(id, _)| id.as_str());
    json!({
        "@id": "./", "@type": "Dataset",
        "name": format!("Provenance of {}", view.subject),
        "description": format!("What was run to make it, as {} recorded it on {}.", notation::TOOL, last.machine.distribution),
        "datePublished": moment(last.summary.ended.unwrap_or(last.summary.started)),
        "license": "Not stated: that of the files is their owners' to say.",
        "conformsTo": references(PROFILES.iter().map(|(id, ..)| *id)),
        "hasPart": references(files.chain([workflow]).chain(view.evidence.as_ref().map(|_| SEALS))),
        "mainEntity": {"@id": workflow},
        "mentions": references(bill.steps.iter().map(action_id).chain(job_ids(bill)).chain([WHOLE.to_owned(), "#organisation".to_owned()])),
    })
}

fn file(item: &InventoryFile, id: &str) -> Value {
    // A `File` is a part of the crate. Other files are entities of their own.
    let sort = if in_crate(item) {
        "File"
    } else {
        "CreativeWork"
    };
    let mut file = json!({
        "@id": id, "@type": sort, "name": text(backstory_workflow::paths::base_name(&item.path)), "alternateName": text(&item.path),
        "description": format!("{} (version {})", text(&item.path), item.version),
    });
    if let Some(sums) = &item.sums {
        file["contentSize"] = Value::from(sums.size.to_string());
        file["sha256"] = Value::from(sums.sha256.as_str());
    }
    file
}

fn action(step: &InventoryStep, ids: &[String], instrument: &str) -> Value {
    let line = step.lines.join(" && ");
    let action = json!({
        "@id": action_id(step), "@type": "CreateAction",
        "name": step.name, "description": line,
        "instrument": {"@id": instrument},
        "object": references(step.inputs.iter().map(|&at| ids[at].as_str())),
        "result": references(step.outputs.iter().map(|&at| ids[at].as_str())),
        "startTime": moment(step.start), "endTime": moment(step.end),
        "actionStatus": {"@id": "http://schema.org/CompletedActionStatus"},
    });
    match rank_id(step) {
        Some(rank) => with(action, json!({"identifier": {"@id": rank}})),
        None => action,
    }
}

/// The program of a step, or the package that the program comes from.
fn instrument(
    view: &View,
    bill: &Inventory,
    step: &InventoryStep,
    distribution: &str,
    instruments: &mut BTreeMap<String, Value>,
) -> String {
    let name = step.lines.first().map_or("command", String::as_str);
    let name = name
        .split_whitespace()
        .next()
        .unwrap_or("command")
        .to_owned();
    let id = format!("#program-{}", escaped(name.as_bytes()));
    let run = &view.runs[step.run];
    let requirements = step
        .packages
        .iter()
        .map(|&at| purl(&bill.packages[at], distribution));
    let requirements = references(requirements);
    instruments.entry(id.clone()).or_insert_with(|| {
        json!({"@id": id, "@type": "SoftwareApplication", "name": name,
               "operatingSystem": run.machine.distribution, "softwareRequirements": requirements})
    });
    id
}
