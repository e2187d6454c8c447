//! The file system that a run needs: only what it used, as it was before the run.
//!
//! In: a run's contents. Out: a [`ImageTree`], which containers and packs are written from. Paths are the real ones: what was named through a
//! symbolic link lies where the link leads, and the link lies beside it. Invariant: nothing that the run made is in it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use backstory_eventlog::event::Bytes;
use backstory_files::executable;
use backstory_files::regular;
use backstory_graph::model::EntityKind;
use backstory_query::answer::RunDetails;
use backstory_query::{Content, Role, RunContents};

use crate::{Error, Result, View};
use backstory_workflow::paths::{is_of_kernel, is_tool, parent};
use backstory_workflow::shell;

/// A run and the files it needs.
pub struct ImageTree<'v> {
    view: &'v View,
    /// The run.
    pub run: &'v RunDetails,
    /// What lies where; directories before what lies in them.
    pub nodes: BTreeMap<Bytes, TreeNode<'v>>,
}

/// Something in the file system.
#[derive(Debug, Clone)]
pub enum TreeNode<'v> {
    /// A directory with its permission bits.
    Directory(u32),
    /// Where a symbolic link leads.
    Link(Bytes),
    /// A file.
    File(&'v Content),
    /// A program's loader, which no record names: this machine's.
    Loader,
    /// A file of which no more was used than that it is there: its size and its times, nothing of what it held.
    Looked(u64, i64, u32),
}

/// Bytes that a file which was only looked at has at most: nobody is to carry gigabytes of nothing.
const MOST_OF_NOTHING: u64 = 1 << 20;

/// Links followed for one path before it counts as a ring, as in the kernel.
const MOST_LINKS: usize = 40;

impl<'v> ImageTree<'v> {
    /// What a view's run needs. `format`: who asks, for errors.
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

    /// Directories and links on the way, without those that the run made.
    fn places(&mut self, contents: &'v RunContents) {
        let made: BTreeSet<&Bytes> = contents
            .files
            .iter()
            .filter(|content| content.kind != EntityKind::File && is_made(content))
            .map(|content| &content.path)
            .collect();
        for place in &contents.places {
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

    /// What was only looked at, and what else was in directories that were listed.
    fn looked(&mut self, contents: &'v RunContents) {
        let made: BTreeSet<&Bytes> = contents
            .files
            .iter()
            .filter(|content| is_made(content))
            .flat_map(|content| std::iter::once(&content.path).chain(&content.aliases))
            .collect();
        for place in contents
            .places
            .iter()
            .filter(|place| !is_of_kernel(&place.path))
        {
            let at = |name: &Bytes| -> Bytes { [&place.path, &b"/"[..], name].concat().into() };
            for file in &place.looked {
                let node = TreeNode::Looked(file.size.min(MOST_OF_NOTHING), file.mtime, file.mode);
                self.nodes.entry(at(&file.name)).or_insert(node);
            }
            for entry in place.entries.iter().flatten() {
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

    /// A file or link that was there before the run.
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
                    Ok(mut file) if content.role == Role::Program => {
                        if let Some(loader) = self.unrecorded_loader(&mut file)? {
                            self.loader(&loader)?;
                        }
                    }
                    Ok(_) => {}
                    // It was overwritten, at most: nobody needs what it held.
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

    /// The loader that a program names, if it is not among what the run used: runs were once recorded without.
    fn unrecorded_loader(&self, program: &mut dyn Read) -> Result<Option<Vec<u8>>> {
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

    /// A program's loader, with the links on the way to it.
    fn loader(&mut self, path: &[u8]) -> Result<()> {
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

    /// A path without links on the way; with `last`, the last component's are followed, too.
    fn resolved(&self, path: &[u8], last: bool) -> Bytes {
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

    /// Every node's directory is there.
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

    /// Writes a tar archive of those nodes that `wanted` says, below `prefix`. Owners are not kept: they are whoever unpacks it.
    pub fn archive(
        &self,
        out: impl Write,
        prefix: &str,
        wanted: impl Fn(&[u8], &TreeNode<'_>) -> bool,
    ) -> Result<()> {
        let mut tar = tar::Builder::new(out);
        for (path, node) in self.nodes.iter().filter(|(path, node)| wanted(path, node)) {
            self.entry(&mut tar, prefix, path, node)?;
        }
        tar.into_inner()?.flush()?;
        Ok(())
    }

    fn entry(
        &self,
        tar: &mut tar::Builder<impl Write>,
        prefix: &str,
        path: &[u8],
        node: &TreeNode<'_>,
    ) -> Result<()> {
        let name = [prefix.as_bytes(), &path[1..]].concat();
        let name = Path::new(OsStr::from_bytes(&name));
        let mut header = tar::Header::new_gnu();
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(seconds(self.run.summary.started));
        header.set_size(0);
        match node {
            TreeNode::Directory(mode) => {
                header.set_entry_type(tar::EntryType::Directory);
                header.set_mode(*mode);
                tar.append_data(&mut header, name, io::empty())?;
            }
            TreeNode::Link(target) => {
                header.set_entry_type(tar::EntryType::Symlink);
                header.set_mode(0o777);
                let target = Path::new(OsStr::from_bytes(target));
                tar.append_link(&mut header, name, target)?;
            }
            TreeNode::Loader => {
                let mut file = regular::open(OsStr::from_bytes(path))?;
                header.set_metadata_in_mode(&file.metadata()?, tar::HeaderMode::Deterministic);
                header.set_mode(0o755);
                tar.append_data(&mut header, name, &mut file)?;
            }
            TreeNode::Looked(size, mtime, mode) => {
                header.set_entry_type(tar::EntryType::Regular);
                header.set_mode(mode & 0o7777);
                header.set_size(*size);
                if *mtime != 0 {
                    header.set_mtime(seconds(*mtime));
                }
                tar.append_data(&mut header, name, io::repeat(0).take(*size))?;
            }
            TreeNode::File(content) => {
                header.set_entry_type(tar::EntryType::Regular);
                header.set_mode(content.mode.unwrap_or(0o644) & 0o7777);
                let mut from = self.view.contents.open(content)?;
                let size = match content.ident {
                    Some(ident) => {
                        header.set_mtime(seconds(ident.mtime));
                        u64::try_from(ident.size).unwrap_or_default()
                    }
                    None => return Err(no_size(content)),
                };
                header.set_size(size);
                tar.append_data(&mut header, name, (&mut from).take(size))?;
                // To the end: only then is it known that the content is whole.
                io::copy(&mut from, &mut io::sink())?;
            }
        }
        Ok(())
    }
}

/// Whether it is the user's own, rather than from a package or a tool.
pub fn is_own(path: &[u8], node: &TreeNode<'_>) -> bool {
    let from_package = matches!(node, TreeNode::File(content) if content.held.package().is_some());
    !from_package && !matches!(node, TreeNode::Loader) && !is_tool(path)
}

fn is_made(content: &Content) -> bool {
    matches!(content.role, Role::Output | Role::Intermediate)
}

/// Last first.
fn components(path: &[u8]) -> Vec<Vec<u8>> {
    let parts = path.split(|&byte| byte == b'/').rev();
    parts
        .filter(|part| !part.is_empty() && *part != b".")
        .map(<[u8]>::to_vec)
        .collect()
}

fn seconds(time: i64) -> u64 {
    u64::try_from(time / 1_000_000_000).unwrap_or_default()
}

fn no_size(content: &Content) -> Error {
    Error::NoContent {
        path: shell::quote(&content.path),
        why: "which version it was is not known".to_owned(),
        advice: "record again with --contents=lazy",
    }
}
