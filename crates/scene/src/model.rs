//! The data of a scene. Paths and arguments are bytes. Times are ns since 1970.

use backstory_eventlog::event::Time;
use backstory_files::Digest;

use crate::excerpt::Excerpt;
use crate::question::Question;

/// The answer to a question.
#[derive(Debug, Clone)]
pub struct Scene {
    /// The question.
    pub question: Question,
    /// The requests and processes that are meant, the newest first.
    pub incidents: Vec<Incident>,
    /// Further incidents that are older than these.
    pub left_out: usize,
    /// Sentences about what was not searched.
    pub notes: Vec<String>,
}

/// How the request or process of an incident was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// The deep log has the call, and the request that its thread worked on.
    Request,
    /// The request was served while the act happened. The deep log does not have the call, or the
    /// thread had read several requests by then.
    Time,
    /// The process is known. Which of its requests caused the act is not.
    Process,
}

impl Precision {
    /// Its word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Precision::Request => "request",
            Precision::Time => "time",
            Precision::Process => "process",
        }
    }
}

/// One request, or one process, and what it did.
#[derive(Debug, Clone)]
pub struct Incident {
    /// The run.
    pub run: SceneRun,
    /// The process that acted.
    pub process: SceneProcess,
    /// The moment of the act.
    pub time: Time,
    /// The acts of the process on the file of the question.
    pub acts: Vec<FileAct>,
    /// How it was found.
    pub precision: Precision,
    /// The request. `None` if it is not known, or does not exist.
    pub request: Option<SceneRequest>,
    /// The files that were used, the user's own ones first.
    pub files: Vec<SceneFile>,
    /// Programs that were started.
    pub started: Vec<SceneProcess>,
    /// Other connections. Without a deep log: all connections that can have caused the act.
    pub connections: Vec<SceneConnection>,
    /// The command that runs it again.
    pub reconstruct: String,
    /// Sentences about what is not known.
    pub limits: Vec<String>,
}

/// A run.
#[derive(Debug, Clone)]
pub struct SceneRun {
    /// Its id.
    pub id: String,
    /// Its command.
    pub command: Vec<Vec<u8>>,
    /// Its begin.
    pub started: Time,
    /// True if it has a deep log.
    pub is_deep: bool,
}

/// A program in a process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SceneProcess {
    /// The process id.
    pub pid: u32,
    /// The path of the program, if it is known.
    pub program: Option<Vec<u8>>,
    /// Its arguments.
    pub arguments: Vec<Vec<u8>>,
}

/// A request.
#[derive(Debug, Clone)]
pub struct SceneRequest {
    /// Its number in `backstory requests`.
    pub number: usize,
    /// True if the process accepted the connection.
    pub is_served: bool,
    /// The other end. Empty if it is not known.
    pub peer: String,
    /// The process that began with it.
    pub pid: u32,
    /// The number of the accepted connection in the run, from 1.
    pub connection: Option<usize>,
    /// Its first call.
    pub began: Time,
    /// Its last call.
    pub ended: Time,
    /// The bytes that were received on the connection.
    pub received: Excerpt,
    /// The bytes that were sent on the connection.
    pub sent: Excerpt,
}

/// An act on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum FileAct {
    Write,
    Rename,
    Delete,
    Meta,
    Execute,
    Read,
}

impl FileAct {
    /// True if it changes something.
    pub fn is_change(self) -> bool {
        !matches!(self, FileAct::Execute | FileAct::Read)
    }

    /// Its word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            FileAct::Write => "write",
            FileAct::Rename => "rename",
            FileAct::Delete => "delete",
            FileAct::Meta => "meta",
            FileAct::Execute => "exec",
            FileAct::Read => "read",
        }
    }
}

/// A file that an incident used.
#[derive(Debug, Clone)]
pub struct SceneFile {
    /// Its absolute path.
    pub path: Vec<u8>,
    /// The acts on it, in the order of [`FileAct`].
    pub acts: Vec<FileAct>,
    /// True if it is the user's own, or a file of the system that was changed.
    pub is_own: bool,
    /// The digest that the run left at the path, if it wrote the file and the digest is known.
    pub digest: Option<Digest>,
    /// The present state of a file that was changed.
    pub state: Option<LeftState>,
}

/// The present state of a file that an incident changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftState {
    /// It has the content that the run left.
    Unchanged,
    /// It has another content.
    Changed,
    /// It is there. The content that the run left is not known.
    There,
    /// It does not exist.
    Gone,
}

impl LeftState {
    /// Its word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            LeftState::Unchanged => "unchanged",
            LeftState::Changed => "changed",
            LeftState::There => "there",
            LeftState::Gone => "gone",
        }
    }
}

/// A connection that is not the one of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SceneConnection {
    /// The address.
    pub address: String,
    /// The process.
    pub pid: u32,
    /// True if the process accepted connections to the address.
    pub serves: bool,
    /// False if each attempt failed. `None` if that is not known.
    pub connected: Option<bool>,
}
