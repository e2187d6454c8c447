//! Whether a file of the root has the content that the recorded program read.
//!
//! The deep log has the digests of the ranges that were read. The file's own reads continue in the
//! kernel, so the ranges are read here when the file is opened.

use super::Supervisor;
use crate::engine::caller::NotifiedCall;
use crate::resource::{ResourceId, through_directory};
use backstory_deep::digest::xxh64;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Most bytes that are read for one file.
const MOST_BYTES: u64 = 1 << 26;
/// Most files that are reported.
const MOST_FILES: usize = 100;

impl Supervisor {
    /// Compares the ranges of a file that is about to be opened with their recorded digests. A file
    /// that cannot be read here is left to the program.
    pub(super) fn check_content(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        id: ResourceId,
        path: &[u8],
    ) {
        let references = &self.matchers[index].rest.references;
        if !references.contains_key(&id) || self.result.other_files.len() >= MOST_FILES {
            return;
        }
        let root = std::fs::read_link(format!("/proc/{}/root", call.tid));
        let own_pid = self.matchers[index].rest.own_pid;
        let whole = path_of(call.tid, own_pid, path);
        let is_file = std::fs::metadata(&whole).is_ok_and(|found| found.is_file());
        // In another root, the path is that of another file.
        if !is_file || root.is_ok_and(|root| root != Path::new("/")) {
            return;
        }
        let Ok(file) = File::open(&whole) else {
            return;
        };
        // A file that is opened many times is compared once.
        let references = &mut self.matchers[index].rest.references;
        let of_file = references.remove(&id).unwrap_or_default();
        let mut rest = MOST_BYTES;
        let differs = of_file.iter().find(|(position, length, digest)| {
            if *length > rest {
                return false;
            }
            rest -= length;
            let mut bytes = vec![0; *length as usize];
            let whole = file.read_exact_at(&mut bytes, *position);
            whole.is_err() || xxh64(&bytes) != *digest
        });
        if let Some((position, ..)) = differs {
            let name = String::from_utf8_lossy(path).into_owned();
            let one = (name, *position);
            if !self.result.other_files.contains(&one) {
                self.result.other_files.push(one);
            }
        }
    }
}

/// A path of a thread, for another process. `/proc/self` leads to a directory of the thread.
fn path_of(tid: u32, own_pid: u32, path: &[u8]) -> PathBuf {
    let own = PathBuf::from(format!("/proc/{tid}"));
    match through_directory(path, own_pid) {
        Some((directory, rest)) => {
            let rest = [directory.name().as_bytes(), b"/", rest].concat();
            own.join(OsStr::from_bytes(&rest))
        }
        None => own.join("cwd").join(OsStr::from_bytes(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::path_of;
    use std::path::Path;

    #[test]
    fn a_path_through_a_directory_of_a_process_leads_there_from_another_one() {
        let all: [(&[u8], &str); 5] = [
            (b"/proc/self/fd/7/x", "/proc/34/fd/7/x"),
            (b"/dev/fd/7//x", "/proc/34/fd/7/x"),
            (b"/proc/12/cwd/x", "/proc/34/cwd/x"),
            (b"x", "/proc/34/cwd/x"),
            (b"/x", "/x"),
        ];
        for (path, found) in all {
            assert_eq!(path_of(34, 12, path), Path::new(found));
        }
    }
}
