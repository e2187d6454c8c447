//! A filter as the user configured it.

use std::path::PathBuf;

use backstory_graph::model::{EntityKind, Relation};
use backstory_query::Globs;
use regex::bytes::Regex;

pub use crate::expression::Expression;

backstory_vocabulary::vocabulary! {
    /// The nodes that a filter looks at.
    pub enum Subject: "subject of a filter" {
        /// Files, directories, pipes, sockets, and other things that processes use.
        File = "file",
        /// Processes, one for each program that a process executed.
        Process = "process",
        /// All texts of a run: names of files, commands, directories, variables, attributes.
        Text = "text",
    }
}

backstory_vocabulary::vocabulary! {
    /// The effect if a filter cannot decide about a node.
    pub enum FailureMode: "effect of a failure" {
        /// The node stays as it is.
        Open = "open",
        /// The node is treated as if the filter's condition were true.
        Closed = "closed",
    }
}

/// One filter.
#[derive(Debug, Clone)]
pub struct Filter {
    /// Its name in reports.
    pub name: String,
    /// File and line of its definition.
    pub defined: String,
    /// The nodes that it looks at.
    pub subject: Subject,
    /// Which of these nodes it changes.
    pub condition: Condition,
    /// The change.
    pub action: Action,
    /// The effect if the condition cannot be decided.
    pub failure: FailureMode,
    /// A mistake in its definition. Such a filter cannot decide about any node.
    pub mistake: Option<String>,
}

/// The change of a node.
#[derive(Debug, Clone)]
pub enum Action {
    /// Takes nodes out; lineage stays.
    Drop,
    /// Replaces texts that match, or whole names, by a mark.
    Redact(Option<Regex>),
    /// Replaces texts that match by another text, in which `$1` is the first group.
    Rename(Regex, Vec<u8>),
    /// Makes one process of each matching process and all that it started.
    Abstract,
    /// Keeps this share of the nodes (0 to 1), and takes the others out.
    Sample(f64),
    /// Of the nodes with the same key, keeps the first, and takes the others out. The key is the
    /// name, with texts that match replaced.
    Deduplicate(Option<(Regex, Vec<u8>)>),
    /// Lets a program of the user decide about each node.
    Plugin(PluginProgram),
}

impl Action {
    /// Its word in the configuration.
    pub fn word(&self) -> &'static str {
        match self {
            Action::Drop => "drop",
            Action::Redact(_) => "redact",
            Action::Rename(..) => "rename",
            Action::Abstract => "abstract",
            Action::Sample(_) => "sample",
            Action::Deduplicate(_) => "deduplicate",
            Action::Plugin(_) => "plugin",
        }
    }

    /// All words, in the order of the documentation.
    pub const WORDS: [&str; 7] = [
        "drop",
        "redact",
        "rename",
        "abstract",
        "sample",
        "deduplicate",
        "plugin",
    ];
}

/// The program of a plug-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginProgram {
    /// A command with its arguments.
    Command(Vec<String>),
    /// A file with a WebAssembly component.
    Component(PathBuf),
}

/// Which nodes a filter changes. All given parts must be true.
#[derive(Debug, Clone, Default)]
pub struct Condition {
    /// Patterns of paths. A file matches by its path or another name that it had.
    pub path: Option<Globs>,
    /// Kinds of things. Empty for all.
    pub kinds: Vec<EntityKind>,
    /// Patterns of programs. A file matches if only such programs are related to it.
    pub program: Option<Globs>,
    /// A file matches if all its relations are among these. Empty for all.
    pub relations: Vec<Relation>,
    /// An expression in CEL.
    pub expression: Option<Expression>,
}

impl Condition {
    /// True if every node matches.
    pub fn is_empty(&self) -> bool {
        self.path.is_none()
            && self.program.is_none()
            && self.kinds.is_empty()
            && self.relations.is_empty()
            && self.expression.is_none()
    }
}
