//! The views, and those beside them.

use std::path::PathBuf;

use backstory_query::Direction;

/// A view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// All runs.
    Runs,
    /// The files of a run, by its id.
    RunFiles(String),
    /// The processes of a run, by its id.
    RunProcesses(String),
    /// The history of a file.
    File(PathBuf),
    /// The steps behind a file, or those that used it.
    Lineage(PathBuf, Direction),
}

impl Destination {
    /// The views of the same subject with their titles, this one among them. The Tab key leads
    /// through them.
    pub fn beside(&self) -> Vec<(&'static str, Destination)> {
        match self {
            Destination::Runs => vec![("Runs", Destination::Runs)],
            Destination::RunFiles(run) | Destination::RunProcesses(run) => vec![
                ("Files", Destination::RunFiles(run.clone())),
                ("Processes", Destination::RunProcesses(run.clone())),
            ],
            Destination::File(path) | Destination::Lineage(path, _) => vec![
                ("File", Destination::File(path.clone())),
                (
                    "Lineage: of",
                    Destination::Lineage(path.clone(), Direction::Back),
                ),
                (
                    "Lineage: uses",
                    Destination::Lineage(path.clone(), Direction::Forth),
                ),
            ],
        }
    }
}
