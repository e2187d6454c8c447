//! Answers to questions: plain data, ready to be printed or serialized. Paths are bytes.

use std::collections::BTreeSet;

use backstory_eventlog::event::{Bytes, Time, Via};
use backstory_eventlog::job_rank::JobRank;
use backstory_files::Digest;
use backstory_files::Ident;
use backstory_graph::marks::Notes;
use backstory_graph::model::Activity;
use backstory_graph::model::{Certainty, EntityKind, Informed, Interval, Relation};
use backstory_store::RunKey;

/// A run as listed.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct RunSummary {
    pub id: String,
    pub name: Option<String>,
    pub note: Option<String>,
    /// The id of the run that this one repeats, if `rerun` made it.
    pub repeats: Option<String>,
    /// The line of a recorded shell that this run is.
    pub line: Option<backstory_eventlog::run::ShellLine>,
    pub command: Vec<Bytes>,
    pub cwd: Bytes,
    pub started: Time,
    /// The end of the command. `None` while it runs.
    pub ended: Option<Time>,
    pub exit: Option<i32>,
    pub signal: Option<i32>,
    pub complete: bool,
    pub lost: u64,
    pub incomplete_because: Vec<String>,
    pub processes: u64,
    pub files_read: u64,
    pub files_written: u64,
    /// The name of the machine.
    pub host: String,
    /// The connection of ssh through which a run of another machine started this one.
    pub ssh_connection: Option<String>,
    /// Its place in a job of a launcher of parallel work.
    pub job_rank: Option<JobRank>,
    /// Its tags by key. Only lists of runs and `details` have them.
    pub tags: Vec<(String, String)>,
    /// True while the run is being recorded. Its verdict is open then.
    pub running: bool,
    /// True if the run was made from the log of another tool.
    pub is_imported: bool,
}

/// Everything that `show` prints beside the summary.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct RunDetails {
    pub summary: RunSummary,
    /// Effects of recording on the programs, one sentence each.
    pub warnings: Vec<String>,
    pub machine: backstory_eventlog::run::Machine,
    pub modes: backstory_eventlog::run::Modes,
    pub environment: Vec<Bytes>,
    /// Socket names of peers outside the run: daemons that may have worked for it.
    pub peers: Vec<String>,
    /// Paths of the devices that stand for hardware or a driver: GPUs, disks, cameras.
    pub devices: Vec<Bytes>,
    /// Runs at the other ends of connections of ssh.
    pub remote: Vec<crate::RemoteEnd>,
    /// Jobs whose ranks are processes of the run.
    pub jobs: Vec<JobProcesses>,
    /// Processes whose look-ups are not known: id and path of the program.
    pub lookups_unknown: Vec<(u64, Option<Bytes>)>,
    /// Its tags, parameters, metrics and git work trees.
    pub annotations: Vec<backstory_store::Annotation>,
    /// Bytes of the finalized log.
    pub log_bytes: u64,
    /// The log of another tool that the run was made from, if it was.
    pub imported: Option<backstory_eventlog::run::ImportedLog>,
    /// The resources that the run used. `None` if unknown.
    pub usage: Option<backstory_eventlog::run::ResourceUsage>,
    /// The database that the run watched, if it did.
    pub database: Option<crate::RecordedDatabase>,
}

/// A job of a launcher of parallel work, and the processes of one run that are ranks of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobProcesses {
    /// The job; `rank` is `None`.
    pub of: JobRank,
    /// The ranks that are processes of the run.
    pub ranks: BTreeSet<u64>,
}

/// One line of `files`: a path and its accesses, at one certainty.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct FileUse {
    pub path: Bytes,
    pub access: Vec<Access>,
    pub via: Via,
    pub certainty: Certainty,
    /// The end of the last operation on it.
    pub last: Time,
    /// The newest version that was used, if its identity is known.
    pub ident: Option<Ident>,
}

/// The use that a process made of the files that a filter accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessFiles {
    /// The process, as in [`ProcessLine::id`].
    pub id: u64,
    /// True if it used such a file.
    pub accepted: bool,
    /// Bytes of the files that it wrote, as they were at the end of the run.
    pub written: u64,
}

/// The acts of one process on one file, as `who` lists them.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct FileTouch {
    pub run: String,
    pub run_name: Option<String>,
    pub id: u64,
    pub activity: Activity,
    /// The name of the file in the run.
    pub path: Bytes,
    pub access: Vec<Access>,
    /// Those of `access` that were not observed.
    pub possible: Vec<Access>,
    /// `Possible` if none of the acts was observed.
    pub certainty: Certainty,
    /// From the first act to the last.
    pub interval: Interval,
    /// The names that the process gave to the file or to a copy of it, and how.
    pub to: Vec<(Derivation, Bytes)>,
    /// The names that the file or its content had before, and how it came from there.
    pub from: Vec<(Derivation, Bytes)>,
}

