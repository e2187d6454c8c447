//! A makefile for GNU make: one rule for each step, and a pattern rule for steps that differ only
//! in a name.

use backstory_ordering::SmallCollect;
use std::collections::BTreeSet;
use std::io::Write;

use backstory_eventlog::event::Bytes;

use crate::family::Family;
use crate::format::{Format, Target, write_head};
use crate::{Error, Result, View};
use backstory_workflow::shell::quote;
use backstory_workflow::steps::{Line, Rule, STEM, Step, rules};

/// A target that is never up to date.
const ALWAYS: &str = "backstory-always";

/// `make`
pub struct Make;

impl Format for Make {
    fn name(&self) -> &'static str {
        "make"
    }
    fn about(&self) -> &'static str {
        "a makefile"
    }
    fn family(&self) -> Family {
        Family::Workflow
    }
    fn proven_by(&self) -> &'static str {
        "GNU make"
    }
    fn hint(&self) -> Option<&'static str> {
        Some("make -f OUT")
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let out = target.stream();
        let shared = view.shared_environment()?;
        let steps = &shared.steps;
        let rules = rules(steps, view.generalise);
        writeln!(
            out,
            "# The steps of {}, as recorded in {}.",
            view.subject,
            quote(&view.base)
        )?;
        writeln!(out, "# Run it there: make -f THIS")?;
        write_head(view, out)?;
        writeln!(out)?;
        if needs_bash(steps) {
            writeln!(out, "SHELL := /bin/bash")?;
        }
        for (name, value) in &shared.variables {
            writeln!(out, "export {name} := {value}")?;
        }
        if !view.whole.is_empty() {
            // A recorded `make` that is a step must not get the options of this one.
            writeln!(out, "unexport MAKEFLAGS MFLAGS MAKELEVEL")?;
        }
        writeln!(
            out,
            "MAKEFLAGS += --no-builtin-rules\n.SUFFIXES:\n.DELETE_ON_ERROR:\n.PHONY: all\n"
        )?;
        let used: BTreeSet<&Bytes> = steps.iter().flat_map(|step| &step.inputs).into_tree();
        let results = steps
            .iter()
            .flat_map(|step| &step.outputs)
            .filter(|path| !used.contains(path));
        let results: Vec<String> = results
            .map(|path| name(view, path))
            .collect::<Result<_>>()?;
        writeln!(out, "all:{}", list(&results))?;
        if steps.iter().any(|step| view.looks(step)) {
            writeln!(out, "\n.PHONY: {ALWAYS}\n{ALWAYS}:")?;
        }
        for rule in &rules {
            write_rule(view, steps, rule, out)?;
        }
        Ok(())
    }
}

fn write_rule(view: &View, steps: &[Step], rule: &Rule, out: &mut dyn Write) -> Result<()> {
    writeln!(out)?;
    let names = |paths: &[Bytes]| {
        paths
            .iter()
            .map(|path| name(view, path))
            .collect::<Result<Vec<_>>>()
    };
    match &rule.template {
        None => {
            let step = &steps[rule.steps[0]];
            // `&:` declares that one recipe makes all targets.
            let outputs = names(&step.outputs)?;
            let colon = if outputs.len() > 1 { " &:" } else { ":" };
            let mut inputs = names(&step.inputs)?;
            // A name that appears is newer than nothing. So the step always runs.
            inputs.extend(view.looks(step).then(|| ALWAYS.to_owned()));
            writeln!(out, "{}{colon}{}", outputs.join(" "), list(&inputs))?;
            write_recipe(view, step, out)
        }
        Some(template) if template.outputs.len() == 1 => {
            let targets = rule
                .steps
                .iter()
                .map(|&at| name(view, &steps[at].outputs[0]));
            let targets = targets.collect::<Result<Vec<_>>>()?;
            let pattern = name(view, &template.outputs[0])?.replace(STEM, "%");
            let (stem, plain): (Vec<_>, Vec<_>) = names(&template.inputs)?
                .into_iter()
                .partition(|name| name.contains(STEM));
            let looks = rule.steps.iter().any(|&at| view.looks(&steps[at]));
            let always = looks.then(|| ALWAYS.to_owned());
            let inputs: Vec<String> = stem
                .into_iter()
                .map(|name| name.replace(STEM, "%"))
                .chain(plain)
                .chain(always)
                .collect();
            writeln!(out, "{}: {pattern}:{}", targets.join(" "), list(&inputs))?;
            write_recipe(view, template, out)?;
            for (instance, target) in targets.iter().enumerate() {
                let further = names(&rule.further_inputs(steps, instance))?;
                if !further.is_empty() {
                    writeln!(out, "{target}:{}", list(&further))?;
                }
            }
            Ok(())
        }
        // A static pattern rule makes one file for each step. Steps with several outputs keep rules
        // of their own.
        Some(_) => rule.steps.iter().try_for_each(|&at| {
            let alone = Rule {
                steps: vec![at],
                template: None,
                stems: Vec::new(),
            };
            write_rule(view, steps, &alone, out)
        }),
    }
}

fn write_recipe(view: &View, step: &Step, out: &mut dyn Write) -> Result<()> {
    for directory in &step.directories {
        writeln!(
            out,
            "\t@mkdir -p {}",
            recipe(&quote(view.shown(directory)))?
        )?;
    }
    for line in &step.lines {
        writeln!(out, "\t{}", recipe(&text(view, line))?)?;
    }
    Ok(())
}

fn text(view: &View, line: &Line) -> String {
    let text = line.shell(&view.base);
    // A recipe's line must not begin with a character that make interprets.
    match text.starts_with(['@', '-', '+']) {
        true => format!("( {text} )"),
        false => text,
    }
}

/// Shell language in a recipe: one line, with `$` doubled and make's own stem.
fn recipe(text: &str) -> Result<String> {
    if text.contains('\n') {
        return Err(Error::Unsayable {
            format: "make",
            what: format!(
                "a command of several lines ({})",
                text.lines().next().unwrap_or_default()
            ),
            advice: "use ninja, snakemake or shell",
        });
    }
    Ok(text.replace('$', "$$").replace(STEM, "$*"))
}

fn needs_bash(steps: &[Step]) -> bool {
    let mut lines = steps.iter().flat_map(|step| &step.lines);
    lines.any(|line| line.command().contains("$'"))
}

/// A path as a target: make splits targets at blanks and expands them.
fn name(view: &View, path: &[u8]) -> Result<String> {
    let unsayable = || Error::Unsayable {
        format: "make",
        what: format!("the file name {}", quote(path)),
        advice: "use ninja, snakemake or shell",
    };
    let text = std::str::from_utf8(view.shown(path)).map_err(|_| unsayable())?;
    // A tilde stands for a home directory only at the begin of a name.
    if text.starts_with('~')
        || text
            .chars()
            .any(|c| c.is_control() || "\"'`;|*?[]\\:=".contains(c))
    {
        return Err(unsayable());
    }
    let mut name = String::new();
    for c in text.chars() {
        match c {
            '$' => name.push_str("$$"),
            ' ' | '#' | '%' => name.extend(['\\', c]),
            c => name.push(c),
        }
    }
    Ok(name)
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| format!(" {name}")).collect()
}
