//! Changes that recorders without the filter announce (`--guard=auto`). They send a request to the
//! supervisor, and make no call that the filter notifies.
//!
//! In: the file, as its process names and has opened it. Out: what the preserver did, as a record.

use crate::arguments::tidy;
use crate::change_preserver::{change_kind, kept_fields};
use crate::hooks::{ContentChange, ContentPreserver, Effort, FoundFile, PreservedContent};
use crate::record_writer::RecordWriter;
use crate::table::ARCH_X86_64;
use backstory_abi::CallerIds;
use backstory_arena::RecordSink;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::sync::atomic::AtomicUsize;

/// The end of links to files that have lost their name.
const GONE: &[u8] = b" (deleted)";

/// A change that a recorder without the filter announces. Its process waits.
#[derive(Debug)]
pub struct AnnouncedChange<'a> {
    /// The process, and the thread in it.
    pub caller: (u32, u32),
    /// `CHANGE_*`.
    pub change: u32,
    /// The device and the inode of the file that the recorder has looked at.
    pub file: (u32, u64),
    /// The descriptor of the directory from which the path starts.
    pub directory: i32,
    /// The path in the process. Empty: the descriptor is the file.
    pub path: &'a [u8],
    /// The file, opened by the process. `None` if only names change.
    pub opened: Option<OwnedFd>,
}

impl AnnouncedChange<'_> {
    /// Preserves the content, if it has to be. `deferred` is that of all filters of the run.
    ///
    /// # Errors
    /// The errno that says why the content could not be looked at.
    pub fn preserve(
        mut self,
        preserver: &dyn ContentPreserver,
        deferred: &AtomicUsize,
    ) -> Result<Option<KeptRecord>, i32> {
        let Some(kind) = change_kind(self.change) else {
            preserver.names_will_change();
            return Ok(None);
        };
        // The kernel drops a descriptor for which this process has no room.
        let mut opened = Some(self.opened.take().ok_or(libc::EMFILE)?);
        let change = ContentChange {
            kind,
            device: self.file.0,
            inode: self.file.1,
            deferred,
        };
        let mut path = Vec::new();
        let preserved = preserver.preserve(&change, Effort::Any, &mut || {
            Ok(opened.take().map(|file| {
                path = self.name_of(&file);
                FoundFile {
                    path: path.clone(),
                    file,
                }
            }))
        });
        // Any effort is allowed, so there is no other error.
        let preserved = preserved.map_err(|_| libc::EAGAIN)?;
        Ok(preserved.map(|preserved| KeptRecord {
            caller: self.caller,
            path,
            preserved,
        }))
    }

    /// The absolute path of the file: as the process names it, unless it names a descriptor.
    fn name_of(&self, file: &OwnedFd) -> Vec<u8> {
        let named = match self.path {
            [] => None,
            [b'/', ..] => Some(tidy(self.path)),
            _ => self
                .start()
                .map(|start| tidy(&[&start[..], b"/", self.path].concat())),
        };
        let is_descriptor = |name: &[u8]| name.starts_with(b"/proc/") || name.starts_with(b"/dev/");
        named
            .filter(|name| !is_descriptor(name))
            .or_else(|| path_of(file))
            .unwrap_or_else(|| self.path.to_vec())
    }

    /// The directory from which the path starts. `None` if it has no name.
    fn start(&self) -> Option<Vec<u8>> {
        let (pid, tid) = self.caller;
        let start = match self.directory {
            libc::AT_FDCWD => read_link(&format!("/proc/{pid}/task/{tid}/cwd")),
            descriptor => read_link(&format!("/proc/{pid}/task/{tid}/fd/{descriptor}")),
        };
        start.filter(|path| path.starts_with(b"/") && !path.ends_with(GONE))
    }
}

/// The path of an open file, or its last one.
fn path_of(file: &OwnedFd) -> Option<Vec<u8>> {
    let path = read_link(&format!("/proc/self/fd/{}", file.as_raw_fd()));
    let path = path.filter(|path| path.starts_with(b"/") && !path.starts_with(b"/memfd:"))?;
    Some(path.strip_suffix(GONE).map(<[u8]>::to_vec).unwrap_or(path))
}

