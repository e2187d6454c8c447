//! Differences in few words: what is folded in the answer of `diff`.

use std::collections::BTreeMap;

use backstory_replay::diff::{Difference, DifferenceKind, DifferenceWeight};

use super::causes::{Printer, listed};
use crate::text::words::counted;

impl Printer<'_> {
    /// Differences in few words, by kind.
    pub(super) fn folded(&self, differences: &[&Difference]) -> Vec<String> {
        let mut kinds: BTreeMap<(DifferenceKind, DifferenceWeight), Vec<String>> = BTreeMap::new();
        for difference in differences {
            let of = (difference.kind, difference.weight);
            let names = kinds.entry(of).or_default();
            let name = self.name(&difference.of);
            let name = name.rsplit('/').next().unwrap_or(&name).to_owned();
            names.push(name);
        }
        let mut parts = Vec::new();
        for ((kind, weight), mut names) in kinds {
            let number = names.len();
            names.dedup();
            let (one, many) = match (kind, weight) {
                (DifferenceKind::Environment, DifferenceWeight::Noise) => {
                    ("variable of the session", "variables of the session")
                }
                (DifferenceKind::Environment, _) => ("variable", "variables"),
                (DifferenceKind::Parameter, _) => ("parameter", "parameters"),
                (DifferenceKind::Variable, _) => ("variable of a command", "variables of commands"),
                (DifferenceKind::Arguments, _) => (
                    "command with other arguments",
                    "commands with other arguments",
                ),
                (DifferenceKind::Command, DifferenceWeight::Noise) => (
                    "command of one side that only started others",
                    "commands of one side that only started others",
                ),
                (DifferenceKind::Command, _) => {
                    ("command of one side only", "commands of one side only")
                }
                (DifferenceKind::Directory, _) => (
                    "command in another directory",
                    "commands in other directories",
                ),
                (DifferenceKind::Library, _) => ("library", "libraries"),
                (DifferenceKind::Program, DifferenceWeight::System) => {
                    ("program of the system", "programs of the system")
                }
                (DifferenceKind::Program, _) => ("program of your own", "programs of your own"),
                (DifferenceKind::Input, DifferenceWeight::System) => {
                    ("file of the system", "files of the system")
                }
                (DifferenceKind::Input, _) => ("file of your own", "files of your own"),
                (DifferenceKind::Listing, _) => (
                    "directory with other names in it",
                    "directories with other names in them",
                ),
                (kind, _) => (kind.word(), kind.word()),
            };
            parts.push(format!(
                "{} ({})",
                counted(number, one, many),
                listed(&names)
            ));
        }
        parts
    }
}
