//! A Snakefile: one rule for each step, and one with wildcards for steps that differ only in a
//! name.

use std::io::Write;

use backstory_eventlog::event::Bytes;

use crate::family::Family;
use crate::format::{Format, Target, write_head};
use crate::{Error, Result, View};
use backstory_workflow::shell::quote;
use backstory_workflow::steps::{Rule, STEM, Step, rules};

/// `snakemake`
pub struct Snakemake;

impl Format for Snakemake {
    fn name(&self) -> &'static str {
        "snakemake"
    }
    fn about(&self) -> &'static str {
        "a Snakefile"
    }
    fn family(&self) -> Family {
        Family::Workflow
    }
    fn proven_by(&self) -> &'static str {
        "snakemake"
    }
    fn hint(&self) -> Option<&'static str> {
        Some("snakemake -c1 -s OUT")
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let out = target.stream();
        let shared = view.shared_environment()?;
        let steps = &shared.steps;
        writeln!(
            out,
            "# The steps of {}, as recorded in {}.",
            view.subject,
            quote(&view.base)
        )?;
        writeln!(out, "# Run it there: snakemake -c1 -s THIS")?;
        write_head(view, out)?;
        if steps.iter().any(|step| view.looks(step)) {
            writeln!(
                out,
                "# Names in directories decided, too: use --forceall after one of them changed."
            )?;
        }
        writeln!(out)?;
        if !shared.variables.is_empty() {
            writeln!(out, "import os\n")?;
            for (name, value) in &shared.variables {
                writeln!(out, "os.environ[{}] = {}", literal(name), literal(value))?;
            }
            writeln!(out)?;
        }
        let used = |path: &Bytes| steps.iter().any(|step| step.inputs.contains(path));
        let results: Vec<&Bytes> = steps
            .iter()
            .flat_map(|step| &step.outputs)
            .filter(|path| !used(path))
            .collect();
        writeln!(out, "rule all:\n    input:")?;
        for path in results {
            writeln!(out, "        {},", file(view, path, false)?)?;
        }
        for rule in rules(steps, view.generalise) {
            write_rule(view, steps, &rule, out)?;
        }
        Ok(())
    }
}

fn write_rule(view: &View, steps: &[Step], rule: &Rule, out: &mut dyn Write) -> Result<()> {
    let step = rule.template.as_ref().unwrap_or(&steps[rule.steps[0]]);
    let wild = rule.template.is_some();
    let name = format!("make_{}", rule.name(steps));
    let further: Vec<Vec<Bytes>> = (0..rule.steps.len())
        .map(|at| rule.further_inputs(steps, at))
        .collect();
    writeln!(out)?;
    if further.iter().any(|inputs| !inputs.is_empty()) {
        writeln!(out, "{name}_further = {{")?;
        for (stem, inputs) in rule.stems.iter().zip(&further) {
            let inputs = inputs
                .iter()
                .map(|path| file(view, path, false))
                .collect::<Result<Vec<_>>>()?;
            writeln!(out, "    {}: [{}],", literal(stem), inputs.join(", "))?;
        }
        writeln!(out, "}}\n")?;
    }
    writeln!(out, "rule {name}:")?;
    if !step.inputs.is_empty() || further.iter().any(|inputs| !inputs.is_empty()) {
        writeln!(out, "    input:")?;
        for path in &step.inputs {
            writeln!(out, "        {},", file(view, path, wild)?)?;
        }
        if further.iter().any(|inputs| !inputs.is_empty()) {
            writeln!(
                out,
                "        lambda wildcards: {name}_further[wildcards.stem],"
            )?;
        }
    }
    writeln!(out, "    output:")?;
    for path in &step.outputs {
        writeln!(out, "        {},", file(view, path, wild)?)?;
    }
    if wild {
        let stems: Vec<String> = rule
            .stems
            .iter()
            .map(|stem| stem.replace('.', "\\.").replace('+', "\\+"))
            .collect();
        writeln!(
            out,
            "    wildcard_constraints:\n        stem=r\"{}\",",
            stems.join("|")
        )?;
    }
    writeln!(out, "    shell:")?;
    let mut lines: Vec<String> = Vec::new();
    for directory in &step.directories {
        lines.push(format!("mkdir -p {}", quote(view.shown(directory))));
    }
    lines.extend(step.lines.iter().map(|line| {
        let text = line.shell(&view.base);
        if step.lines.len() > 1 {
            format!("( {text} )")
        } else {
            text
        }
    }));
    let count = lines.len();
    for (at, line) in lines.iter().enumerate() {
        // Snakemake replaces braces, and sets `pipefail`, which the recorded shell did not.
        let end = if at + 1 < count { " && " } else { "" };
        let text = line
            .replace('{', "{{")
            .replace('}', "}}")
            .replace(STEM, "{wildcards.stem}");
        let before = if at == 0 && lines.iter().any(|line| line.contains("|")) {
            "set +o pipefail; "
        } else {
            ""
        };
        writeln!(out, "        {}", literal(&format!("{before}{text}{end}")))?;
    }
    Ok(())
}

/// A path as Python text; in a pattern, the stem becomes a wildcard.
fn file(view: &View, path: &[u8], wild: bool) -> Result<String> {
    let text = std::str::from_utf8(view.shown(path)).map_err(|_| Error::Unsayable {
        format: "snakemake",
        what: format!("the file name {}", quote(path)),
        advice: "use shell",
    })?;
    let text = text.replace('{', "{{").replace('}', "}}");
    Ok(literal(&if wild {
        text.replace(STEM, "{stem}")
    } else {
        text
    }))
}

/// A Python string.
fn literal(text: &str) -> String {
    // A JSON string is a Python string, except for surrogates, which text does not have.
    serde_json::Value::from(text).to_string()
}
