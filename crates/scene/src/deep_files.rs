//! The files that the calls of a deep log use.
//!
//! In: the calls of one process after the other. Out: the path and the act of each call that uses a
//! regular file. Invariant: a descriptor's name comes from the kernel (`DESCRIPTOR`) where the log
//! has it, and otherwise from the path that the program passed. A recorder leaves the kernel's name
//! out where it is that path.
//!
//! Absent: renames and removals, which the deep log does not have. The graph has them.

use std::collections::HashMap;

use backstory_abi::deep;
use backstory_deep::{Call, DeepProcess, call_numbers as nr};
use backstory_workflow::paths::absolute;

use crate::model::FileAct;

/// The type bits of a mode, and a regular file.
const S_IFMT: i64 = 0o170_000;
const S_IFREG: i64 = 0o100_000;

/// `open(2)`
const O_ACCMODE: u64 = 3;
const AT_FDCWD: i32 = -100;

/// A use of a file by a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileUse {
    /// The absolute path.
    pub path: Vec<u8>,
    /// The same file, as an earlier call of the process named it.
    pub formerly: Option<Vec<u8>>,
    /// The act.
    pub act: FileAct,
}

/// Follows the files of one process after the other.
#[derive(Debug, Default)]
pub struct DeepFiles {
    epoch: u64,
    directory: Vec<u8>,
    /// The directories of processes, by their ids.
    directories: HashMap<u32, Vec<u8>>,
    open: HashMap<i32, OpenFile>,
}

#[derive(Debug, Clone)]
struct OpenFile {
    path: Vec<u8>,
    act: FileAct,
}

impl DeepFiles {
    /// Takes a call. Returns the use of a file, if it is one.
    pub fn take(&mut self, process: &DeepProcess, call: &Call) -> Option<FileUse> {
        if process.epoch != self.epoch {
            self.epoch = process.epoch;
            self.open.clear();
            let known = self.directories.get(&process.own_pid);
            let known = known.or_else(|| self.directories.get(&process.parent));
            self.directory = known.cloned().unwrap_or_default();
        }
        match call.number {
            deep::BEGIN => {
                if let Some(directory) = call.section(deep::PATH, 5) {
                    self.directory = directory.to_vec();
                }
                let own = (process.own_pid, self.directory.clone());
                self.directories.extend([own]);
                None
            }
            deep::DESCRIPTOR => self.described(call),
            nr::CLOSE => {
                self.open.remove(&call.fd);
                None
            }
            number if nr::ACCEPT.contains(&number) => {
                let fd = i32::try_from(call.result).ok()?;
                self.open.remove(&fd);
                None
            }
            nr::CREAT => self.opened(call, FileAct::Write),
            number if nr::OPENS.contains(&number) => {
                let reads = call.a & O_ACCMODE == 0;
                self.opened(call, if reads { FileAct::Read } else { FileAct::Write })
            }
            number if nr::FILE_WRITES.contains(&number) => self.moved(call, FileAct::Write),
            number if nr::FILE_READS.contains(&number) => self.moved(call, FileAct::Read),
            _ => None,
        }
    }

    fn opened(&mut self, call: &Call, act: FileAct) -> Option<FileUse> {
        let fd = i32::try_from(call.result).ok().filter(|fd| *fd >= 0)?;
        self.open.remove(&fd);
        let path = call.path().filter(|path| !path.is_empty())?;
        let is_whole = path.starts_with(b"/");
        if !is_whole && (call.fd != AT_FDCWD || self.directory.is_empty()) {
            return None;
        }
        let path = absolute(path, &self.directory);
        self.open.insert(
            fd,
            OpenFile {
                path: path.clone(),
                act,
            },
        );
        Some(FileUse {
            path,
            formerly: None,
            act,
        })
    }

    /// The kernel's name of a descriptor that is used for the first time.
    fn described(&mut self, call: &Call) -> Option<FileUse> {
        let path = call.path().unwrap_or_default();
        if call.result & S_IFMT == S_IFREG && path.is_empty() {
            return None;
        }
        if call.result & S_IFMT != S_IFREG || !path.starts_with(b"/") {
            self.open.remove(&call.fd);
            return None;
        }
        let path = path.to_vec();
        let Some(known) = self.open.get_mut(&call.fd) else {
            // It was open when the program began: only what follows is known.
            let act = FileAct::Read;
            self.open.insert(call.fd, OpenFile { path, act });
            return None;
        };
        if known.path == path {
            return None;
        }
        let formerly = Some(std::mem::replace(&mut known.path, path.clone()));
        Some(FileUse {
            path,
            formerly,
            act: known.act,
        })
    }

    fn moved(&mut self, call: &Call, act: FileAct) -> Option<FileUse> {
        if call.result <= 0 {
            return None;
        }
        let path = self.open.get(&call.fd)?.path.clone();
        Some(FileUse {
            path,
            formerly: None,
            act,
        })
    }
}
