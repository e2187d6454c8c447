//! The workflow of a crate and its execution, which the Provenance Run Crate profile requires
//! beyond the steps' own actions.
//!
//! The crate has the workflow as a file: in CWL, or as a shell script if CWL cannot express it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::notation::{moment, with};
use super::ro_crate_ids::{action_id, references};
use super::ro_crate_jobs::{common_rank_id, rank_jobs};
use crate::format::{Format, Target};
use crate::inventory::Inventory;
use crate::{Error, Result, View};

/// The profiles of a crate: each extends those before it.
pub const PROFILES: [(&str, &str, &str); 4] = [
    (
        "https://w3id.org/ro/wfrun/process/0.5",
        "Process Run Crate",
        "0.5",
    ),
    (
        "https://w3id.org/ro/wfrun/workflow/0.5",
        "Workflow Run Crate",
        "0.5",
    ),
    (
        "https://w3id.org/ro/wfrun/provenance/0.5",
        "Provenance Run Crate",
        "0.5",
    ),
    (WORKFLOW_CRATE, "Workflow RO-Crate", "1.0"),
];

/// The profile that the metadata file names as well.
pub const WORKFLOW_CRATE: &str = "https://w3id.org/workflowhub/workflow-ro-crate/1.0";

/// The id of the action that stands for the whole workflow.
pub const WHOLE: &str = "#execution";

/// Writes the workflow's file. The result is its name and its language.
pub fn put_workflow(view: &View, directory: &Path) -> Result<(&'static str, Value)> {
    match super::cwl::document(view) {
        Ok(document) => {
            fs::write(directory.join("workflow.cwl"), document)?;
            let language = json!({
                "@id": "https://w3id.org/workflowhub/workflow-ro-crate#cwl", "@type": "ComputerLanguage",
                "name": "Common Workflow Language", "alternateName": "CWL",
                "identifier": {"@id": "https://w3id.org/cwl/v1.2/"}, "url": {"@id": "https://www.commonwl.org/"},
            });
            Ok(("workflow.cwl", language))
        }
        Err(Error::Unsayable { .. }) => {
            let mut file = fs::File::create(directory.join("workflow.sh"))?;
            super::Shell.write(view, Target::Stream(&mut file))?;
            let language = json!({
                "@id": "https://www.gnu.org/software/bash/", "@type": "ComputerLanguage", "name": "Bash",
                "url": {"@id": "https://www.gnu.org/software/bash/"},
            });
            Ok(("workflow.sh", language))
        }
        Err(error) => Err(error),
    }
}

/// Adds the workflow, its steps, and the user that ran them. `tools`: for each step of the
/// inventory the id of its program.
pub fn execution(
    view: &View,
    bill: &Inventory,
    ids: &[String],
    tools: &[String],
    (file, language): (&str, &Value),
) -> Vec<Value> {
    let step_id = |at: usize| {
        format!(
            "{file}#{}-{}",
            bill.steps[at].run,
            super::notation::escaped(bill.steps[at].name.as_bytes())
        )
    };
    let control_id = |at: usize| format!("#control-{}", at + 1);
    let all = 0..bill.steps.len();
    let mut graph = vec![
        json!({
            "@id": file, "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"],
            "name": format!("The steps of {}", view.subject),
            "programmingLanguage": {"@id": language["@id"]},
            "hasPart": references(tools.iter().map(String::as_str)),
            "step": all.clone().map(|at| json!({"@id": step_id(at)})).collect::<Vec<_>>(),
        }),
        whole(view, bill, ids, file),
        engine(view, all.clone().map(control_id).collect()),
    ];
    graph.extend(engines(view).into_values());
    graph.extend(rank_jobs(bill, WHOLE, control_id));
    for at in all {
        let step = &bill.steps[at];
        graph.push(json!({
            "@id": step_id(at), "@type": "HowToStep", "name": step.name, "position": (at + 1).to_string(),
            "workExample": {"@id": tools[at]},
        }));
        graph.push(json!({
            "@id": control_id(at), "@type": "ControlAction", "name": format!("Start of {}", step.name),
            "instrument": {"@id": step_id(at)}, "object": {"@id": action_id(step)},
        }));
    }
    graph
}

/// Adds the workflow as one action, from the files that no step made to the final results.
fn whole(view: &View, bill: &Inventory, ids: &[String], file: &str) -> Value {
    let used = |at: &usize| bill.steps.iter().any(|step| step.inputs.contains(at));
    let items = || 0..bill.items.len();
    let inputs = items().filter(|&at| !bill.items[at].made && used(&at));
    let results = items().filter(|&at| bill.items[at].result);
    let start = bill
        .steps
        .iter()
        .map(|step| step.start)
        .min()
        .unwrap_or_default();
    let end = bill
        .steps
        .iter()
        .map(|step| step.end)
        .max()
        .unwrap_or_default();
    let whole = json!({
        "@id": WHOLE, "@type": "CreateAction", "name": format!("Execution of the steps of {}", view.subject),
        "instrument": {"@id": file},
        "object": references(inputs.map(|at| ids[at].as_str())),
        "result": references(results.map(|at| ids[at].as_str())),
        "startTime": moment(start), "endTime": moment(end),
        "actionStatus": {"@id": "http://schema.org/CompletedActionStatus"},
    });
    match common_rank_id(bill, WHOLE) {
        Some(rank) => with(whole, json!({"identifier": {"@id": rank}})),
        None => whole,
    }
}

/// The recorded commands, which started the steps.
fn engine(view: &View, controls: Vec<String>) -> Value {
    json!({
        "@id": "#organisation", "@type": "OrganizeAction", "name": format!("Recorded execution of {}", view.subject),
        "instrument": references(engines(view).into_keys()),
        "object": references(controls.into_iter()),
        "result": {"@id": WHOLE},
    })
}

fn engines(view: &View) -> BTreeMap<String, Value> {
    let one = |run: &backstory_query::answer::RunDetails| {
        let name = backstory_workflow::shell::line(&run.summary.command);
        let id = format!("#engine-{}", run.summary.id);
        let entity = json!({"@id": id, "@type": "SoftwareApplication", "name": name});
        (id, entity)
    };
    view.runs.iter().map(one).collect()
}
