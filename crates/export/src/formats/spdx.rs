//! SPDX 2.3 as JSON: the subject as a package, and the packages that it was made with. With
//! [`View::files`] also every file with its checksums, and which file was generated from which.

use backstory_ordering::SmallCollect;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::notation::{self, escaped, purl, second, text, uuid};
use crate::family::Family;
use crate::file_contents::Checksums;
use crate::format::{Format, Target};
use crate::inventory::Inventory;
use crate::{Error, Result, View};
use backstory_query::Content;
use backstory_store::facts::Package;
use backstory_workflow::paths::base_name;

/// The id of the document itself.
const DOCUMENT: &str = "SPDXRef-DOCUMENT";

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
        let asked = |content: &Content| view.requested.as_ref() == Some(&content.path);
        let bill = Inventory::with_sums(view, |content| view.files || asked(content))?;
        if view.files {
            has_files(view, &bill)?;
        }
        let last = &view.runs[view.runs.len() - 1];
        let made = last.summary.ended.unwrap_or(last.summary.started);
        let packages = bill.packages.iter().enumerate();
        let packages = packages.map(|(at, known)| package(at, known, &last.machine.distribution));
        let packages: Vec<Value> = std::iter::once(subject(view, &bill))
            .chain(packages)
            .collect();
        let runs: Vec<&str> = view
            .runs
            .iter()
            .map(|run| run.summary.id.as_str())
            .collect();
        let files = if view.files { ":files" } else { "" };
        let namespace = uuid(&format!("spdx:{}:{}{files}", runs.join(","), view.subject));
        let mut document = json!({
            "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
            "name": format!("provenance of {}", view.subject),
            "documentNamespace": format!("urn:uuid:{namespace}"),
            "creationInfo": {"created": second(made), "creators": [format!("Tool: {}-{}", notation::TOOL, notation::VERSION)]},
            "packages": packages,
        });
        let mut relationships = needs(&bill);
        if view.files {
            let files = (0..bill.items.len()).filter_map(|at| file(&bill, at));
            document["files"] = files.collect();
            relationships.extend(between_files(&bill));
            if let Some(unknown) = unlisted(&bill) {
                document["comment"] = Value::from(unknown);
            }
        }
        document["relationships"] = relationships.iter().map(Relationship::json).collect();
        serde_json::to_writer(&mut *target.stream(), &document).map_err(std::io::Error::from)?;
        Ok(())
    }
}

/// An error if there is no file to list, or if a result cannot be listed.
fn has_files(view: &View, bill: &Inventory) -> Result<()> {
    if bill.items.iter().all(|item| item.sums.is_none()) && bill.packages.is_empty() {
        return Err(Error::Nothing {
            subject: view.subject.clone(),
            what: "file whose content is known",
            advice: "SPDX names files by their checksums: record with --contents=lazy",
        });
    }
    let mut items = bill.items.iter();
    match items.find(|item| item.result && item.sums.is_none()) {
        Some(gone) => Err(Error::NoContent {
            path: backstory_workflow::shell::quote(&gone.path),
            why: "it was not stored, and the file has changed since or is gone".to_owned(),
            advice: "SPDX names files by their checksums: record with --contents=lazy",
        }),
        None => Ok(()),
    }
}

/// The files that have no checksum, in a sentence.
fn unlisted(bill: &Inventory) -> Option<String> {
    let unknown = bill.items.iter().filter(|item| item.sums.is_none());
    let unknown: Vec<String> = unknown.map(|item| text(&item.path)).collect();
    (!unknown.is_empty()).then(|| {
        format!(
            "Not listed, their contents being unknown: {}",
            unknown.join(", ")
        )
    })
}

/// The id of the package that stands for the subject of the export.
const SUBJECT: &str = "SPDXRef-Subject";

/// The run or the file of the export, as a package: SPDX describes packages.
fn subject(view: &View, bill: &Inventory) -> Value {
    let mut subject = json!({
        "SPDXID": SUBJECT, "name": view.subject, "downloadLocation": "NOASSERTION", "filesAnalyzed": false,
        "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION",
    });
    let Some(asked) = &view.requested else {
        return subject;
    };
    subject["packageFileName"] = Value::from(escaped(base_name(asked)));
    let versions = bill.items.iter().filter(|item| item.result);
    if let Some(sums) = versions.filter_map(|item| item.sums.as_ref()).next_back() {
        subject["checksums"] = checksums(sums);
    }
    subject
}

fn package(at: usize, known: &Package, distribution: &str) -> Value {
    json!({
        "SPDXID": package_id(at), "name": known.name, "versionInfo": known.version,
        "downloadLocation": "NOASSERTION", "filesAnalyzed": false,
        "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
            "referenceLocator": purl(known, distribution)}],
    })
}

fn checksums(sums: &Checksums) -> Value {
    json!([
        {"algorithm": "SHA1", "checksumValue": sums.sha1},
        // BLAKE3 is left out: spdx-tools 0.8 wants 256 hexadecimal digits, but a digest has 64.
        {"algorithm": "SHA256", "checksumValue": sums.sha256},
    ])
}

/// One element's relation to another.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Relationship {
    from: String,
    how: &'static str,
    to: String,
}

impl Relationship {
    fn new(from: impl Into<String>, how: &'static str, to: impl Into<String>) -> Relationship {
        Relationship {
            from: from.into(),
            how,
            to: to.into(),
        }
    }

    fn json(&self) -> Value {
        json!({"spdxElementId": self.from, "relationshipType": self.how, "relatedSpdxElement": self.to})
    }
}

/// The packages that the subject was made with.
fn needs(bill: &Inventory) -> BTreeSet<Relationship> {
    let mut all: BTreeSet<Relationship> = (0..bill.packages.len())
        .map(|at| Relationship::new(SUBJECT, "DEPENDS_ON", package_id(at)))
        .into_tree();
    all.insert(Relationship::new(DOCUMENT, "DESCRIBES", SUBJECT));
    all
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
        "checksums": checksums(sums),
        "licenseConcluded": "NOASSERTION", "licenseInfoInFiles": ["NOASSERTION"], "copyrightText": "NOASSERTION",
        "comment": format!("version {}", item.version),
    }))
}

/// The files that the document describes, and which file was made from which.
fn between_files(bill: &Inventory) -> BTreeSet<Relationship> {
    let known = |at: usize| bill.items[at].sums.is_some();
    let mut all: BTreeSet<Relationship> = (0..bill.items.len())
        .filter(|&at| known(at) && bill.items[at].result)
        .map(|at| Relationship::new(DOCUMENT, "DESCRIBES", file_id(at)))
        .into_tree();
    for step in &bill.steps {
        for &output in step.outputs.iter().filter(|&&at| known(at)) {
            for &input in step.inputs.iter().filter(|&&at| known(at) && at != output) {
                let how = if bill.items[input].software {
                    "DEPENDS_ON"
                } else {
                    "GENERATED_FROM"
                };
                all.insert(Relationship::new(file_id(output), how, file_id(input)));
            }
            for &package in &step.packages {
                let package = package_id(package);
                all.insert(Relationship::new(file_id(output), "DEPENDS_ON", package));
            }
        }
    }
    all
}
