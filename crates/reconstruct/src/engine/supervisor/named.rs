//! Finds the file of the root that a call asks about.
//!
//! In: a path, which may lead through a name of a directory of the process in `/proc`. Out: where
//! the file is, and the path that the record has its results under.
//!
//! The kernel's `/proc/self` is that of the caller, so the supervisor looks such a file up from the
//! directory itself.

use super::Supervisor;
use crate::engine::caller::NotifiedCall;
use crate::resource::{NamedDirectory, is_kernels, path_below, through_directory};
use libc::{AT_FDCWD, SYS_lstat, SYS_stat};
use std::os::unix::ffi::OsStringExt;

/// A file of the root that a call names.
#[derive(Debug)]
pub(super) struct NamedFile {
    /// The descriptor that a relative path begins at.
    pub directory: i32,
    /// The path from there.
    pub path: Vec<u8>,
    /// The path that the record has its results under.
    pub recorded: Vec<u8>,
}

impl NamedFile {
    /// As the arguments of a call name it.
    pub fn new(call: &NotifiedCall, path: &[u8]) -> NamedFile {
        NamedFile {
            directory: match call.number {
                SYS_stat | SYS_lstat => AT_FDCWD,
                _ => call.int(0),
            },
            path: path.to_vec(),
            recorded: path.to_vec(),
        }
    }
}

impl Supervisor {
    /// The file of a path through a directory of the caller in `/proc`. `None`: the path leads
    /// elsewhere, or the directory is virtual.
    ///
    /// The record has results about it under its absolute path, as those of its descriptor, or
    /// under the path as it was passed. `is_known`: it has results under this path.
    pub(super) fn file_through(
        &self,
        call: &NotifiedCall,
        index: usize,
        path: &[u8],
        is_known: impl Fn(&[u8]) -> bool,
    ) -> Option<NamedFile> {
        let own_pid = self.matchers[index].rest.own_pid;
        let (named, rest) = through_directory(path, own_pid)?;
        let directory = match named {
            NamedDirectory::Open(fd) if self.stand_ins.of(call.tid, fd).is_some() => return None,
            NamedDirectory::Open(fd) => fd,
            NamedDirectory::Current | NamedDirectory::Root => AT_FDCWD,
        };
        let absolute = match named {
            NamedDirectory::Root => path_below(b"", rest),
            _ => {
                let link = format!("/proc/{}/{}", call.tid, named.name());
                let link = std::fs::read_link(link).ok()?;
                path_below(&link.into_os_string().into_vec(), rest)
            }
        };
        if is_kernels(&absolute) {
            return None;
        }
        let first = rest.iter().position(|byte| *byte != b'/');
        let within = match named {
            NamedDirectory::Root => absolute.clone(),
            _ => rest[first.unwrap_or(rest.len())..].to_vec(),
        };
        Some(NamedFile {
            directory,
            path: within,
            recorded: match is_known(&absolute) {
                true => absolute,
                false => path.to_vec(),
            },
        })
    }
}
