//! Rules of a build: which files each target is declared to depend on.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use backstory_eventlog::event::Bytes;
use backstory_workflow::paths::base_name;

/// Targets and their declared inputs; all paths are absolute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeclaredRules {
    targets: BTreeMap<Bytes, BTreeSet<Bytes>>,
    read_by_tool: BTreeSet<Bytes>,
}

impl DeclaredRules {
    /// Adds inputs of a target. The files that the build tool reads itself do not count as targets:
    /// CMake has rules for `build.ninja` that name all that CMake may read.
    pub fn add(&mut self, target: Bytes, inputs: impl IntoIterator<Item = Bytes>) {
        let own: [&[u8]; 4] = [b"build.ninja", b"Makefile", b"makefile", b"GNUmakefile"];
        if own.contains(&base_name(&target)) {
            return;
        }
        self.targets.entry(target).or_default().extend(inputs);
    }

    /// Adds files that the build tool reads itself to learn the rules. A job that reads them, too,
    /// need not declare them: Snakemake starts itself again for a job.
    pub fn add_read_by_tool(&mut self, files: impl IntoIterator<Item = Bytes>) {
        self.read_by_tool.extend(files);
    }

    /// True for a file that the build tool reads itself.
    pub fn is_read_by_tool(&self, path: &[u8]) -> bool {
        self.read_by_tool.contains(path)
    }

    /// Adds all rules of another build system.
    pub fn extend(&mut self, other: DeclaredRules) {
        self.read_by_tool.extend(other.read_by_tool);
        for (target, inputs) in other.targets {
            self.add(target, inputs);
        }
    }

    /// The number of targets.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// True without any target.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// True if a rule makes this file.
    pub fn makes(&self, target: &[u8]) -> bool {
        self.targets.contains_key(target)
    }

    /// The inputs that a target's own rule names.
    pub fn inputs(&self, target: &[u8]) -> impl Iterator<Item = &Bytes> {
        self.targets.get(target).into_iter().flatten()
    }

    /// The inputs of a target, and the inputs from which those are made.
    pub fn all_inputs(&self, target: &[u8]) -> HashSet<&[u8]> {
        let mut found: HashSet<&[u8]> = HashSet::new();
        let mut waiting: Vec<&[u8]> = self.inputs(target).map(|input| &**input).collect();
        while let Some(input) = waiting.pop() {
            if found.insert(input) {
                waiting.extend(self.inputs(input).map(|input| &**input));
            }
        }
        found
    }

    /// The inputs of all targets.
    pub fn everything(&self) -> HashSet<&[u8]> {
        let inputs = self.targets.values().flatten();
        inputs.map(|input| &**input).collect()
    }
}
