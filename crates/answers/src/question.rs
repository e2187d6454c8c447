//! The questions, as the extension module sends them to the program: one JSON object.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use backstory_eventlog::event::Time;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A question about a store. Times are nanoseconds since 1970.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum StoreQuestion {
    /// The directory of the store.
    Directory,
    /// The ids of the runs that are being recorded.
    Recording,
    /// Whether the store lacks runs that have ended.
    IsBehind,
    /// The id of the run that the user means; by default the latest.
    Resolve(Option<String>),
    /// The runs that meet all conditions, newest first.
    Runs(RunConditions),
    /// One run, as a table of one row.
    Summary(String),
    /// The files of a run.
    Files(String),
    /// The processes of a run.
    Processes(String),
    /// The edges of a run.
    Edges(String),
    /// The lineage of a file.
    Lineage(FileChoice, LineageScope),
    /// The lineage of versions (entities of the store), in the commands that a person would have
    /// written.
    Steps(Vec<u64>, LineageScope),
    /// Compares two runs (ids or names), or two versions (`PATH@RUN`, or a path).
    Diff(PathWord, PathWord),
    /// The content of a version.
    Contents(FileChoice),
    /// Whether files are current, and why not.
    Status(Vec<PathWord>),
}

/// The conditions that runs have to meet.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RunConditions {
    /// Most runs of the answer.
    pub limit: Option<usize>,
    /// A pattern of the name.
    pub name: Option<String>,
    /// A pattern of the command.
    pub command: Option<String>,
    /// Started then or later.
    pub since: Option<Time>,
    /// Started before.
    pub until: Option<Time>,
    /// The command failed.
    pub failed: bool,
}

/// The version of a file that a question means.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FileChoice {
    /// Its path, or `PATH@RUN`.
    pub path: PathWord,
    /// The newest version that this run used or made.
    pub run: Option<String>,
    /// The version that was there at this moment.
    pub at: Option<Time>,
}

/// How far a lineage goes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct LineageScope {
    /// Towards the sources; otherwise towards the results.
    pub back: bool,
    /// Most processes on a path.
    pub depth: Option<usize>,
    /// With what may have happened but was not observed.
    pub possible: bool,
    /// With look-ups.
    pub lookups: bool,
    /// Patterns of paths to leave out.
    pub exclude: Vec<String>,
    /// In this run only.
    pub within: Option<String>,
}

/// A path, which need not be UTF-8. In JSON it is a list of its bytes.
#[derive(Debug, Clone)]
pub struct PathWord(pub PathBuf);

impl Serialize for PathWord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_os_str().as_bytes().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PathWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = Vec::<u8>::deserialize(deserializer)?;
        Ok(PathWord(OsString::from_vec(bytes).into()))
    }
}
