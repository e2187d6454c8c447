//! A shell script with every step, in an order that works whatever files exist already.

use std::collections::HashSet;

use crate::family::Family;
use crate::format::{Format, Target, write_head};
use crate::{Result, View};
use backstory_workflow::shell::quote;

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
        let shared = view.shared_environment()?;
        writeln!(
            out,
            "#!/bin/bash\n# The steps of {}, as recorded.",
            view.subject
        )?;
        write_head(view, out)?;
        writeln!(out, "set -eu\ncd {}", quote(&view.base))?;
        for variable in shared.assignments() {
            writeln!(out, "export {variable}")?;
        }
        let mut made = HashSet::new();
        for step in &shared.steps {
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
                // A change of the shell itself (`cd`, `exit`) must not reach the next step.
                let text = if text.starts_with("cd ") || line.is_shell() && !is_simple(&text) {
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

/// True for a single command that changes nothing of the shell and fails with its own status.
fn is_simple(text: &str) -> bool {
    const CHANGE: [&str; 24] = [
        ".", "alias", "break", "case", "cd", "continue", "eval", "exec", "exit", "export", "for",
        "if", "popd", "pushd", "read", "return", "set", "shift", "source", "trap", "ulimit",
        "umask", "unset", "while",
    ];
    let first = text.split_whitespace().next().unwrap_or_default();
    !text.contains([';', '&', '|', '(', ')', '{', '}', '`', '\n', '!'])
        && !CHANGE.contains(&first)
        && !first.contains('=')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_single_command_that_leaves_the_shell_unchanged_is_simple() {
        assert!(is_simple("gcc -c a.c -o a.o"));
        for text in [
            "cd x",
            "a && b",
            "x=1",
            "exec a",
            ". ./lib",
            "a; b",
            "if a",
            "! a",
            "echo `exit`",
        ] {
            assert!(!is_simple(text), "{text}");
        }
    }
}
