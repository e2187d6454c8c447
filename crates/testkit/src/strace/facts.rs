//! The meaning of each call for files, in the words of `files --json`.
//!
//! A fact is *required* or *permitted*. An answer without a required fact has missed it. An answer
//! with a permitted fact has invented nothing. The table of calls below is the definition, which
//! docs/testing-oracle.md explains.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::Deserialize;

use super::calls::{Call, What};
use super::line::{Arg, Returned};
use super::lookup;
use super::world::{Context, exec_path};

/// A kind of access, as `files --json` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Word {
    Read,
    Write,
    Delete,
    Rename,
    Exec,
    Stat,
    Dir,
    Missing,
    Link,
    Meta,
}

use Word::{Delete, Dir, Exec, Link, Meta, Missing, Read, Rename, Stat, Write};

/// One operation on one file.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// Words, any of which reports the fact. A permitted fact permits all of them.
    pub words: Vec<Word>,
    /// The file's absolute path as the program named it, and as the kernel resolved it where strace
    /// prints that.
    pub names: Vec<Vec<u8>>,
    /// An answer must contain it.
    pub required: bool,
    /// The call was about the target of a symbolic link, not the link itself.
    pub follows: bool,
    /// The call, for messages.
    pub call: String,
}

/// All facts of the calls, each once. A required fact replaces a permitted one of the same words
/// and names. Calls `acted` with the process of each required fact.
pub fn collect(calls: &[Call], contexts: &[Context], mut acted: impl FnMut(usize)) -> Vec<Fact> {
    let directories = directories(calls, contexts);
    let mut facts = BTreeMap::new();
    for (call, context) in calls.iter().zip(contexts) {
        let What::Call {
            name,
            args,
            returned,
        } = &call.what
        else {
            continue;
        };
        let mut scene = Scene {
            name,
            args,
            returned,
            context,
            directories: &directories,
            found: Vec::new(),
        };
        scene.tell();
        for mut fact in scene.found {
            fact.names.dedup();
            if fact
                .names
                .iter()
                .all(|n| n.starts_with(b"/") && !n.starts_with(b"/memfd:"))
            {
                let known = facts
                    .entry((fact.words.clone(), fact.names.clone(), fact.follows))
                    .or_insert_with(|| fact.clone());
                known.required |= fact.required;
                if fact.required {
                    acted(context.process);
                }
            }
        }
    }
    facts.into_values().collect()
}

/// Paths that were directories at some time during the trace.
fn directories(calls: &[Call], contexts: &[Context]) -> HashSet<Vec<u8>> {
    let mut found = HashSet::new();
    for (call, context) in calls.iter().zip(contexts) {
        let What::Call {
            name,
            args,
            returned,
        } = &call.what
        else {
            continue;
        };
        if !returned.ok() {
            continue;
        }
        match (name.as_str(), args.as_slice()) {
            ("getdents64" | "getdents" | "fchdir", [Arg::Fd { path, .. }, ..]) => {
                found.insert(path.clone())
            }
            ("mkdir" | "rmdir" | "chdir", [Arg::Text { bytes, .. }, ..]) => {
                found.insert(lookup::absolute(&context.cwd, bytes))
            }
            ("mkdirat", [Arg::Fd { path, .. }, Arg::Text { bytes, .. }, ..]) => {
                found.insert(lookup::absolute(path, bytes))
            }
            ("open" | "openat", _) if args.iter().any(|a| a.has("O_DIRECTORY")) => {
                returned.path.clone().is_some_and(|p| found.insert(p))
            }
            _ => false,
        };
    }
    found
}

/// The absolute form of a path whose directory is its root: `..` does not lead above that.
fn within(path: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = vec![b"."];
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if parts.len() == 1 => {}
            part => parts.push(part),
        }
    }
    parts.join(&b'/')
}

/// One call with everything needed to interpret it.
struct Scene<'a> {
    name: &'a str,
    args: &'a [Arg],
    returned: &'a Returned,
    context: &'a Context,
    directories: &'a HashSet<Vec<u8>>,
    found: Vec<Fact>,
}

