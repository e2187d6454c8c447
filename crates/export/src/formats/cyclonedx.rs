//! CycloneDX 1.6 as JSON: files and packages as components, their dependencies, and the steps in
//! `formulation`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::notation::{self, file_uri, moment, purl, text, uuid};
use crate::family::Family;
use crate::format::{Format, Target};
use crate::inventory::{Inventory, InventoryStep};
use crate::{Result, View};

/// `cyclonedx`
pub struct CycloneDx;

impl Format for CycloneDx {
    fn name(&self) -> &'static str {
        "cyclonedx"
    }
    fn about(&self) -> &'static str {
        "a bill of materials in CycloneDX 1.6, with how it was made"
    }
    fn family(&self) -> Family {
        Family::Standard
    }
    fn proven_by(&self) -> &'static str {
        "cyclonedx-python-lib"
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let bill = Inventory::of(view)?;
        let last = &view.runs[view.runs.len() - 1];
        let runs: Vec<&str> = view
            .runs
            .iter()
            .map(|run| run.summary.id.as_str())
            .collect();
        let mut components: Vec<Value> = (0..bill.items.len()).map(|at| file(&bill, at)).collect();
        components.extend(bill.packages.iter().enumerate().map(|(at, package)| {
            json!({"type": "library", "bom-ref": package_ref(at), "name": package.name, "version": package.version,
                   "purl": purl(package, &last.machine.distribution)})
        }));
        let tasks: Vec<Value> = bill.steps.iter().map(task).collect();
        let mut document = json!({
            "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
            "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
            "serialNumber": format!("urn:uuid:{}", uuid(&format!("cyclonedx:{}:{}", runs.join(","), view.subject))),
            "metadata": {
                "timestamp": moment(last.summary.ended.unwrap_or(last.summary.started)),
                "lifecycles": [{"phase": "build"}],
                "tools": {"components": [{"type": "application", "name": notation::TOOL, "version": notation::VERSION}]},
                "component": {"type": "file", "bom-ref": "subject", "name": view.subject},
            },
            "components": components,
            "dependencies": dependencies(&bill),
        });
        if !tasks.is_empty() {
            document["formulation"] = json!([{
                "bom-ref": "formula",
                "workflows": [{"bom-ref": "workflow", "uid": runs.join(","), "taskTypes": ["build"], "tasks": tasks}],
            }]);
        }
        serde_json::to_writer(&mut *target.stream(), &document).map_err(std::io::Error::from)?;
        Ok(())
    }
}

fn file_ref(at: usize) -> String {
    format!("file-{at}")
}

fn package_ref(at: usize) -> String {
    format!("package-{at}")
}

fn file(bill: &Inventory, at: usize) -> Value {
    let item = &bill.items[at];
    let mut file = json!({
        "type": "file", "bom-ref": file_ref(at), "name": text(&item.path),
        "properties": [
            {"name": "backstory:version", "value": item.version.to_string()},
            {"name": "backstory:uri", "value": file_uri(&item.path)},
        ],
    });
    if let Some(sums) = &item.sums {
        file["hashes"] = json!([
            {"alg": "SHA-256", "content": sums.sha256},
            {"alg": "SHA-1", "content": sums.sha1},
            {"alg": "BLAKE3", "content": sums.blake3},
        ]);
    }
    file
}

fn dependencies(bill: &Inventory) -> Vec<Value> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let results = (0..bill.items.len()).filter(|&at| bill.items[at].result);
    all.insert("subject".to_owned(), results.map(file_ref).collect());
    for step in &bill.steps {
        for &output in &step.outputs {
            let on = all.entry(file_ref(output)).or_default();
            on.extend(
                step.inputs
                    .iter()
                    .filter(|&&at| at != output)
                    .map(|&at| file_ref(at)),
            );
            on.extend(step.packages.iter().map(|&at| package_ref(at)));
        }
    }
    let each = all.into_iter();
    each.map(|(of, on)| json!({"ref": of, "dependsOn": on}))
        .collect()
}

fn task(step: &InventoryStep) -> Value {
    let resource = |at: &usize| json!({"resource": {"ref": file_ref(*at)}});
    let commands: Vec<Value> = step
        .lines
        .iter()
        .map(|line| json!({"executed": line}))
        .collect();
    let mut task = json!({
        "bom-ref": format!("task-{}-{}", step.run, step.name), "uid": step.name, "name": step.name, "taskTypes": ["build"],
        "timeStart": moment(step.start), "timeEnd": moment(step.end),
        "steps": [{"name": step.name, "commands": commands}],
        "properties": [{"name": "backstory:cwd", "value": text(&step.cwd)}],
    });
    // The schema forbids empty lists.
    let inputs: Vec<Value> = step.inputs.iter().map(resource).collect();
    if !inputs.is_empty() {
        task["inputs"] = Value::from(inputs);
    }
    let outputs = step.outputs.iter();
    let outputs: Vec<Value> = outputs
        .map(|at| json!({"type": "artifact", "resource": {"ref": file_ref(*at)}}))
        .collect();
    if !outputs.is_empty() {
        task["outputs"] = Value::from(outputs);
    }
    task
}
