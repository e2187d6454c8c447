//! A thread whose call was notified, and its view of the file system.

use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Ticks (0.05 to 0.2 s) for which a thread that was seen is still the same, and a change of view may still be under way.
pub const MOMENT: u64 = 200_000_000;
/// A root directory or mount namespace that is not ours.
#[derive(Debug)]
pub struct ForeignRoot {
    /// Its root directory.
    pub fd: OwnedFd,
    /// Where the caller's paths lie in what `/proc` shows of its links: empty, or a directory.
    pub prefix: Vec<u8>,
    /// The prefix is a directory in our own namespace, too: `chroot` without namespaces.
    pub ours: bool,
}

/// The file system as a thread sees it.
#[derive(Debug, Clone)]
pub enum FileSystemView {
    /// As we do.
    Own,
    /// Otherwise.
    Other(Arc<ForeignRoot>),
}

/// A thread, as far as it matters here.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Its process.
    pub pid: u32,
    /// Itself.
    pub tid: u32,
    /// Its process's parent.
    pub parent: u32,
    /// Its view of the file system.
    pub view: FileSystemView,
    /// The process has not been met before.
    pub new: bool,
    /// If so: a pidfd of it, where there is one already.
    pub process: Option<Arc<OwnedFd>>,
}

impl Caller {
    /// A thread of which nothing could be found out.
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
