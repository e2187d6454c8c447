//! in-toto: an attestation (Statement v1) about the results, with SLSA provenance v1 about their
//! making.

use serde_json::{Value, json};

use super::notation::{self, file_uri, moment, purl, text};
use crate::family::Family;
use crate::format::{Format, Target};
use crate::inventory::{Inventory, InventoryFile, PackageFile, package_files};
use crate::{Error, Result, View};

/// `in-toto`
pub struct InToto;

impl Format for InToto {
    fn name(&self) -> &'static str {
        "in-toto"
    }
    fn about(&self) -> &'static str {
        "an in-toto attestation with SLSA provenance"
    }
    fn family(&self) -> Family {
        Family::Standard
    }
    fn proven_by(&self) -> &'static str {
        "in-toto-attestation"
    }
    fn carries_evidence(&self) -> bool {
        true
    }
    fn is_attestation(&self) -> bool {
        true
    }
    fn judges_hermeticity(&self) -> bool {
        true
    }
    fn hint(&self) -> Option<&'static str> {
        Some("to be signed, for instance with cosign")
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let bill = Inventory::of(view)?;
        let subject: Vec<Value> = bill
            .items
            .iter()
            .filter(|item| item.result)
            .filter_map(resource)
            .collect();
        if subject.is_empty() {
            return Err(Error::Nothing {
                subject: view.subject.clone(),
                what: "file that it made and whose content is known",
                advice: "an attestation is about files' digests: record with --contents=lazy",
            });
        }
        let inputs = bill.items.iter().filter(|item| !item.made);
        let machine = &view.runs[view.runs.len() - 1].machine;
        let packages = bill.packages.iter().map(|package| {
            json!({"uri": purl(package, &machine.distribution), "name": package.name,
                   "annotations": {"version": package.version, "manager": package.manager}})
        });
        let files = match view.files {
            true => package_files(view)?,
            false => Vec::new(),
        };
        let dependencies: Vec<Value> = inputs
            .map(|item| {
                resource(item).unwrap_or_else(
                    || json!({"uri": file_uri(&item.path), "name": text(&item.path)}),
                )
            })
            .chain(packages)
            .chain(files.iter().map(package_file))
            .collect();
        let mut internal = json!({
            "steps": steps(&bill),
            "complete": view.runs.iter().all(|run| run.summary.complete),
        });
        if let Some(facts) = &view.hermeticity {
            internal["hermeticity"] = facts.clone();
        }
        let statement = json!({
            "_type": "https://in-toto.io/Statement/v1",
            "subject": subject,
            "predicateType": "https://slsa.dev/provenance/v1",
            "predicate": {
                "buildDefinition": {
                    "buildType": "urn:backstory:recorded-command:v1",
                    "externalParameters": external(view),
                    "internalParameters": internal,
                    "resolvedDependencies": dependencies,
                },
                "runDetails": run_details(view, &bill),
            },
        });
        serde_json::to_writer(&mut *target.stream(), &statement).map_err(std::io::Error::from)?;
        Ok(())
    }
}

/// A resource descriptor: a file with its digests.
fn resource(item: &InventoryFile) -> Option<Value> {
    let sums = item.sums.as_ref()?;
    Some(json!({
        "name": text(&item.path), "uri": file_uri(&item.path),
        "digest": {"sha256": sums.sha256, "sha1": sums.sha1, "blake3": sums.blake3},
    }))
}

/// A resource descriptor of a package's file. Seals need not cover such files, and `store verify
/// --evidence` looks for a seal of each BLAKE3 digest. So it has the other digests.
fn package_file(file: &PackageFile<'_>) -> Value {
    let package = file.package;
    let mut known = json!({
        "name": text(file.path), "uri": file_uri(file.path),
        "annotations": {"package": package.name, "version": package.version,
                        "manager": package.manager},
    });
    if let Some(sums) = &file.sums {
        known["digest"] = json!({"sha256": sums.sha256, "sha1": sums.sha1});
    }
    known
}

/// The command line of each recorded run.
fn external(view: &View) -> Value {
    let runs = view.runs.iter().map(|run| {
        json!({
            "run": run.summary.id,
            "command": run.summary.command.iter().map(|word| text(word)).collect::<Vec<_>>(),
            "cwd": text(&run.summary.cwd),
        })
    });
    json!({"runs": runs.collect::<Vec<_>>()})
}

fn steps(bill: &Inventory) -> Vec<Value> {
    let steps = bill.steps.iter();
    steps
        .map(|step| json!({"name": step.name, "commands": step.lines, "cwd": text(&step.cwd)}))
        .collect()
}

fn run_details(view: &View, bill: &Inventory) -> Value {
    let (first, last) = (&view.runs[0].summary, &view.runs[view.runs.len() - 1]);
    let other: Vec<Value> = bill
        .items
        .iter()
        .filter(|item| item.made && !item.result)
        .filter_map(resource)
        .collect();
    let mut metadata = json!({"invocationId": last.summary.id, "startedOn": moment(first.started)});
    if let Some(ended) = last.summary.ended {
        metadata["finishedOn"] = Value::from(moment(ended));
    }
    // The specification reserves names of the form VENDOR_FIELD for further fields.
    if let Some(evidence) = &view.evidence {
        metadata[notation::EVIDENCE] = evidence.clone();
    }
    json!({
        "builder": {"id": "urn:backstory:recorder", "version": {notation::TOOL: notation::VERSION}},
        "metadata": metadata,
        "byproducts": other,
    })
}
