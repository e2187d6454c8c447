//! A ninja file: one build statement for each step, and one rule for steps that differ only in a
//! name.

use std::io::Write;

use backstory_eventlog::event::Bytes;

use crate::family::Family;
use crate::format::{Format, Target, write_head};
use crate::{Error, Result, View};
use backstory_workflow::shell::quote;
use backstory_workflow::steps::{STEM, SharedEnvironment, Step, rules};

/// `ninja`
pub struct Ninja;

impl Format for Ninja {
    fn name(&self) -> &'static str {
        "ninja"
    }
    fn about(&self) -> &'static str {
        "a build file for ninja"
    }
    fn family(&self) -> Family {
        Family::Workflow
    }
    fn proven_by(&self) -> &'static str {
        "ninja"
    }
    fn hint(&self) -> Option<&'static str> {
        Some("ninja -f OUT")
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
        writeln!(out, "# Run it there: ninja -f THIS")?;
        write_head(view, out)?;
        if steps.iter().any(|step| view.looks(step)) {
            writeln!(
                out,
                "# Names in directories decided, too: remove the outputs after one of them changed."
            )?;
        }
        for rule in rules(steps, view.generalise) {
            let step = rule.template.as_ref().unwrap_or(&steps[rule.steps[0]]);
            let name = rule.name(steps);
            writeln!(
                out,
                "\nrule {name}\n  command = {}",
                command(view, step, &shared)?
            )?;
            for (instance, &at) in rule.steps.iter().enumerate() {
                build(view, &steps[at], name, rule.stems.get(instance), out)?;
            }
        }
        Ok(())
    }
}

fn build(
    view: &View,
    step: &Step,
    rule: &str,
    stem: Option<&String>,
    out: &mut dyn Write,
) -> Result<()> {
    let names = |paths: &[Bytes]| {
        paths
            .iter()
            .map(|path| name(view, path))
            .collect::<Result<Vec<_>>>()
    };
    let inputs: String = names(&step.inputs)?
        .iter()
        .map(|name| format!(" {name}"))
        .collect();
    writeln!(
        out,
        "build {}: {rule}{inputs}",
        names(&step.outputs)?.join(" ")
    )?;
    if let Some(stem) = stem {
        writeln!(out, "  stem = {}", escaped(stem)?)?;
    }
    Ok(())
}

/// All lines of a step in one line: a rule of ninja has one command without line breaks.
fn command(view: &View, step: &Step, shared: &SharedEnvironment) -> Result<String> {
    let directories = step
        .directories
        .iter()
        .map(|directory| format!("mkdir -p {}", quote(view.shown(directory))));
    let lines = step.lines.iter().map(|line| {
        let text = line.shell(&view.base);
        // A change of the shell itself must not reach the next line.
        if step.lines.len() + step.directories.len() > 1 {
            format!("( {text} )")
        } else {
            text
        }
    });
    let whole = directories.chain(lines).collect::<Vec<_>>().join(" && ");
    // Ninja sets no variables of commands.
    let whole = match shared.export() {
        None => whole,
        Some(export) => format!("{export}; {whole}"),
    };
    let whole = if whole.contains("$'") {
        format!("bash -c {}", quote(whole.as_bytes()))
    } else {
        whole
    };
    escaped(&whole)
}

/// Shell language with `$` doubled, and ninja's variable for the stem.
fn escaped(text: &str) -> Result<String> {
    if text.contains('\n') {
        return Err(Error::Unsayable {
            format: "ninja",
            what: format!(
                "a command of several lines ({})",
                text.lines().next().unwrap_or_default()
            ),
            advice: "use snakemake or shell",
        });
    }
    Ok(text.replace('$', "$$").replace(STEM, "${stem}"))
}

fn name(view: &View, path: &[u8]) -> Result<String> {
    let text = std::str::from_utf8(view.shown(path))
        .ok()
        .filter(|text| !text.chars().any(char::is_control));
    let Some(text) = text else {
        return Err(Error::Unsayable {
            format: "ninja",
            what: format!("the file name {}", quote(path)),
            advice: "use snakemake or shell",
        });
    };
    let mut name = String::new();
    for c in text.chars() {
        if "$ :|".contains(c) {
            name.push('$');
        }
        name.push(c);
    }
    Ok(name)
}
