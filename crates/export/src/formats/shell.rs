//! A shell script: every step in an order that works, whatever is there already.

use std::collections::HashSet;

use crate::format::{Family, Format, Target};
use crate::{Result, View, shell::quote};

/// `shell`
pub struct Shell;

impl Format for Shell {
    fn name(&self) -> &'static str {
        "shell"
    }
    fn about(&self) -> &'static str {
        "a script that runs every step"
    }
    fn family(&self) -> Family {
        Family::Workflow
    }
    fn proven_by(&self) -> &'static str {
        "bash"
    }
    fn hint(&self) -> Option<&'static str> {
        Some("bash OUT")
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let out = target.stream();
        let workflow = view.steps()?;
        writeln!(out, "#!/bin/bash\n# The steps of {}, as recorded.", view.subject)?;
        writeln!(out, "set -eu\ncd {}", quote(&view.base))?;
        let mut made = HashSet::new();
        for step in &workflow.steps {
            writeln!(out)?;
            for directory in step
                .directories
                .iter()
                .filter(|directory| made.insert(*directory))
            {
                writeln!(out, "mkdir -p {}", quote(view.shown(directory)))?;
            }
            for line in &step.lines {
                let text = line.shell(&view.base);
                // What changes the shell itself (`cd`, `exit`) must not reach the next step.
                let text = if text.starts_with("cd ") || line.is_shell() {
                    format!("( {text} )")
                } else {
                    text
                };
                writeln!(out, "{text}")?;
            }
        }
        Ok(())
    }
}
