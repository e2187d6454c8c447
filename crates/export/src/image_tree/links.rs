//! Symbolic links of an image: the path behind a path, and the loader behind a program.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use backstory_eventlog::event::Bytes;
use backstory_files::executable;
use backstory_query::Content;
use backstory_workflow::shell;

use super::{ImageTree, TreeNode, seconds};
use crate::{Error, Result};

/// The number of links after which a path counts as a loop: the kernel's limit.
const MOST_LINKS: usize = 40;

impl ImageTree<'_> {
    /// The loader that a program names, unless the run is known to have used it. Old runs lack it.
    pub(super) fn unrecorded_loader(&self, program: &mut dyn Read) -> Result<Option<Vec<u8>>> {
        let mut head = Vec::new();
        program
            .take(executable::HEAD as u64)
            .read_to_end(&mut head)?;
        let known = |path: &[u8]| {
            let names = |content: &Content| {
                std::iter::once(&content.path)
                    .chain(&content.aliases)
                    .any(|name| **name == *path)
            };
            self.view.contents.run(0).files.iter().any(names)
        };
        let loader = executable::loader(&head).filter(|loader| !known(loader));
        Ok(loader.map(Into::into))
    }

    /// Adds a program's loader, with the links that lead to it.
    pub(super) fn loader(&mut self, path: &[u8]) -> Result<()> {
        let lost = |why: String| Error::NoContent {
            path: shell::quote(path),
            why,
            advice: "a container needs the loader of its programs: export it on the machine it was recorded on",
        };
        let mut here = PathBuf::from("/");
        let mut waiting = components(path);
        let mut links = 0;
        while let Some(part) = waiting.pop() {
            if part == b".." {
                here.pop();
                continue;
            }
            here.push(OsStr::from_bytes(&part));
            let name: Bytes = here.as_os_str().as_bytes().into();
            let Ok(target) = std::fs::read_link(&here) else {
                continue;
            };
            links += 1;
            if links > MOST_LINKS {
                return Err(lost("its links lead in a ring".to_owned()));
            }
            let target = target.into_os_string();
            here.pop();
            if target.as_bytes().starts_with(b"/") {
                here = PathBuf::from("/");
            }
            waiting.extend(components(target.as_bytes()));
            self.nodes
                .insert(name, TreeNode::Link(target.as_bytes().into()));
        }
        let changed = std::fs::metadata(&here)
            .map_err(|error| lost(error.to_string()))?
            .mtime();
        if i64::try_from(seconds(self.run.summary.started)).is_ok_and(|started| changed > started) {
            return Err(lost("it has changed since the run".to_owned()));
        }
        let real: Bytes = here.as_os_str().as_bytes().into();
        self.nodes.entry(real).or_insert(TreeNode::Loader);
        Ok(())
    }

    /// The path with its links resolved; with `last`, also the link that it names itself.
    pub(super) fn resolved(&self, path: &[u8], last: bool) -> Bytes {
        let mut done: Vec<u8> = Vec::new();
        let mut waiting: Vec<Vec<u8>> = components(path);
        let mut links = 0;
        while let Some(part) = waiting.pop() {
            if part == b".." {
                done.truncate(done.iter().rposition(|&byte| byte == b'/').unwrap_or(0));
                continue;
            }
            let here = [&done[..], b"/", &part].concat();
            match self.nodes.get(here.as_slice()) {
                Some(TreeNode::Link(target))
                    if links < MOST_LINKS && (last || !waiting.is_empty()) =>
                {
                    links += 1;
                    if target.starts_with(b"/") {
                        done.clear();
                    }
                    waiting.extend(components(target));
                }
                _ => done = here,
            }
        }
        if done.is_empty() {
            b"/".as_slice().into()
        } else {
            done.into()
        }
    }
}

/// The components of a path, the last one first.
fn components(path: &[u8]) -> Vec<Vec<u8>> {
    let parts = path.split(|&byte| byte == b'/').rev();
    parts
        .filter(|part| !part.is_empty() && *part != b".")
        .map(<[u8]>::to_vec)
        .collect()
}
