//! A workflow in the Common Workflow Language (CWL 1.2), in one file: a tool for each step, and one
//! that collects the results.
//!
//! Every scalar is a JSON string, which is YAML, too. Commands are default values of inputs: in
//! other places, CWL replaces `$(`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use backstory_eventlog::event::Bytes;

use super::notation::file_uri;
use crate::family::Family;
use crate::format::{Format, Target};
use crate::sandbox::{SandboxLayout, SandboxStep};
use crate::{Result, View};
use backstory_workflow::recording::split;

/// `cwl`
pub struct Cwl;

impl Format for Cwl {
    fn name(&self) -> &'static str {
        "cwl"
    }
    fn about(&self) -> &'static str {
        "a workflow in the Common Workflow Language 1.2"
    }
    fn family(&self) -> Family {
        Family::Workflow
    }
    fn proven_by(&self) -> &'static str {
        "cwltool"
    }
    fn hint(&self) -> Option<&'static str> {
        Some("cwltool --no-container --outdir DIR OUT")
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        target.stream().write_all(document(view)?.as_bytes())?;
        Ok(())
    }
}

/// The script of the last step: puts files into their directories, from pairs of a file and a name.
const COLLECT: &str = "while [ $# -gt 0 ]; do mkdir -p \"$(dirname \"$2\")\" && cp \"$1\" \"$2\" || exit 1; shift 2; done";

/// The name of the last step. The names of other steps have no dash.
const COLLECTOR: &str = "all-results";

/// The whole workflow.
pub fn document(view: &View) -> Result<String> {
    let shared = view.shared_environment()?;
    let steps = &shared.steps;
    let sandbox = SandboxLayout::of(view, steps, "cwl")?;
    let mut out = String::new();
    let comment = view.subject.replace(char::is_control, " ");
    line(&mut out, 0, "#!/usr/bin/env cwltool");
    line(
        &mut out,
        0,
        &format!("# The steps of {comment}, as recorded."),
    );
    line(
        &mut out,
        0,
        "# Run it: cwltool --no-container --outdir DIR THIS\n# With --cachedir CACHE, a later run skips steps whose inputs are the same.",
    );
    line(&mut out, 0, "cwlVersion: v1.2\nclass: Workflow");
    section(&mut out, 0, "inputs", !sandbox.sources.is_empty());
    for source in &sandbox.sources {
        let location = string(&file_uri(source.path.as_bytes()));
        line(&mut out, 1, &format!("{}:", source.id));
        line(&mut out, 2, "type: File");
        line(
            &mut out,
            2,
            &format!("default: {{class: File, location: {location}}}"),
        );
    }
    let results = results(&sandbox.cells);
    line(&mut out, 0, "outputs:");
    for (id, (sort, _)) in &results {
        line(
            &mut out,
            1,
            &format!("{id}: {{type: {sort}, outputSource: {COLLECTOR}/{id}}}"),
        );
    }
    line(&mut out, 0, "steps:");
    for (at, step) in steps.iter().enumerate() {
        let mut environment = locale(&view.runs[step.run].environment);
        environment.extend(shared.variables.clone());
        tool(&mut out, (&sandbox, steps), at, &environment);
    }
    collect(&mut out, &sandbox, &results, steps);
    Ok(out)
}

/// The outputs of the workflow: files at the top, and directories with files, by their ids.
fn results(cells: &[SandboxStep]) -> BTreeMap<String, (&'static str, String)> {
    let mut tops = BTreeMap::new();
    for output in cells.iter().flat_map(|cell| &cell.outputs) {
        match output.place.split_once('/') {
            Some((top, _)) => tops.insert(top.to_owned(), "Directory"),
            None => tops.insert(output.place.clone(), "File"),
        };
    }
    let mut taken = BTreeSet::new();
    let mut results = BTreeMap::new();
    for (name, sort) in tops {
        let plain: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        let mut id = format!("out_{plain}");
        while !taken.insert(id.clone()) {
            id.push('_');
        }
        results.insert(id, (sort, name));
    }
    results
}

