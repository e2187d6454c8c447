//! A Nextflow script (DSL2): one process for each step, and one for steps that differ only in a
//! name.
//!
//! Files are values, so that one file can feed many processes. A process for several steps gets its
//! files together with their stems and emits its outputs in the same form. The stem identifies each
//! step's own output.

use std::io::Write;

use crate::family::Family;
use crate::format::{Format, Target};
use crate::sandbox::{SandboxLayout, SandboxStep};
use crate::{Result, View};
use backstory_workflow::steps::{Rule, STEM, Step, filled, rules};

/// `nextflow`
pub struct Nextflow;

impl Format for Nextflow {
    fn name(&self) -> &'static str {
        "nextflow"
    }
    fn about(&self) -> &'static str {
        "a Nextflow script"
    }
    fn family(&self) -> Family {
        Family::Workflow
    }
    fn proven_by(&self) -> &'static str {
        "nextflow"
    }
    fn hint(&self) -> Option<&'static str> {
        Some("nextflow run OUT --outdir DIR -resume")
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let out = target.stream();
        let shared = view.shared_environment()?;
        let steps = &shared.steps;
        let sandbox = SandboxLayout::of(view, steps, "nextflow")?;
        let rules = split_up(steps, rules(steps, view.generalise));
        let root = String::from_utf8_lossy(&sandbox.root).into_owned();
        writeln!(out, "#!/usr/bin/env nextflow")?;
        writeln!(
            out,
            "// The steps of {}, as recorded.",
            view.subject.replace(char::is_control, " ")
        )?;
        writeln!(out, "// Run it: nextflow run THIS --outdir DIR -resume\n")?;
        writeln!(out, "nextflow.enable.dsl = 2\n")?;
        writeln!(
            out,
            "params.base = {} // where the inputs are",
            single(&root)
        )?;
        writeln!(out, "params.outdir = 'results' // where the outputs go")?;
        let export = shared.export();
        let mut processes = Vec::new();
        for rule in &rules {
            let process = Process::of(&sandbox, steps, rule)?;
            process.declare(export.as_deref(), out)?;
            processes.push(process);
        }
        writeln!(out, "\nworkflow {{")?;
        for source in &sandbox.sources {
            let path = match source.path.strip_prefix(&format!("{root}/")) {
                Some(below) => format!("params.base + {}", single(&format!("/{below}"))),
                None => single(&source.path),
            };
            writeln!(
                out,
                "    {} = Channel.value(file({path}, glob: false, checkIfExists: true))",
                source.id
            )?;
        }
        for (process, rule) in processes.iter().zip(&rules) {
            process.call(&sandbox, rule, out)?;
        }
        writeln!(out, "}}")?;
        Ok(())
    }
}

/// The rules that can be processes. These rules are split into their steps:
///
/// - rules without inputs,
/// - rules with an instance that has inputs of its own,
/// - rules whose instances need each other, since a process is called once.
fn split_up(steps: &[Step], rules: Vec<Rule>) -> Vec<Rule> {
    let mut all = Vec::new();
    for rule in rules {
        let own = (0..rule.stems.len()).any(|at| !rule.further_inputs(steps, at).is_empty());
        let makes = |path| {
            rule.steps
                .iter()
                .any(|&at| steps[at].outputs.contains(path))
        };
        let rings = rule
            .steps
            .iter()
            .any(|&at| steps[at].inputs.iter().any(makes));
        match &rule.template {
            Some(template) if !own && !rings && !template.inputs.is_empty() => all.push(rule),
            _ => all.extend(rule.steps.iter().map(|&at| Rule {
                steps: vec![at],
                template: None,
                stems: Vec::new(),
            })),
        }
    }
    in_order(steps, all)
}

/// The order in which processes are called: each after those that make its inputs. A rule with
/// several steps waits for all of them.
fn in_order(steps: &[Step], rules: Vec<Rule>) -> Vec<Rule> {
    let mut waiting = rules;
    let mut done: Vec<Rule> = Vec::new();
    while !waiting.is_empty() {
        let unmade = |path| {
            let mut makers = waiting.iter().flat_map(|rule| &rule.steps);
            makers.any(|&at| steps[at].outputs.contains(path))
        };
        let ready = waiting.iter().position(|rule| {
            let mut inputs = rule.steps.iter().flat_map(|&at| &steps[at].inputs);
            !inputs.any(unmade)
        });
        match ready {
            Some(at) => done.push(waiting.remove(at)),
            None => {
                // Two rules need each other's instances: the first one is split.
                let at = waiting
                    .iter()
                    .position(|rule| rule.steps.len() > 1)
                    .unwrap_or(0);
                let rule = waiting.remove(at);
                waiting.extend(rule.steps.iter().map(|&at| Rule {
                    steps: vec![at],
                    template: None,
                    stems: Vec::new(),
                }));
            }
        }
    }
    done
}

/// A rule as a process.
struct Process {
    name: String,
    /// The only step, or the template of several.
    cell: SandboxStep,
    /// True if inputs are copied into the task's directory, not linked.
    copied: bool,
    /// For each input its name in the task's directory.
    inputs: Vec<String>,
    several: bool,
}

impl Process {
    fn of(sandbox: &SandboxLayout, steps: &[Step], rule: &Rule) -> Result<Process> {
        let sort = if rule.template.is_some() {
            "each"
        } else {
            "make"
        };
        let name = format!("{sort}_{}", rule.name(steps));
        let step = rule.template.as_ref().unwrap_or(&steps[rule.steps[0]]);
        let cell = match &rule.template {
            Some(template) => sandbox.bare(template, "nextflow")?,
            None => sandbox.cells[rule.steps[0]].clone(),
        };
        let mut inputs = Vec::new();
        for (at, path) in step.inputs.iter().enumerate() {
            let place = sandbox.place(path, "nextflow")?;
            // The step reads the file in its own place. The task's directory has it only so that
            // Nextflow notices a change.
            inputs.push(place.unwrap_or_else(|| format!(".elsewhere/{at}")));
        }
        Ok(Process {
            name,
            cell,
            inputs,
            copied: step.refuses_links(),
            several: rule.template.is_some(),
        })
    }

