//! A thread whose call was notified, and its view of the file system.

use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A short time in ticks (0.05 to 0.2 s). For so long a thread id still means the same thread, and
/// a change of view may still be under way.
pub const MOMENT: u64 = 200_000_000;
/// A root directory or mount namespace other than the supervisor's.
#[derive(Debug)]
pub struct ForeignRoot {
    /// The root directory.
    pub fd: OwnedFd,
    /// The prefix of the caller's paths in the links of `/proc`: empty, or a directory.
    pub prefix: Vec<u8>,
    /// The prefix is a directory in the supervisor's namespace too: `chroot` without namespaces.
    pub ours: bool,
}

/// The file system as a thread sees it.
#[derive(Debug, Clone)]
pub enum FileSystemView {
    /// The supervisor's own view.
    Own,
    /// Another root or mount namespace.
    Other(Arc<ForeignRoot>),
}

/// A thread that made a notified call.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Process id of the parent.
    pub parent: u32,
    /// Its view of the file system.
    pub view: FileSystemView,
    /// This is the first notification of the process.
    pub new: bool,
    /// A pidfd of a new process, if one was opened to identify it.
    pub process: Option<Arc<OwnedFd>>,
}

impl Caller {
    /// A thread that could not be identified.
    pub fn unknown(tid: u32) -> Caller {
        Caller {
            pid: tid,
            tid,
            parent: 0,
            view: FileSystemView::Own,
            new: false,
            process: None,
        }
    }
}
