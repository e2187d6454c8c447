//! Whether a file of the root has the content that the recorded program read.
//!
//! The deep log has the digests of the ranges that were read. The file's own reads continue in the
//! kernel, so the ranges are read here when the file is opened.

use super::Supervisor;
use crate::engine::caller::NotifiedCall;
use crate::resource::ResourceId;
use backstory_deep::digest::xxh64;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

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
        let directory = format!("/proc/{}/cwd", call.tid);
        let whole = Path::new(&directory).join(OsStr::from_bytes(path));
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