impl Scene<'_> {
    fn tell(&mut self) {
        match self.name {
            "open" | "creat" => self.open(None, 0),
            "openat" | "openat2" => self.open(Some(0), 1),
            "execve" | "execveat" => self.exec(),
            "connect" => self.connected(),
            "read" | "pread64" | "readv" | "preadv" | "preadv2" => self.moved(0, Read),
            "write" | "pwrite64" | "writev" | "pwritev" | "pwritev2" | "ftruncate"
            | "fallocate" => self.moved(0, Write),
            "getdents" | "getdents64" => self.listed(),
            "mmap" => self.mapped(),
            "sendfile" | "sendfile64" => self.copied(1, 0),
            "copy_file_range" => self.copied(0, 2),
            "splice" => self.copied(0, 2),
            "ioctl"
                if self
                    .args
                    .get(1)
                    .is_some_and(|a| a.has("FICLONE") || a.has("BTRFS_IOC_CLONE")) =>
            {
                self.copied(2, 0)
            }
            "truncate" => self.changed(&[Write], None, 0),
            "mkdir" | "mknod" => self.changed(&[Write, Dir], None, 0),
            "mkdirat" | "mknodat" => self.changed(&[Write, Dir], Some(0), 1),
            "symlink" => self.changed(&[Write, Link], None, 1),
            "symlinkat" => self.changed(&[Write, Link], Some(1), 2),
            "unlink" | "rmdir" => self.changed(&[Delete], None, 0),
            "unlinkat" => self.changed(&[Delete], Some(0), 1),
            "rename" => self.renamed((None, 0), (None, 1)),
            "renameat" | "renameat2" => self.renamed((Some(0), 1), (Some(2), 3)),
            "link" => self.linked((None, 0), (None, 1)),
            "linkat" => self.linked((Some(0), 1), (Some(2), 3)),
            "chmod" | "chown" | "lchown" | "utime" | "utimes" | "setxattr" | "lsetxattr"
            | "removexattr" | "lremovexattr" => {
                self.changed(&[Meta], None, 0);
            }
            "fchmodat" | "fchmodat2" | "fchownat" | "utimensat" | "futimesat" => {
                self.changed(&[Meta], Some(0), 1)
            }
            "fchmod" | "fchown" | "fsetxattr" | "fremovexattr" => self.moved(0, Meta),
            "stat" | "lstat" | "access" | "statfs" | "getxattr" | "lgetxattr" | "listxattr"
            | "llistxattr" => self.looked(None, 0),
            "newfstatat" | "statx" | "faccessat" | "faccessat2" | "name_to_handle_at" => {
                self.looked(Some(0), 1)
            }
            "readlink" => self.link_read(None, 0),
            "readlinkat" => self.link_read(Some(0), 1),
            "chdir" | "chroot" => self.permitted(&[Stat, Dir, Missing], None, 0),
            "fstat" | "fstatfs" | "fchdir" | "lseek" => self.descriptor_permitted(&[Stat, Dir], 0),
            _ => {}
        }
    }

    /// The absolute form of the path argument at `text`. A relative one starts at the descriptor
    /// `dir`. Without a text (NULL or empty), it is the descriptor's own path.
    fn path(&self, dir: Option<usize>, text: usize) -> Option<Vec<u8>> {
        let base = match dir.map(|d| self.args.get(d)) {
            Some(Some(Arg::Fd { path, .. })) => path.as_slice(),
            Some(_) => &[],
            None => &self.context.cwd,
        };
        match self.args.get(text)? {
            Arg::Text { bytes, .. } if bytes.is_empty() && dir.is_some() => Some(base.to_vec()),
            Arg::Text { bytes, .. } if bytes.is_empty() => None,
            Arg::Text { bytes, .. }
                if self
                    .args
                    .iter()
                    .any(|arg| arg.raw().contains("RESOLVE_IN_ROOT")) =>
            {
                Some(lookup::absolute(base, &within(bytes)))
            }
            Arg::Text { bytes, .. } => Some(lookup::absolute(base, bytes)),
            Arg::Raw(null) if null == "NULL" && dir.is_some() => Some(base.to_vec()),
            _ => None,
        }
    }

    fn descriptor(&self, at: usize) -> Option<Vec<u8>> {
        match self.args.get(at)? {
            Arg::Fd {
                path, cwd: false, ..
            } => Some(path.clone()),
            _ => None,
        }
    }

    fn add(&mut self, words: &[Word], names: Vec<Vec<u8>>, required: bool) {
        let nofollow = ["O_NOFOLLOW", "AT_SYMLINK_NOFOLLOW"];
        let stays = self
            .args
            .iter()
            .any(|a| nofollow.iter().any(|flag| a.raw().contains(flag)))
            || [
                "lstat",
                "lchown",
                "lsetxattr",
                "lgetxattr",
                "lremovexattr",
                "llistxattr",
            ]
            .contains(&self.name)
            || words
                .iter()
                .all(|w| matches!(w, Delete | Rename | Link | Missing));
        let error = self.returned.error.as_deref().unwrap_or("ok");
        let call = format!("{} {error}", self.name);
        self.found.push(Fact {
            words: words.to_vec(),
            names,
            required,
            follows: !stays,
            call,
        });
    }

    fn failed_with(&self, errors: &[&str]) -> bool {
        self.returned
            .error
            .as_deref()
            .is_some_and(|e| errors.contains(&e))
    }

    fn absent(&self) -> bool {
        self.failed_with(&["ENOENT", "ENOTDIR"])
    }

    fn open(&mut self, dir: Option<usize>, text: usize) {
        if matches!(self.args.get(text), Some(Arg::Text { bytes, .. }) if bytes.is_empty()) {
            return; // no name
        }
        let Some(path) = self.path(dir, text) else {
            return;
        };
        let flags = self
            .args
            .get(text + 1)
            .map(|a| a.raw().to_owned())
            .unwrap_or_default();
        let creat = self.name == "creat";
        let has = |flag: &str| creat && flag == "O_TRUNC" || flags.contains(flag);
        if self.returned.value.is_none() {
            return self.add(&[Read, Write, Stat, Missing], vec![path], false);
        }
        if !self.returned.ok() {
            if self.failed_with(&["EINTR", "ENOSYS"]) {
                return self.add(&[Read, Write, Stat, Missing], vec![path], false);
            }
            let words: &[Word] = if self.absent() {
                &[Missing]
            } else {
                &[Missing, Stat, Read, Write]
            };
            return self.add(words, vec![path], true);
        }
        let kernel = self.returned.path.clone().unwrap_or_else(|| path.clone());
        if has("O_TMPFILE") {
            return self.add(&[Write, Read, Stat, Dir], vec![path], false);
        }
        let directory =
            self.directories.contains(&kernel) || Path::new(OsStr::from_bytes(&kernel)).is_dir();
        let (writes, both) = (has("O_WRONLY") || creat, has("O_RDWR"));
        let fresh = has("O_TRUNC") || has("O_CREAT") && has("O_EXCL");
        let names = vec![path, kernel];
        if has("O_PATH") || directory {
            return self.add(&[Stat, Dir], names, false);
        }
        if !writes && !both {
            self.add(&[Read], names.clone(), true);
        }
        if both {
            self.add(&[Read], names.clone(), false);
        }
        if fresh {
            self.add(&[Write], names, true);
        } else if writes || both || has("O_CREAT") {
            self.add(&[Write], names, false);
        }
    }

    fn exec(&mut self) {
        let program = self.context.program.clone();
        let Some(path) = exec_path(&self.context.cwd, program, self.name, self.args) else {
            return;
        };
        if self.returned.ok() {
            for interpreter in lookup::loaded(&path).interpreters {
                self.add(
                    &[Exec, Read],
                    vec![lookup::absolute(&self.context.cwd, &interpreter)],
                    true,
                );
            }
            self.add(&[Exec], vec![path.clone()], true);
            self.add(&[Read], vec![path], false);
        } else {
            let words: &[Word] = if self.absent() {
                &[Missing]
            } else {
                &[Missing, Stat, Exec, Read]
            };
            self.add(words, vec![path], self.returned.value.is_some());
        }
    }

    /// A socket that does not exist is missing like any file.
    fn connected(&mut self) {
        let address = self.args.get(1).map(Arg::raw).unwrap_or_default();
        let path = address
            .split_once("sun_path=\"")
            .and_then(|(_, text)| text.split('"').next());
        let path: Vec<u8> = path
            .unwrap_or_default()
            .split("\\x")
            .filter_map(|digits| u8::from_str_radix(digits, 16).ok())
            .collect();
        if self.absent() && !path.is_empty() {
            self.add(
                &[Missing],
                vec![lookup::absolute(&self.context.cwd, &path)],
                true,
            );
        }
    }

    /// Data went through the descriptor at `at`, or its file was changed.
    fn moved(&mut self, at: usize, word: Word) {
        let Some(path) = self.descriptor(at) else {
            return;
        };
        let nothing =
            word == Write && self.name.contains("write") && self.returned.value == Some(0);
        if self.returned.ok() {
            self.add(&[word], vec![path], !nothing);
        } else {
            self.add(&[word], vec![path], false);
        }
    }

    fn listed(&mut self) {
        let Some(path) = self.descriptor(0) else {
            return;
        };
        let required = self.returned.ok();
        self.add(&[Dir], vec![path], required);
    }

    fn mapped(&mut self) {
        let Some(path) = self.descriptor(4) else {
            return;
        };
        let shared = self
            .args
            .get(3)
            .is_some_and(|a| a.raw().contains("MAP_SHARED"));
        if !self.returned.ok() {
            return;
        }
        // /dev/null gives no data.
        let empty = path == b"/dev/null";
        self.add(&[Read], vec![path.clone()], !shared && !empty);
        if shared && self.args.get(2).is_some_and(|a| a.has("PROT_WRITE")) {
            self.add(&[Write], vec![path], true);
        }
    }

    fn copied(&mut self, from: usize, to: usize) {
        let required =
            self.returned.ok() && (self.returned.value != Some(0) || self.name == "ioctl");
        if let Some(path) = self.descriptor(from) {
            self.add(&[Read], vec![path], required);
        }
        if let Some(path) = self.descriptor(to) {
            self.add(&[Write], vec![path], required);
        }
    }

    /// A call that changes the file at its path.
    fn changed(&mut self, words: &[Word], dir: Option<usize>, text: usize) {
        let Some(path) = self.path(dir, text) else {
            return;
        };
        if self.returned.ok() {
            self.add(words, vec![path.clone()], true);
            self.add(&[Write], vec![path], false);
        } else {
            self.add(&[Missing, Stat], vec![path], false);
        }
    }

    fn renamed(&mut self, from: (Option<usize>, usize), to: (Option<usize>, usize)) {
        let (Some(old), Some(new)) = (self.path(from.0, from.1), self.path(to.0, to.1)) else {
            return;
        };
        if !self.returned.ok() {
            self.add(&[Missing, Stat], vec![old], false);
            return self.add(&[Missing, Stat], vec![new], false);
        }
        self.add(&[Rename, Delete], vec![old], true);
        self.add(&[Rename], vec![new.clone()], true);
        self.add(&[Delete, Write], vec![new], false);
    }

    fn linked(&mut self, from: (Option<usize>, usize), to: (Option<usize>, usize)) {
        let (Some(old), Some(new)) = (self.path(from.0, from.1), self.path(to.0, to.1)) else {
            return;
        };
        if !self.returned.ok() {
            self.add(&[Missing, Stat], vec![old], false);
            return self.add(&[Missing, Stat], vec![new], false);
        }
        let flags = ["AT_EMPTY_PATH", "AT_SYMLINK_FOLLOW"];
        if self
            .args
            .iter()
            .any(|a| flags.iter().any(|flag| a.has(flag)))
        {
            // A file that may have had no name gets one.
            self.add(&[Link, Write, Rename], vec![new], true);
            return self.add(&[Link, Stat, Meta], vec![old], false);
        }
        self.add(&[Link, Write], vec![new], true);
        self.add(&[Link, Stat, Meta], vec![old], true);
    }

    /// A look-up, which is known if the recorder is in the process.
    fn looked(&mut self, dir: Option<usize>, text: usize) {
        let Some(path) = self.path(dir, text) else {
            return;
        };
        if self.absent() {
            let looks_up = [
                "stat",
                "lstat",
                "newfstatat",
                "statx",
                "access",
                "faccessat",
                "faccessat2",
            ]
            .contains(&self.name);
            return self.add(&[Missing], vec![path], looks_up && self.context.dynamic);
        }
        self.add(&[Stat], vec![path.clone()], false);
        if !self.returned.ok() {
            self.add(&[Missing], vec![path], false);
        }
    }

    fn link_read(&mut self, dir: Option<usize>, text: usize) {
        let Some(path) = self.path(dir, text) else {
            return;
        };
        // libc's own realpath reads links by absolute path. Its look-ups are not the program's.
        let absolute =
            matches!(self.args.get(text), Some(Arg::Text { bytes, .. }) if bytes.starts_with(b"/"));
        let required = self.context.dynamic && !absolute;
        if self.absent() {
            self.add(&[Missing], vec![path], required);
        } else if required && self.returned.ok() {
            self.add(&[Link], vec![path], true);
        } else {
            self.add(&[Link, Stat], vec![path], false);
        }
    }

    fn permitted(&mut self, words: &[Word], dir: Option<usize>, text: usize) {
        if let Some(path) = self.path(dir, text) {
            self.add(words, vec![path], false);
        }
    }

    fn descriptor_permitted(&mut self, words: &[Word], at: usize) {
        if let Some(path) = self.descriptor(at) {
            self.add(words, vec![path], false);
        }
    }
}
