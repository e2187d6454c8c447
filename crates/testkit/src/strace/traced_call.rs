//! One call with its arguments, as the meanings of calls need it.

use std::collections::HashSet;

use super::facts::Word::{Delete, Link, Missing, Rename};
use super::facts::{Fact, Word};
use super::line::{Arg, Returned};
use super::lookup;
use super::world::Context;

/// One call with everything needed to interpret it.
pub struct TracedCall<'a> {
    pub name: &'a str,
    pub args: &'a [Arg],
    pub returned: &'a Returned,
    pub context: &'a Context,
    /// Paths that were directories at some time during the trace.
    pub directories: &'a HashSet<Vec<u8>>,
    /// The facts that were found.
    pub found: Vec<Fact>,
}

impl TracedCall<'_> {
    /// The absolute form of the path argument at `text`. A relative one starts at the descriptor
    /// `dir`. Without a text (NULL or empty), it is the descriptor's own path.
    pub fn path(&self, dir: Option<usize>, text: usize) -> Option<Vec<u8>> {
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

    /// The path of the descriptor argument at `at`.
    pub fn descriptor(&self, at: usize) -> Option<Vec<u8>> {
        match self.args.get(at)? {
            Arg::Fd {
                path, cwd: false, ..
            } => Some(path.clone()),
            _ => None,
        }
    }

    /// Adds a fact.
    pub fn add(&mut self, words: &[Word], mut names: Vec<Vec<u8>>, required: bool) {
        let others = |name: &Vec<u8>| self.context.view.others(name);
        names.extend(names.iter().flat_map(others).collect::<Vec<_>>());
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

    /// True if the call failed with one of these errors.
    pub fn failed_with(&self, errors: &[&str]) -> bool {
        self.returned
            .error
            .as_deref()
            .is_some_and(|e| errors.contains(&e))
    }

    /// True if the call failed because there was no such file.
    pub fn absent(&self) -> bool {
        self.failed_with(&["ENOENT", "ENOTDIR"])
    }
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
