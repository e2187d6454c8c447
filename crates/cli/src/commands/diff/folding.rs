//! Differences in few words: what is folded in the answer of `diff`.

use std::collections::BTreeMap;

use backstory_replay::diff::{Difference, DifferenceKind, DifferenceWeight};

use super::causes::{Printer, listed};
use crate::text::words::counted;

impl Printer<'_> {
    /// Differences in few words, by kind.
    pub(super) fn folded(&self, differences: &[&Difference]) -> Vec<String> {
        let mut kinds: BTreeMap<(DifferenceKind, bool), Vec<String>> = BTreeMap::new();
        for difference in differences {
            let is_noise = difference.weight == DifferenceWeight::Noise;
            let names = kinds.entry((difference.kind, is_noise)).or_default();
            let name = self.name(&difference.of);
            let name = name.rsplit('/').next().unwrap_or(&name).to_owned();
            names.push(name);
        }
        let mut parts = Vec::new();
        for ((kind, is_noise), mut names) in kinds {
            let number = names.len();
            names.dedup();
            let (one, many) = match (kind, is_noise) {
                (DifferenceKind::Environment, true) => {
                    ("variable of the session", "variables of the session")
                }
                (DifferenceKind::Environment, false) => ("variable", "variables"),
                (DifferenceKind::Variable, _) => ("variable of a command", "variables of commands"),
                (DifferenceKind::Arguments, _) => (
                    "command with other arguments",
                    "commands with other arguments",
                ),
                (DifferenceKind::Command, true) => ("caller of one side", "callers of one side"),
                (DifferenceKind::Command, false) => ("command of one side", "commands of one side"),
                (DifferenceKind::Directory, _) => ("other directory", "other directories"),
                (DifferenceKind::Library, _) => ("library", "libraries"),
                (DifferenceKind::Program, _) => ("program of the system", "programs of the system"),
                (DifferenceKind::Input, _) => ("file of the system", "files of the system"),
                (DifferenceKind::Listing, _) => ("listed directory", "listed directories"),
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