    fn declare(&self, export: Option<&str>, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "\nprocess {} {{", self.name)?;
        if self.several {
            writeln!(out, "    tag \"$stem\"")?;
        }
        if self.copied {
            writeln!(out, "    stageInMode 'copy'")?;
        }
        writeln!(out, "    publishDir params.outdir, mode: 'copy'")?;
        let text = |text: &str| {
            if self.several {
                double(text)
            } else {
                single(text)
            }
        };
        if !self.inputs.is_empty() {
            writeln!(out, "\n    input:")?;
        }
        let paths: Vec<String> = self.inputs.iter().map(|place| text(place)).collect();
        match self.several {
            true => {
                let paths: String = paths.iter().map(|path| format!(", path({path})")).collect();
                writeln!(out, "    tuple val(stem){paths}")?;
            }
            false => paths
                .iter()
                .try_for_each(|path| writeln!(out, "    path {path}"))?,
        }
        writeln!(out, "\n    output:")?;
        for (at, output) in self.cell.outputs.iter().enumerate() {
            let path = text(&output.place);
            match self.several {
                true => writeln!(out, "    tuple val(stem), path({path}), emit: out{at}")?,
                false => writeln!(out, "    path {path}, emit: out{at}")?,
            }
        }
        let marks = if self.several { "\"\"\"" } else { "'''" };
        writeln!(out, "\n    script:\n    {marks}")?;
        // Nextflow's shell stops at unset variables, which the recorded shell did not.
        let mut script = "set +u\n".to_owned();
        if let Some(export) = export {
            script.push_str(&format!("{export}\n"));
        }
        script.push_str(&self.cell.script);
        let script = if self.several {
            template(&script)
        } else {
            escaped(&script, '\'')
        };
        // Indentation would change a line break within quotes, which is part of the command.
        let indent = if self.cell.script.replace(" &&\n", "").contains('\n') {
            ""
        } else {
            "    "
        };
        for line in script.split('\n') {
            writeln!(out, "{indent}{line}")?;
        }
        writeln!(out, "{indent}{marks}\n}}")?;
        Ok(())
    }

    /// Calls the process for its steps, and names each file that it makes.
    fn call(&self, sandbox: &SandboxLayout, rule: &Rule, out: &mut dyn Write) -> Result<()> {
        let name = &self.name;
        if !self.several {
            let cell = &sandbox.cells[rule.steps[0]];
            let inputs: Vec<&str> = cell.inputs.iter().map(|input| input.id.as_str()).collect();
            writeln!(out, "    {name}({})", inputs.join(", "))?;
            for (at, output) in cell.outputs.iter().enumerate() {
                writeln!(out, "    {} = {name}.out.out{at}", output.id)?;
            }
            return Ok(());
        }
        let mut instances = Vec::new();
        for (&step, stem) in rule.steps.iter().zip(&rule.stems) {
            let mut text = format!("Channel.value({})", single(stem));
            for place in &self.inputs {
                let wanted = filled(place.as_bytes(), stem);
                let mut inputs = sandbox.cells[step].inputs.iter();
                let found = inputs
                    .find(|input| input.place.as_deref().map(str::as_bytes) == Some(&*wanted));
                // Inputs outside of the root are the same for all steps. They follow each other as
                // in the template.
                let found = found.or_else(|| self.elsewhere(place, &sandbox.cells[step]));
                if let Some(input) = found {
                    text.push_str(&format!(".combine({})", input.id));
                }
            }
            instances.push(text);
        }
        let first = instances.remove(0);
        match instances.is_empty() {
            true => writeln!(out, "    {name}({first})")?,
            false => {
                let rest = instances.join(",\n        ");
                writeln!(out, "    {name}({first}.mix(\n        {rest}))")?;
            }
        }
        for (&step, stem) in rule.steps.iter().zip(&rule.stems) {
            for (at, output) in sandbox.cells[step].outputs.iter().enumerate() {
                let stem = single(stem);
                let id = &output.id;
                writeln!(
                    out,
                    "    {id} = {name}.out.out{at}.filter {{ it[0] == {stem} }}.map {{ it[1] }}.first()"
                )?;
            }
        }
        Ok(())
    }

    fn elsewhere<'c>(
        &self,
        place: &str,
        cell: &'c SandboxStep,
    ) -> Option<&'c crate::sandbox::StepInput> {
        let outside = |places: &String| places.starts_with(".elsewhere/");
        let at = self
            .inputs
            .iter()
            .filter(|place| outside(place))
            .position(|known| known == place)?;
        cell.inputs
            .iter()
            .filter(|input| input.place.is_none())
            .nth(at)
    }
}

/// A Groovy string in which nothing is replaced.
fn single(text: &str) -> String {
    format!("'{}'", escaped(text, '\'').replace('\n', "\\n"))
}

/// A Groovy string in which the stem is replaced.
fn double(text: &str) -> String {
    format!("\"{}\"", template(text).replace('\n', "\\n"))
}

/// The text between double quotes, one or three.
fn template(text: &str) -> String {
    let text = escaped(text, '"').replace('$', "\\$");
    text.replace(STEM, "${stem}")
}

/// The text between quotes, with its line breaks.
fn escaped(text: &str, quote: char) -> String {
    text.replace('\\', "\\\\")
        .replace(quote, &format!("\\{quote}"))
}
