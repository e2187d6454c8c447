//! The file system that a container of a run needs.
//!
//! In: a view of one run. Out: an [`ImageTree`] with every file, link and directory that the run
//! used, as they were before it. Invariant: no file that the run made is in it.

mod archive;
mod links;

use backstory_ordering::SmallCollect;
use std::collections::{BTreeMap, BTreeSet};

use backstory_eventlog::event::Bytes;
use backstory_graph::model::EntityKind;
use backstory_query::answer::RunDetails;
use backstory_query::{Content, ContentRole, RunContents};
use backstory_workflow::paths::{is_of_kernel, is_tool, parent};

use crate::{Error, Result, View};

/// A run and the files it needs.
pub struct ImageTree<'v> {
    view: &'v View,
    /// The run.
    pub run: &'v RunDetails,
    /// The file system by absolute path; a directory comes before its entries.
    pub nodes: BTreeMap<Bytes, TreeNode<'v>>,
}

/// An entry of the file system.
#[derive(Debug, Clone)]
pub enum TreeNode<'v> {
    /// A directory with its permission bits.
    Directory(u32),
    /// A symbolic link with its target.
    Link(Bytes),
    /// A file.
    File(&'v Content),
    /// A program's loader that no record names: the one of this machine.
    Loader,
    /// A file that the run only looked at: size, modification time in nanoseconds, mode. Its
    /// content is zeros.
    Looked(u64, i64, u32),
}

/// The size limit of a file that the run only looked at, so that no image carries gigabytes of
/// zeros.
const MOST_OF_NOTHING: u64 = 1 << 20;

impl<'v> ImageTree<'v> {
    /// The file system that a view's run needs. `format`: the name of the format, for errors.
    ///
    /// # Errors
    ///
    /// If the view has several runs, or a needed content is not available.
    pub fn of(view: &'v View, format: &'static str) -> Result<ImageTree<'v>> {
        if view.runs.len() != 1 {
            return Err(Error::Unsayable {
                format,
                what: format!("the {} runs behind {}", view.runs.len(), view.subject),
                advice: "a container runs one command: export one of the runs by its id",
            });
        }
        let contents = view.contents.run(0);
        if !contents.settled && view.runs[0].modes.stores_contents() {
            return Err(Error::NoContent {
                path: view.subject.clone(),
                why: "what its files held has not been stored yet".to_owned(),
                advice: "`backstory index --wait` stores it now",
            });
        }
        let mut tree = ImageTree {
            view,
            run: &view.runs[0],
            nodes: BTreeMap::new(),
        };
        tree.places(contents);
        for content in &contents.files {
            tree.file(content)?;
        }
        tree.looked(contents);
        for (path, mode) in [
            ("/tmp", 0o1777),
            ("/dev", 0o755),
            ("/proc", 0o555),
            ("/sys", 0o555),
        ] {
            tree.nodes
                .entry(path.as_bytes().into())
                .or_insert(TreeNode::Directory(mode));
        }
        let cwd = tree.resolved(&tree.run.summary.cwd, true);
        tree.nodes.entry(cwd).or_insert(TreeNode::Directory(0o755));
        tree.parents();
        Ok(tree)
    }

    /// Adds the directories and links above the run's files, except those that the run made.
    fn places(&mut self, contents: &'v RunContents) {
        let made: BTreeSet<&Bytes> = contents
            .files
            .iter()
            .filter(|content| content.kind != EntityKind::File && is_made(content))
            .map(|content| &content.path)
            .into_tree();
        for place in &contents.snapshot {
            if made.contains(&place.path) || is_of_kernel(&place.path) {
                continue;
            }
            let node = match &place.target {
                Some(target) => TreeNode::Link(target.clone()),
                None => TreeNode::Directory(place.mode & 0o7777),
            };
            self.nodes.insert(place.path.clone(), node);
        }
    }

    /// Adds the files that the run only looked at, and the other entries of the directories that it
    /// listed.
    fn looked(&mut self, contents: &'v RunContents) {
        let made: BTreeSet<&Bytes> = contents
            .files
            .iter()
            .filter(|content| is_made(content))
            .flat_map(|content| std::iter::once(&content.path).chain(&content.aliases))
            .into_tree();
        for place in contents
            .snapshot
            .iter()
            .filter(|place| !is_of_kernel(&place.path))
        {
            let at = |name: &Bytes| -> Bytes { [&place.path, &b"/"[..], name].concat().into() };
            for file in &place.looked {
                let node = TreeNode::Looked(file.size.min(MOST_OF_NOTHING), file.mtime, file.mode);
                self.nodes.entry(at(&file.name)).or_insert(node);
            }
            for entry in place.listing.iter().flatten() {
                let node = match entry.kind {
                    0o040_000 => TreeNode::Directory(0o755),
                    0o100_000 => TreeNode::Looked(0, 0, 0o644),
                    _ => continue,
                };
                let path = at(&entry.name);
                if !made.contains(&path) {
                    self.nodes.entry(path).or_insert(node);
                }
            }
        }
    }

    /// Adds a file or link that existed before the run.
    fn file(&mut self, content: &'v Content) -> Result<()> {
        if content.version != 0 || is_of_kernel(&content.path) {
            return Ok(());
        }
        match content.kind {
            EntityKind::Symlink => {
                if let Some(target) = &content.target {
                    let path = self.resolved(&content.path, false);
                    self.nodes.insert(path, TreeNode::Link(target.clone()));
                }
            }
            EntityKind::File => {
                match self.view.contents.open(content) {
                    Ok(mut file) if content.role == ContentRole::Program => {
                        if let Some(loader) = self.unrecorded_loader(&mut file)? {
                            self.loader(&loader)?;
                        }
                    }
                    Ok(_) => {}
                    // The run at most overwrote the file, so the old content is not needed.
                    Err(Error::NoContent { .. }) if is_made(content) => return Ok(()),
                    Err(error) => return Err(error),
                }
                for path in std::iter::once(&content.path).chain(&content.aliases) {
                    let path = self.resolved(path, true);
                    self.nodes.insert(path, TreeNode::File(content));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds the missing directories above all nodes.
    fn parents(&mut self) {
        let paths: Vec<Bytes> = self.nodes.keys().cloned().collect();
        for path in paths {
            let mut above = parent(&path);
            while above != b"/" {
                self.nodes
                    .entry(above.into())
                    .or_insert(TreeNode::Directory(0o755));
                above = parent(above);
            }
        }
        self.nodes.remove(b"/".as_slice());
    }
}

/// True for the user's own files, as opposed to files of a package or a tool.
pub fn is_own(path: &[u8], node: &TreeNode<'_>) -> bool {
    let from_package =
        matches!(node, TreeNode::File(content) if content.availability.package().is_some());
    !from_package && !matches!(node, TreeNode::Loader) && !is_tool(path)
}

fn is_made(content: &Content) -> bool {
    matches!(
        content.role,
        ContentRole::Output | ContentRole::Intermediate
    )
}

/// Whole seconds since 1970 of a time in nanoseconds; 0 for a time before.
fn seconds(time: i64) -> u64 {
    u64::try_from(time / 1_000_000_000).unwrap_or_default()
}
