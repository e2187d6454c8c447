//! SPDX 2.3 as JSON: files with checksums, the packages they were made with, and which file was
//! generated from which.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::notation::{self, escaped, purl, second, text, uuid};
use crate::family::Family;
use crate::format::{Format, Target};
use crate::inventory::Inventory;
use crate::{Error, Result, View};

/// `spdx`
pub struct Spdx;

impl Format for Spdx {
    fn name(&self) -> &'static str {
        "spdx"
    }
    fn about(&self) -> &'static str {
        "a bill of materials in SPDX 2.3"
    }
    fn family(&self) -> Family {
        Family::Standard
    }
    fn proven_by(&self) -> &'static str {
        "spdx-tools"
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let bill = Inventory::of(view)?;
        let files: Vec<Value> = (0..bill.items.len())
            .filter_map(|at| file(&bill, at))
            .collect();
        if files.is_empty() && bill.packages.is_empty() {
            return Err(Error::Nothing {
                subject: view.subject.clone(),
                what: "file whose content is known",
                advice: "SPDX names files by their checksums: record with --contents=lazy",
            });
        }
        // A bill of materials needs a file that it describes.
        if let Some(gone) = bill
            .items
            .iter()
            .find(|item| item.result && item.sums.is_none())
        {
            return Err(Error::NoContent {
                path: backstory_workflow::shell::quote(&gone.path),
                why: "it was not kept and is not there as it was".to_owned(),
                advice: "SPDX names files by their checksums: record with --contents=lazy",
            });
        }
        let last = &view.runs[view.runs.len() - 1];
        let made = last.summary.ended.unwrap_or(last.summary.started);
        let packages: Vec<Value> = bill
            .packages
            .iter()
            .enumerate()
            .map(|(at, package)| {
                json!({
                    "SPDXID": package_id(at), "name": package.name, "versionInfo": package.version,
                    "downloadLocation": "NOASSERTION", "filesAnalyzed": false,
                    "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION",
                    "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                        "referenceLocator": purl(package, &last.machine.distribution)}],
                })
            })
            .collect();
        let runs: Vec<&str> = view
            .runs
            .iter()
            .map(|run| run.summary.id.as_str())
            .collect();
        let namespace = uuid(&format!("spdx:{}:{}", runs.join(","), view.subject));
        let mut document = json!({
            "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
            "name": format!("provenance of {}", view.subject),
            "documentNamespace": format!("urn:uuid:{namespace}"),
            "creationInfo": {"created": second(made), "creators": [format!("Tool: {}-{}", notation::TOOL, notation::VERSION)]},
            "packages": packages, "files": files, "relationships": relationships(&bill),
        });
        let unknown: Vec<String> = bill
            .items
            .iter()
            .filter(|item| item.sums.is_none())
            .map(|item| text(&item.path))
            .collect();
        if !unknown.is_empty() {
            document["comment"] = Value::from(format!(
                "Not listed, their contents being unknown: {}",
                unknown.join(", ")
            ));
        }
        serde_json::to_writer(&mut *target.stream(), &document).map_err(std::io::Error::from)?;
        Ok(())
    }
}

fn package_id(at: usize) -> String {
    format!("SPDXRef-Package-{at}")
}

fn file_id(at: usize) -> String {
    format!("SPDXRef-File-{at}")
}

fn file(bill: &Inventory, at: usize) -> Option<Value> {
    let item = &bill.items[at];
    let sums = item.sums.as_ref()?;
    let sort = if item.software { "BINARY" } else { "OTHER" };
    Some(json!({
        // File names are relative to the root of the described package: here the root directory.
        "SPDXID": file_id(at), "fileName": format!(".{}", escaped(&item.path)), "fileTypes": [sort],
        "checksums": [
            {"algorithm": "SHA1", "checksumValue": sums.sha1},
            // BLAKE3 is left out: spdx-tools 0.8 wants 256 hexadecimal digits, but a digest has 64.
            {"algorithm": "SHA256", "checksumValue": sums.sha256},
        ],
        "licenseConcluded": "NOASSERTION", "licenseInfoInFiles": ["NOASSERTION"], "copyrightText": "NOASSERTION",
        "comment": format!("version {}", item.version),
    }))
}

fn relationships(bill: &Inventory) -> Vec<Value> {
    let known = |at: usize| bill.items[at].sums.is_some();
    let mut all = BTreeSet::new();
    let document = "SPDXRef-DOCUMENT".to_owned();
    for at in (0..bill.items.len()).filter(|&at| known(at) && bill.items[at].result) {
        all.insert((document.clone(), "DESCRIBES", file_id(at)));
    }
    if all.is_empty() {
        all.extend(
            (0..bill.items.len())
                .filter(|&at| known(at))
                .map(|at| (document.clone(), "DESCRIBES", file_id(at))),
        );
    }
    if all.is_empty() {
        all.extend(
            (0..bill.packages.len()).map(|at| (document.clone(), "DESCRIBES", package_id(at))),
        );
    }
    for step in &bill.steps {
        for &output in step.outputs.iter().filter(|&&at| known(at)) {
            for &input in step.inputs.iter().filter(|&&at| known(at) && at != output) {
                let how = if bill.items[input].software {
                    "DEPENDS_ON"
                } else {
                    "GENERATED_FROM"
                };
                all.insert((file_id(output), how, file_id(input)));
            }
            for &package in &step.packages {
                all.insert((file_id(output), "DEPENDS_ON", package_id(package)));
            }
        }
    }
    let each = all.into_iter();
    each.map(
        |(from, how, to)| json!({"spdxElementId": from, "relationshipType": how, "relatedSpdxElement": to}),
    )
    .collect()
}
