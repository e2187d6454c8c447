//! Requests: units of work on a connection that a process served or made.
//!
//! In: nothing; `request_walk` finds them. Out: plain data.

/// Which end of a connection the process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It accepted the connection.
    Server,
    /// It made the connection.
    Client,
}

/// One unit of work on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The id that [`crate::DeepLog::walk_requests`] gives with the calls of the request.
    pub id: usize,
    /// The epoch of the process, which names it in the deep log.
    pub epoch: u64,
    /// The process id, as the run's log has it.
    pub pid: u32,
    /// The thread that began with it, as the process sees it.
    pub tid: u32,
    /// Which end the process is.
    pub role: Role,
    /// The descriptor of the connection.
    pub fd: i32,
    /// The other end: an address, `unix:PATH`, or empty if it is not known.
    pub peer: String,
    /// The number of the accepted connection, from 1: by process, then in the order of acceptance.
    /// `None` for a client.
    pub connection: Option<usize>,
    /// Time-stamp counter at its first call.
    pub began: u64,
    /// Time-stamp counter after the last call that moved bytes of it.
    pub ended: u64,
    /// Time-stamp counter after the last call of the process that belongs to it. A client works
    /// with an answer after it has received the last byte.
    pub worked_until: u64,
    /// Time-stamp counter before the last call that sent bytes of it. The other end may have them
    /// before that call returns. Without such a call, as `began`.
    pub sent: u64,
    /// Bytes that the process received.
    pub bytes_in: u64,
    /// Bytes that the process sent.
    pub bytes_out: u64,
    /// Calls of the threads that worked on it, from its first to its last.
    pub calls: u64,
    /// The paths that were opened for it, in order, each once.
    pub files: Vec<Vec<u8>>,
    /// Those of them that were opened for writing.
    pub written: Vec<Vec<u8>>,
    /// More were opened for writing than `written` has: the lists have a bound.
    pub wrote_more: bool,
}

/// The part of a call in the request that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Bytes of the connection entered.
    Received,
    /// Bytes of the connection left.
    Sent,
    /// Any other call, also one on another connection.
    Other,
}
