//! Workflow engines: on the search path, or where `scripts/setup test` installed them.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Place;
use backstory_testkit::need::{find, skipped};

fn repository(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name)
}

/// A virtual environment that `scripts/setup` made apart from that of the tests.
pub fn venv(name: &str) -> PathBuf {
    repository(".venv").join(name)
}

/// An engine that pip installs.
pub fn engine(what: &str, tool: &str) -> Option<PathBuf> {
    let own = venv("workflows/bin").join(tool);
    let found = find(tool).or_else(|| own.exists().then_some(own));
    if found.is_none() {
        skipped(
            what,
            &format!("needs {tool}, which `scripts/setup test` installs"),
        );
    }
    found
}

/// Nextflow without network access: its own launcher, or its parts from Maven's repository.
pub fn nextflow(what: &str, place: &Place) -> Option<Command> {
    let parts = venv("nextflow/lib");
    let mut command = match (find("nextflow"), find("java")) {
        (Some(launcher), _) => Command::new(launcher),
        (None, Some(java)) if parts.is_dir() => {
            let mut command = Command::new(java);
            command
                // Without these permissions nextflow keeps no cache.
                .arg(format!(
                    "@{}",
                    repository("bench/backstory_bench/data/nextflow.args").display()
                ))
                .arg("-cp")
                .arg(parts.join("*"))
                .arg("nextflow.cli.Launcher");
            command
        }
        _ => {
            skipped(
                what,
                "needs nextflow, which `scripts/setup test` installs where java and mvn are",
            );
            return None;
        }
    };
    command
        .env("NXF_OFFLINE", "true")
        .env("NXF_PLUGINS_DEFAULT", "false")
        .env("NXF_HOME", place.work().join("nextflow-home"))
        .current_dir(place.work());
    Some(command)
}

/// The directory of Mermaid's own parser.
pub fn mermaid() -> Option<PathBuf> {
    let packages = venv("mermaid");
    if find("node").is_some() && packages.join("node_modules/mermaid").exists() {
        return packages.canonicalize().ok();
    }
    skipped(
        "export mermaid",
        "needs mermaid, which `scripts/setup test` installs where node and npm are",
    );
    None
}
