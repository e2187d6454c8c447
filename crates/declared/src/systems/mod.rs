//! Build systems, one file for each, and the rules of all that a run used.

mod depfiles;
mod listed;
mod make;
mod ninja;
mod snakemake;

pub use listed::Listed;

use std::path::Path;
use std::process::{Command, Stdio};

use backstory_eventlog::event::Bytes;
use backstory_workflow::paths::absolute;

use crate::build_run::BuildRun;
use crate::error::{Error, Result};
use crate::rules::DeclaredRules;

/// The programs of build systems whose calls are looked for in a run.
pub const PROGRAMS: [&str; 5] = ["make", "gmake", "ninja", "samu", "snakemake"];

/// A build system that declares its inputs.
pub trait BuildSystem {
    /// Its name, as answers print it.
    fn name(&self) -> &'static str;

    /// The rules of a run. Empty if the run did not use this build system.
    ///
    /// # Errors
    /// If the build system's program cannot be started, or its files cannot be read.
    fn rules(&self, run: &BuildRun) -> Result<DeclaredRules>;
}

/// The rules of all build systems that a run used, and the name and number of targets of each.
///
/// # Errors
/// As [`BuildSystem::rules`].
pub fn declarations(run: &BuildRun) -> Result<(DeclaredRules, Vec<(&'static str, usize)>)> {
    let systems: [&dyn BuildSystem; 4] = [
        &make::Make,
        &ninja::Ninja,
        &snakemake::Snakemake,
        &depfiles::Depfiles,
    ];
    let mut all = DeclaredRules::default();
    let mut used = Vec::new();
    for system in systems {
        let rules = system.rules(run)?;
        if !rules.is_empty() {
            used.push((system.name(), rules.len()));
            all.extend(rules);
        }
    }
    Ok((all, used))
}

/// The standard output of a build system's program. Its errors are not shown.
fn output_of(command: &mut Command, directory: &Path) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .current_dir(directory)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|source| Error::Start {
            program,
            directory: directory.to_owned(),
            source,
        })?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Absolute paths of names that are relative to a directory.
fn located<'n>(names: impl IntoIterator<Item = &'n str>, directory: &[u8]) -> Vec<Bytes> {
    let names = names.into_iter();
    names
        .map(|name| absolute(name.as_bytes(), directory).into())
        .collect()
}