/// A contact of a process with an address.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct PeerContact {
    /// `tcp:127.0.0.1:80`, `udp:127.0.0.1:53`, `unix:/run/x`
    pub address: Bytes,
    pub id: u64,
    pub activity: Activity,
    /// False if each attempt failed. `None` if that is not known.
    pub connected: Option<bool>,
    /// The errno of the last attempt that failed.
    pub errno: Option<i32>,
    /// True if the process accepted connections to the address.
    pub serves: bool,
    pub sent: bool,
    pub received: bool,
    /// The bytes that it sent and received on connections that it closed. `None` if unknown.
    pub bytes: Option<(u64, u64)>,
    /// From the first act to the last.
    pub interval: Interval,
    /// Names that the address can have had.
    pub names: Vec<PeerName>,
}

/// A name of an address, and how it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct PeerName {
    pub name: String,
    pub source: NameSource,
}

/// How the name of an address is known. The record has no payload of name servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameSource {
    /// The process, or one that started it, looked the name up and got this address.
    Lookup,
    /// `/etc/hosts`, as the run read it, has it. The look-ups of the process are not known.
    HostsFile,
    /// An argument of the process, or of one that started it, has a URL with this host and the
    /// port of the address. It is likely, not certain.
    Arguments,
}

/// How the kernel made one file of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Derivation {
    Renamed,
    Linked,
    Copied,
}

backstory_vocabulary::vocabulary! {
    /// How a run used a file: the words of `files --json`.
    #[allow(missing_docs)]
    pub enum Access: "kind of access" {
        Read = "read",
        Write = "write",
        Delete = "delete",
        Rename = "rename",
        Exec = "exec",
        Stat = "stat",
        Dir = "dir",
        Missing = "missing",
        Link = "link",
        Meta = "meta",
    }
}

/// An exec epoch in a list. Ids are unique in the store.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct ProcessLine {
    pub id: u64,
    pub parent_id: Option<u64>,
    pub parent_pid: Option<u32>,
    pub activity: Activity,
    /// It began by a mark of its program, and not by a fork or exec.
    pub marked: bool,
    /// Processor time of its process from the start of the process to its exit, in ns. Only the
    /// last activity of a process has it, and only if a recorder was in the process.
    pub processor_time: Option<i64>,
    /// The statements of its program about it.
    pub notes: Notes,
    /// The fact about it as JSON, if it is a transaction of a watched database.
    pub transaction: Option<Bytes>,
    /// The rank that it begins with, in a job of a launcher of parallel work.
    pub job_rank: Option<JobRank>,
}

/// A node of a lineage.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Node {
    /// A version of an entity.
    Entity {
        id: u64,
        run: String,
        kind: EntityKind,
        path: Bytes,
        version: u32,
        ident: Option<Ident>,
        /// The digest of its content, if it is known.
        digest: Option<Digest>,
        /// True if the content is stored beside the graph.
        kept: bool,
    },
    /// An exec epoch.
    Activity {
        id: u64,
        run: String,
        pid: u32,
        epoch: u32,
        exec_path: Option<Bytes>,
        argv: Vec<Bytes>,
        cwd: Bytes,
        interval: Interval,
        env_set: Vec<Bytes>,
        env_unset: Vec<Bytes>,
    },
}

/// An edge of a lineage, in the direction of the flow of information.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flow {
    /// The activity used the entity.
    Used(Relation),
    /// The activity generated the entity.
    Generated(Relation),
    /// A version derived from another (rename, link, kernel copy).
    Derived,
    /// The same version in two runs: the identities match.
    Same,
    /// The same content in two runs: the digests match, but not the identities.
    Alike,
    /// One activity informed the other.
    Informed(Informed),
}

/// A link. `from` and `to` are indexes into [`Lineage::nodes`].
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct Link {
    pub from: usize,
    pub to: usize,
    pub flow: Flow,
    pub certainty: Certainty,
    pub interval: Interval,
}

/// The answer of `of` and `uses`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lineage {
    /// Nodes 0 … `roots`-1 are the subject of the question, the newest version of the path first.
    pub nodes: Vec<Node>,
    /// Number of nodes that are the subject of the question.
    pub roots: usize,
    /// Edges.
    pub links: Vec<Link>,
    /// For each node the time that matters there. Backwards it is the latest moment at which its
    /// content can have flowed to the subject. Forwards it is the earliest moment at which the
    /// subject's content can be in it. [`crate::hop`] takes it to go on from the node.
    pub reach: Vec<Time>,
    /// True if the answer was cut at the requested depth or size, or at the end of the time.
    pub cut: bool,
}

impl Lineage {
    /// The ids of the runs that its nodes belong to.
    pub fn runs(&self) -> BTreeSet<&str> {
        let nodes = self.nodes.iter();
        nodes
            .map(|node| match node {
                Node::Activity { run, .. } | Node::Entity { run, .. } => &**run,
            })
            .collect()
    }
}

/// Options of `of` and `uses`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scope {
    /// Include edges that are only possible.
    pub possible: bool,
    /// Follow look-ups (stat, access, missing, listings, links) besides content and execution.
    pub lookups: bool,
    /// Most activities on a path.
    pub depth: Option<usize>,
    /// Most nodes of the answer. The search takes those first that can have influenced the subject
    /// last (or that it can have influenced first).
    pub most: Option<usize>,
    /// Only this run.
    pub run: Option<String>,
    /// Only this run and newer ones.
    pub since: Option<RunKey>,
    /// Leave out entities whose path matches one of these glob patterns (`**` crosses `/`), and do
    /// not follow them.
    pub exclude: Vec<String>,
}
