//! Lets the kernel forget files while descriptors are scarce.
//!
//! The kernel remembers a file long after programs have closed it, and the mount has a descriptor
//! of it until then. This asks the kernel to forget files that no program has open.
//!
//! Invariant: no thread that serves requests does this. The kernel waits for the requests in a
//! directory before it forgets an entry of it.

use crate::inode_table::{Inode, InodeTable};
use fuser::{INodeNo, Notifier};
use rustix::fs::{AtFlags, CWD, statat};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Most files in one round. Between two rounds, signals are heeded.
const ROUND: usize = 4096;

/// Lets the kernel forget some files that are not open, if few slots are left. Directories stay: a
/// process may work in one, which would lose its path. Returns whether another round may help.
pub(crate) fn prune(inodes: &InodeTable, notifier: &Notifier) -> bool {
    let descriptors = &inodes.descriptors;
    if !descriptors.is_short() {
        return false;
    }
    let before = descriptors.held();
    for inode in inodes.unused(ROUND) {
        if let Some((parent, name)) = entry_of(inodes, &inode) {
            // A name that the kernel does not know is forgotten already.
            let _ = notifier.inval_entry(INodeNo(parent), OsStr::from_bytes(&name));
        }
    }
    descriptors.held() < before
}

/// The node id of a file's directory, and its name there.
fn entry_of(inodes: &InodeTable, inode: &Arc<Inode>) -> Option<(u64, Vec<u8>)> {
    let path = inode.path();
    let slash = path.iter().rposition(|byte| *byte == b'/')?;
    let (directory, name) = (path.get(..slash)?, path.get(slash + 1..)?);
    let directory = OsStr::from_bytes(if directory.is_empty() {
        b"/"
    } else {
        directory
    });
    let stat = statat(CWD, directory, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some((inodes.node_of(&stat)?, name.to_vec()))
}
