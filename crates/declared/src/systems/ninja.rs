//! ninja, also as CMake and Meson use it. `ninja -t targets all` lists the targets, `ninja -t
//! query` their inputs, and `ninja -t deps` the inputs that compilers reported.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{BuildSystem, located, output_of};
use crate::build_run::{BuildRun, ToolCall};
use crate::error::Result;
use crate::rules::DeclaredRules;

/// ninja.
pub struct Ninja;

impl BuildSystem for Ninja {
    fn name(&self) -> &'static str {
        "ninja"
    }

    fn rules(&self, run: &BuildRun) -> Result<DeclaredRules> {
        let mut rules = DeclaredRules::default();
        for call in &run.calls {
            if !call.is_of(&["ninja", "samu"]) {
                continue;
            }
            let build = Build::of(call);
            let base = build.directory.as_os_str().as_bytes().to_vec();
            let listed = build.ask(&["targets", "all"])?;
            let targets: Vec<&str> = listed
                .lines()
                .filter_map(|line| Some(line.rsplit_once(": ")?.0))
                .collect();
            // A command line has room for some thousand names.
            for some in targets.chunks(500) {
                let question: Vec<&str> = std::iter::once("query")
                    .chain(some.iter().copied())
                    .collect();
                parse_query(&build.ask(&question)?, &base, &mut rules);
            }
            parse_deps(&build.ask(&["deps"])?, &base, &mut rules);
        }
        Ok(rules)
    }
}

/// A directory with a `build.ninja`.
struct Build {
    directory: PathBuf,
    file: Option<PathBuf>,
}

impl Build {
    fn of(call: &ToolCall) -> Build {
        let value = |option: &str| {
            let mut words = call.arguments.iter();
            words
                .find_map(|word| {
                    let rest = word.strip_prefix(option.as_bytes())?;
                    Some(if rest.is_empty() {
                        None
                    } else {
                        Some(rest.to_vec())
                    })
                })
                .and_then(|attached| {
                    attached.or_else(|| {
                        let at = call
                            .arguments
                            .iter()
                            .position(|word| **word == *option.as_bytes())?;
                        call.arguments.get(at + 1).map(|next| next.to_vec())
                    })
                })
        };
        let from = Path::new(OsStr::from_bytes(&call.directory));
        let directory = value("-C").map(|dir| from.join(OsStr::from_bytes(&dir)));
        Build {
            directory: directory.unwrap_or_else(|| from.to_owned()),
            file: value("-f").map(|file| PathBuf::from(OsStr::from_bytes(&file))),
        }
    }

    /// The answer of one of ninja's tools.
    fn ask(&self, tool: &[&str]) -> Result<String> {
        let mut command = Command::new("ninja");
        if let Some(file) = &self.file {
            command.arg("-f").arg(file);
        }
        output_of(command.arg("-t").args(tool), &self.directory)
    }
}

/// Adds the answers of `ninja -t query`: a target, `  input: RULE`, and its inputs; `||` marks one
/// that only orders.
fn parse_query(answer: &str, base: &[u8], rules: &mut DeclaredRules) {
    let (mut target, mut in_inputs) = ("", false);
    for line in answer.lines() {
        let text = line.trim_start();
        match line.len() - text.len() {
            0 => {
                target = line.strip_suffix(':').unwrap_or(line);
                in_inputs = false;
            }
            2 => in_inputs = text.starts_with("input:"),
            _ if in_inputs && !text.starts_with("||") => {
                let input = text.trim_start_matches("| ");
                let target = located([target], base).remove(0);
                rules.add(target, located([input], base));
            }
            _ => {}
        }
    }
}

/// Adds the answer of `ninja -t deps`: `TARGET: #deps …`, then its inputs, each in a line.
fn parse_deps(answer: &str, base: &[u8], rules: &mut DeclaredRules) {
    let mut target = "";
    for line in answer.lines() {
        if let Some((name, _)) = line.split_once(": #deps") {
            target = name;
        } else if let Some(input) = line.strip_prefix("    ") {
            let target = located([target], base).remove(0);
            rules.add(target, located([input], base));
        }
    }
}
