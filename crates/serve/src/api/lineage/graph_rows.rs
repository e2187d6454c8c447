//! The nodes and links of a lineage, as answers have them.

use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use crate::api::run_row::RunRow;
use crate::api::version_view::PackageRow;
use crate::path_text::PathText;

/// A graph around a file.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct LineageView {
    /// The ids of the subjects.
    pub roots: Vec<String>,
    /// `command` or `process`.
    pub level: &'static str,
    /// `of` (towards the origins) or `uses` (towards the results).
    pub direction: &'static str,
    /// True if there is more than the answer has.
    pub cut: bool,
    /// The nodes.
    pub nodes: Vec<GraphNode>,
    /// The links between them, in the direction in which data flowed.
    pub links: Vec<GraphLink>,
    /// The runs of the nodes, oldest first.
    pub runs: Vec<RunRow>,
    /// Reasons why the answer lacks something, one sentence each.
    pub warnings: Vec<String>,
}

/// A page of the nodes that stand behind one folded node.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct FoldPage {
    /// The folded nodes of this page.
    pub members: Vec<GraphNode>,
    /// The links of these nodes.
    pub links: Vec<GraphLink>,
    /// Nodes of all pages.
    pub total: usize,
    /// The `cursor` of the next page.
    pub next: Option<String>,
}

/// A node of a lineage.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum GraphNode {
    /// A version of a file, a pipe, a socket …
    File(FileNode),
    /// A program that a process executed.
    Process(ProcessNode),
    /// A command as a person would have written it, or several alike.
    Command(CommandNode),
    /// Several files, counted.
    Fold(FoldNode),
}

impl GraphNode {
    /// Its id, unique in the answer.
    pub fn id(&self) -> &str {
        match self {
            GraphNode::File(node) => &node.id,
            GraphNode::Process(node) => &node.id,
            GraphNode::Command(node) => &node.id,
            GraphNode::Fold(node) => &node.id,
        }
    }
}

/// A version of a file, a pipe, a socket …
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct FileNode {
    /// The id of the version.
    pub id: String,
    /// The run that knows it.
    pub run: String,
    /// Its path.
    pub path: PathText,
    /// `file`, `directory`, `pipe` …
    pub kind: &'static str,
    /// 0 for the state before the run; 1, 2 … for each version that the run made.
    pub version: u32,
    /// Its size, if it is known.
    pub size: Option<i64>,
    /// Its last modification.
    pub modified: Option<f64>,
    /// The digest of its content (BLAKE3), if it is known.
    pub digest: Option<String>,
    /// Its content is stored.
    pub kept: bool,
    /// It is the user's own, and not of a package, of the system or of a cache.
    pub own: bool,
    /// No recorded process of the answer made it.
    pub source: bool,
    /// Inputs of the answer of which it has no byte. Empty if its run was not refined.
    pub no_byte_of: Vec<PathText>,
    /// The token that `/lineage/hop` takes to go on from here.
    pub reach: Option<String>,
}

/// A program that a process executed.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct ProcessNode {
    /// The id of the process.
    pub id: String,
    /// Its run.
    pub run: String,
    /// The process id.
    pub pid: u32,
    /// 0 between a fork and the first execution, then 1, 2 … for each program.
    pub epoch: u32,
    /// Its program.
    pub program: Option<PathText>,
    /// Its arguments as a shell line.
    pub line: String,
    /// The directory that it began in.
    pub cwd: PathText,
    /// When it began.
    pub start: f64,
    /// When it ended.
    pub end: f64,
    /// The token that `/lineage/hop` takes to go on from here.
    pub reach: Option<String>,
}

/// A command as a person would have written it, or several alike.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct CommandNode {
    /// Its id: the same in each answer, and that of no other command or group of commands.
    pub id: String,
    /// Its run.
    pub run: String,
    /// The command. Of several alike, the names that differ are patterns.
    pub line: String,
    /// The name of its program.
    pub program: Option<PathText>,
    /// The directory that it ran in.
    pub cwd: PathText,
    /// When the first of them began.
    pub start: f64,
    /// When the last of them ended.
    pub end: f64,
    /// The processes of all of them on the lineage.
    pub processes: usize,
    /// How many commands stand behind this node.
    pub commands: usize,
    /// Content of the user's own files flowed through it.
    pub own: bool,
}

/// Several files, counted. `/lineage/fold` opens them.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct FoldNode {
    /// Its id. It is found again by the same question.
    pub id: String,
    /// The command or process that used the files. `null` if all of them are used alike.
    pub of: Option<String>,
    /// `system`: files of packages, of the system and of caches. `files`: the user's own, alike.
    pub what: &'static str,
    /// How many files.
    pub count: usize,
    /// A description of the files in a few words.
    pub label: String,
    /// Their packages, those with the most files first.
    pub packages: Vec<PackageRow>,
}

/// A link, in the direction in which data flowed.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct GraphLink {
    /// The node that the data came from.
    pub from: String,
    /// The node that it went to.
    pub to: String,
    /// `used`, `generated` or `informed`. Also `derived` (renamed, linked or copied by the kernel),
    /// `same` (the version in another run) and `alike` (the content in another run).
    pub flow: &'static str,
    /// `read`, `write`, `exec` …, or `fork`, `exec`, `wait`, `signal`.
    pub relation: Option<&'static str>,
    /// `seen` or `possible`.
    pub certainty: &'static str,
    /// The earliest moment at which the data can have flowed.
    pub start: f64,
    /// The latest one.
    pub end: f64,
    /// Whether bytes of a file that was read came into the files of the answer behind the link:
    /// `some` or `none`. `null`: that is not known.
    pub bytes: Option<&'static str>,
}