fn read_link(path: &str) -> Option<Vec<u8>> {
    let link = std::fs::read_link(path).ok()?;
    Some(link.into_os_string().into_vec())
}

/// The record about a content that was preserved for a recorder without the filter.
#[derive(Debug)]
pub struct KeptRecord {
    caller: (u32, u32),
    path: Vec<u8>,
    preserved: PreservedContent,
}

impl KeptRecord {
    /// Writes the record, as if the recorder had requested this by a call.
    pub fn write<S: RecordSink>(self, time: u64, out: &mut RecordWriter<S>) {
        let ids = CallerIds {
            pid: self.caller.0,
            tid: self.caller.1,
            nr: libc::SYS_getpriority as u32,
            arch: ARCH_X86_64,
        };
        out.put(time, ids, &kept_fields(self.preserved), &[&self.path]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::{EffortExceeded, FindFile};
    use backstory_abi::{CHANGE_NAME, CHANGE_WRITE};
    use std::fs::File;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    use std::sync::Mutex;

    /// Looks for each file, and keeps its path.
    #[derive(Default)]
    struct Finder(Mutex<Vec<Vec<u8>>>);

    impl ContentPreserver for Finder {
        fn preserve(
            &self,
            _change: &ContentChange<'_>,
            _effort: Effort,
            find: FindFile<'_>,
        ) -> Result<Option<PreservedContent>, EffortExceeded> {
            let found = find()?.expect("the file is open");
            self.0.lock().unwrap().push(found.path);
            Ok(None)
        }

        fn note_change(&self, _device: u32, _inode: u64) -> bool {
            false
        }

        fn names_will_change(&self) {
            self.0.lock().unwrap().push(b"names".to_vec());
        }

        fn note_possible_read(&self) {}

        fn program_starts(&self, _time: u64, _pid: u32, _directory: Option<Vec<u8>>) {}
    }

    /// A request of this process.
    fn request(path: &[u8], directory: i32, opened: Option<OwnedFd>) -> AnnouncedChange<'_> {
        AnnouncedChange {
            caller: (std::process::id(), backstory_sys::gettid()),
            change: CHANGE_WRITE,
            file: (1, 2),
            directory,
            path,
            opened,
        }
    }

    /// The path under which the file of a request is preserved.
    fn found(change: AnnouncedChange<'_>) -> Vec<u8> {
        let finder = Finder::default();
        let kept = change.preserve(&finder, &AtomicUsize::new(0)).unwrap();
        assert!(kept.is_none());
        finder.0.into_inner().unwrap().remove(0)
    }

    fn open(path: &Path) -> Option<OwnedFd> {
        Some(File::open(path).unwrap().into())
    }

    #[test]
    fn a_file_is_named_by_its_process_and_else_by_its_descriptor() {
        let dir = tempfile::tempdir().unwrap();
        let real = std::fs::canonicalize(dir.path()).unwrap();
        let (file, bytes) = (real.join("file"), real.join("file"));
        let bytes = bytes.as_os_str().as_bytes();
        std::fs::write(&file, "content").unwrap();
        let directory = File::open(&real).unwrap();
        let below = directory.as_raw_fd();
        assert_eq!(found(request(bytes, libc::AT_FDCWD, open(&file))), bytes);
        assert_eq!(found(request(b"./file", below, open(&file))), bytes);
        let descriptor = File::open(&file).unwrap();
        let number = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
        for path in [&b""[..], number.as_bytes(), b"/dev/stdin"] {
            let change = request(path, descriptor.as_raw_fd(), open(&file));
            assert_eq!(found(change), bytes, "{path:?}");
        }
        let opened = open(&file);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(found(request(b"", below, opened)), bytes);
    }

    #[test]
    fn a_file_whose_descriptor_was_dropped_is_an_error_and_names_need_none() {
        let change = request(b"/file", libc::AT_FDCWD, None);
        let result = change.preserve(&Finder::default(), &AtomicUsize::new(0));
        assert_eq!(result.err(), Some(libc::EMFILE));
        let names = AnnouncedChange {
            change: CHANGE_NAME,
            ..request(b"/link", libc::AT_FDCWD, None)
        };
        assert_eq!(found(names), b"names");
    }
}
