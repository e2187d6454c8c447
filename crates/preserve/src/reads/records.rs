//! The meaning of one record: the files that were read, and the meaning of names.

use super::{ReadSet, Taken};
use backstory_abi::{
    DONE, EXEC_ANNOUNCED, F_CHILD, F_CUT, F_PRIVATE, F_RESOLVED, OPAQUE_UNGUARDED, Record, op,
};
use backstory_eventlog::record::RawRecord;

/// Directories whose entries name the descriptors of the process itself.
const OPEN_ALREADY: [&[u8]; 3] = [b"/dev/fd/", b"/proc/self/fd/", b"/proc/thread-self/fd/"];

impl ReadSet {
    /// Takes over what a record says.
    pub(super) fn apply(&mut self, record: &Taken<'_>) {
        let Some(raw) = RawRecord::parse(record.bytes) else {
            self.everything = true;
            return;
        };
        let h = raw.head;
        self.settle(record.thread, &h);
        let pid = raw.caller.map_or(record.thread.pid, |caller| caller.pid);
        let child = h.flags & F_CHILD != 0;
        let failed = h.state == DONE && h.result < 0;
        let [first, second] = raw.strings();
        match h.op {
            op::START => {
                let parent = record.thread.parent;
                self.paths.begins(h.time, pid, parent, h.aux == 1);
            }
            op::EXIT if !child => self.paths.ends(pid),
            op::GONE => self.paths.ends(h.fd as u32),
            op::CLOSE => self.paths.close(pid, h.fd, h.fd as u32),
            op::CLOSE_RANGE if !failed => self.paths.close(pid, h.fd, h.aux),
            op::DUP if !failed => self.paths.dup(pid, h.fd, h.result),
            op::VFORKED => self.paths.child_is_gone(record.thread),
            _ if failed => {}
            op::CHROOT | op::PIVOT | op::MOUNT => self.everything = true,
            op::NAMESPACE => self.everything |= separates_names(&h),
            op::FORK => {
                self.everything |= separates_names(&h);
                // A child that shares its parent's memory logs among the parent's records.
                let own_memory = h.aux & libc::CLONE_VM as u32 == 0;
                if own_memory && !child && h.result > 0 {
                    self.paths.forks(h.time, pid, h.result.cast_unsigned());
                }
            }
            // A process should have the filter, and could not get it: it may read anything.
            op::OPAQUE => self.everything |= first == OPAQUE_UNGUARDED.as_bytes(),
            _ if h.flags & F_CUT != 0 => self.everything = true,
            op::CHDIR => {
                let known = second.first() == Some(&b'/');
                self.paths
                    .moves(pid, child.then_some(record.thread), known.then_some(second));
            }
            op::RENAME => {
                let both = [(h.arg, second), (h.fd, first)];
                let exchanged = h.aux & libc::RENAME_EXCHANGE != 0;
                for (dir, name) in both.into_iter().take(1 + usize::from(exchanged)) {
                    if let Some(path) = self.absolute(record, &raw, pid, dir, name) {
                        self.read(&path, true);
                        self.renamed.push(path);
                    }
                }
            }
            op::LINK => {
                for (dir, name) in [(h.fd, first), (h.arg, second)] {
                    if let Some(path) = self.path(record, &raw, pid, dir, name) {
                        self.names.add(path);
                    }
                }
            }
            _ => self.opened(record, &raw, pid, first),
        }
    }

    /// A file was opened, executed or loaded.
    fn opened(&mut self, record: &Taken<'_>, raw: &RawRecord<'_>, pid: u32, name: &[u8]) {
        let h = raw.head;
        let flags = h.arg;
        // Directories are not preserved. A directory may be gone by now (`rm -r`), which means
        // nothing.
        let reads =
            h.op != op::OPEN || flags & (libc::O_ACCMODE | libc::O_PATH | libc::O_DIRECTORY) == 0;
        let gives = h.op == op::OPEN && h.state == DONE && raw.caller.is_none();
        if !reads && !gives || name.is_empty() {
            return;
        }
        let Some(path) = self.absolute(record, raw, pid, h.fd, name) else {
            return;
        };
        let path = self.open_already(pid, &path).unwrap_or(path);
        if gives && h.flags & F_CHILD == 0 {
            self.paths.open(pid, h.result, &path);
        }
        if reads && h.flags & F_PRIVATE == 0 {
            // A path below an unknown descriptor that leads to no file was resolved from the wrong
            // directory.
            let certain = name.first() == Some(&b'/') || h.fd == libc::AT_FDCWD;
            let found = self.read(&path, false);
            self.everything |= !found && !certain;
            if h.op == op::EXEC {
                self.read_interpreter(&path);
                if h.aux & EXEC_ANNOUNCED != 0 && raw.caller.is_none() {
                    self.starts_unfiltered(record, raw, pid, found.then_some(path));
                }
            } else if h.op == op::LOAD {
                self.loads_later(raw, path);
            }
        }
    }

    /// The path behind a name for an open descriptor (`/dev/fd/3`), if it was opened in this run.
    fn open_already(&self, pid: u32, path: &[u8]) -> Option<Vec<u8>> {
        let rest = OPEN_ALREADY
            .iter()
            .find_map(|way| path.strip_prefix(*way))?;
        let end = rest
            .iter()
            .position(|&byte| byte == b'/')
            .unwrap_or(rest.len());
        let (number, below) = rest.split_at(end);
        let number = std::str::from_utf8(number).ok()?.parse().ok()?;
        let opened = self.paths.directory(pid, None, number)?;
        Some([&opened, below].concat())
    }

    /// The absolute path of a file that was read. If it is not known, every file counts as read.
    fn absolute(
        &mut self,
        record: &Taken<'_>,
        raw: &RawRecord<'_>,
        pid: u32,
        dir: i32,
        name: &[u8],
    ) -> Option<Vec<u8>> {
        let path = self.path(record, raw, pid, dir, name);
        self.everything |= path.is_none();
        path
    }

    fn path(
        &self,
        record: &Taken<'_>,
        raw: &RawRecord<'_>,
        pid: u32,
        dir: i32,
        name: &[u8],
    ) -> Option<Vec<u8>> {
        if name.first() == Some(&b'/') {
            return Some(name.to_vec());
        }
        let child = (raw.head.flags & F_CHILD != 0).then_some(record.thread);
        let base = (raw.head.flags & F_RESOLVED == 0)
            .then(|| self.paths.directory(pid, child, dir))
            .flatten();
        Some([&base?[..], b"/", name].concat())
    }
}

/// True for a fork or another call after which the names of files mean something else.
fn separates_names(record: &Record) -> bool {
    record.aux & libc::CLONE_NEWNS as u32 != 0
}

/// True for records that say which files are read, or that change the meaning of names.
pub(super) fn matters(record: &Record) -> bool {
    matches!(
        record.op,
        op::START
            | op::OPEN
            | op::CLOSE
            | op::CLOSE_RANGE
            | op::DUP
            | op::RENAME
            | op::LINK
            | op::CHDIR
            | op::CHROOT
            | op::MOUNT
            | op::PIVOT
            | op::NAMESPACE
            | op::FORK
            | op::VFORKED
            | op::EXEC
            | op::EXIT
            | op::LOAD
            | op::GONE
            | op::OPAQUE
    )
}