fn tool(
    out: &mut String,
    (sandbox, steps): (&SandboxLayout, &[backstory_workflow::steps::Step]),
    at: usize,
    environment: &BTreeMap<String, String>,
) {
    let cell = &sandbox.cells[at];
    line(out, 1, &format!("{}:", steps[at].name));
    let sources = cell.inputs.iter().map(|input| {
        let from = match input.made_by {
            Some(maker) => format!("{}/{}", steps[maker].name, input.id),
            None => input.id.clone(),
        };
        format!("{}: {from}", input.id)
    });
    line(
        out,
        2,
        &format!("in: {{{}}}", sources.collect::<Vec<_>>().join(", ")),
    );
    let given: Vec<&str> = cell
        .outputs
        .iter()
        .map(|output| output.id.as_str())
        .collect();
    line(out, 2, &format!("out: [{}]", given.join(", ")));
    line(out, 2, "run:");
    line(out, 3, "class: CommandLineTool");
    let staged: Vec<_> = cell
        .inputs
        .iter()
        .filter_map(|input| Some((&input.id, input.place.as_ref()?)))
        .collect();
    section(
        out,
        3,
        "requirements",
        !staged.is_empty() || !environment.is_empty(),
    );
    if !staged.is_empty() {
        line(out, 4, "InitialWorkDirRequirement:");
        line(out, 5, "listing:");
        // A file that the step may change is copied, not linked.
        let copied = if steps[at].refuses_links() {
            ", writable: true"
        } else {
            ""
        };
        for (id, place) in staged {
            let entry = format!(
                "- {{entryname: {}, entry: $(inputs.{id}){copied}}}",
                string(place)
            );
            line(out, 6, &entry);
        }
    }
    if !environment.is_empty() {
        line(out, 4, "EnvVarRequirement:");
        line(out, 5, "envDef:");
        for (name, value) in environment {
            line(out, 6, &format!("{name}: {}", string(value)));
        }
    }
    line(out, 3, "inputs:");
    line(out, 4, "command:");
    line(out, 5, "type: string");
    line(out, 5, &format!("default: {}", string(&cell.script)));
    line(out, 5, "inputBinding: {position: 1}");
    for input in &cell.inputs {
        line(out, 4, &format!("{}: File", input.id));
    }
    line(out, 3, "outputs:");
    for output in &cell.outputs {
        line(
            out,
            4,
            &format!(
                "{}: {{type: File, outputBinding: {{glob: {}}}}}",
                output.id,
                string(&output.place)
            ),
        );
    }
    line(
        out,
        3,
        &format!(
            "baseCommand: [{}, -c]",
            if cell.bash { "bash" } else { "sh" }
        ),
    );
}

/// The last step, which puts the outputs of the others into their directories.
fn collect(
    out: &mut String,
    sandbox: &SandboxLayout,
    results: &BTreeMap<String, (&'static str, String)>,
    steps: &[backstory_workflow::steps::Step],
) {
    let all: Vec<_> = sandbox
        .cells
        .iter()
        .zip(steps)
        .flat_map(|(cell, step)| cell.outputs.iter().map(move |output| (step, output)))
        .collect();
    line(out, 1, &format!("{COLLECTOR}:"));
    line(out, 2, "in:");
    for (step, output) in &all {
        line(
            out,
            3,
            &format!("{}: {}/{}", output.id, step.name, output.id),
        );
    }
    let ids: Vec<&str> = results.keys().map(String::as_str).collect();
    line(out, 2, &format!("out: [{}]", ids.join(", ")));
    line(out, 2, "run:");
    line(out, 3, "class: CommandLineTool\n      inputs:");
    line(out, 4, "command:");
    line(
        out,
        5,
        &format!("type: string\n          default: {}", string(COLLECT)),
    );
    line(out, 5, "inputBinding: {position: 1}");
    for (at, (_, output)) in all.iter().enumerate() {
        let (file, name) = (3 + 2 * at, 4 + 2 * at);
        line(
            out,
            4,
            &format!(
                "{}: {{type: File, inputBinding: {{position: {file}}}}}",
                output.id
            ),
        );
        let place = string(&output.place);
        line(
            out,
            4,
            &format!(
                "name_{at}: {{type: string, default: {place}, inputBinding: {{position: {name}}}}}"
            ),
        );
    }
    line(out, 3, "outputs:");
    for (id, (sort, name)) in results {
        line(
            out,
            4,
            &format!(
                "{id}: {{type: {sort}, outputBinding: {{glob: {}}}}}",
                string(name)
            ),
        );
    }
    line(out, 3, "baseCommand: [sh, -c]");
    line(out, 3, "arguments: [{position: 2, valueFrom: results}]");
}

/// The variables that decide how text is sorted and shown: engines do not pass them to a step.
fn locale(environment: &[Bytes]) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (name, value) in environment.iter().filter_map(|pair| split(pair)) {
        let (Ok(name), Ok(value)) = (std::str::from_utf8(name), std::str::from_utf8(value)) else {
            continue;
        };
        let plain = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let decides = name.starts_with("LC_") || matches!(name, "LANG" | "LANGUAGE" | "TZ");
        if plain && decides && !value.contains("$(") && !value.contains("${") {
            all.insert(name.to_owned(), value.to_owned());
        }
    }
    all
}

fn section(out: &mut String, depth: usize, name: &str, filled: bool) {
    line(
        out,
        depth,
        &format!("{name}:{}", if filled { "" } else { " {}" }),
    );
}

fn line(out: &mut String, depth: usize, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{:1$}{text}", "", depth * 2);
}

/// A string of JSON.
fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
