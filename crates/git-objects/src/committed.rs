//! The blobs of committed files: the tree of the commit that `HEAD` names, read along the path of a
//! file.
//!
//! Each directory is read once. The present content of a file is not compared with its blob.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::object::Kind;
use crate::object_id::ObjectId;
use crate::{open, work_tree};

/// The directories of work trees that were read so far.
#[derive(Debug, Default)]
pub struct CommittedFiles {
    /// `None` for a directory that no commit has.
    directories: HashMap<PathBuf, Option<CommittedDirectory>>,
}

/// The blob of a committed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedBlob {
    /// Its id.
    pub id: ObjectId,
    /// Its path as a loose object. [`crate::open_blob`] opens it there or in a pack.
    pub path: PathBuf,
}

#[derive(Debug)]
struct CommittedDirectory {
    /// The directory of the repository's objects.
    objects: PathBuf,
    entries: HashMap<Vec<u8>, TreeEntry>,
}

#[derive(Debug)]
struct TreeEntry {
    kind: TreeEntryKind,
    id: ObjectId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TreeEntryKind {
    Directory,
    File,
    /// A link, or the commit of a submodule.
    Other,
}

impl CommittedFiles {
    /// The blob of the file at an absolute path without links, in the commit that is checked out.
    /// `None` for a file that the commit does not have.
    pub fn blob(&mut self, file: &Path) -> Option<CommittedBlob> {
        let name = file.file_name()?;
        let directory = self.directory(file.parent()?)?;
        let entry = directory.entries.get(name.as_bytes())?;
        (entry.kind == TreeEntryKind::File).then(|| CommittedBlob {
            id: entry.id.clone(),
            path: entry.id.path_in(&directory.objects),
        })
    }

    fn directory(&mut self, directory: &Path) -> Option<&CommittedDirectory> {
        if !self.directories.contains_key(directory) {
            let read = self.read(directory);
            self.directories.insert(directory.to_owned(), read);
        }
        self.directories.get(directory)?.as_ref()
    }

    fn read(&mut self, directory: &Path) -> Option<CommittedDirectory> {
        if directory.join(".git").exists() {
            return root_directory(directory);
        }
        let name = directory.file_name()?;
        let above = self.directory(directory.parent()?)?;
        let entry = above.entries.get(name.as_bytes())?;
        match entry.kind {
            TreeEntryKind::Directory => tree(&above.objects, &entry.id),
            _ => None,
        }
    }
}

/// The directory of the commit that `HEAD` names in this work tree.
fn root_directory(root: &Path) -> Option<CommittedDirectory> {
    let objects = work_tree::objects(root)?;
    let commit = ObjectId::parse(&work_tree::head(root)?.commit?)?;
    let commit = content(&objects, &commit, Kind::Commit)?;
    let line = commit.split(|&byte| byte == b'\n').next()?;
    let digits = std::str::from_utf8(line).ok()?.strip_prefix("tree ")?;
    tree(&objects, &ObjectId::parse(digits)?)
}

fn tree(objects: &Path, id: &ObjectId) -> Option<CommittedDirectory> {
    let content = content(objects, id, Kind::Tree)?;
    Some(CommittedDirectory {
        objects: objects.to_owned(),
        entries: entries(&content, id.bytes().len())?,
    })
}

fn content(objects: &Path, id: &ObjectId, kind: Kind) -> Option<Vec<u8>> {
    let object = open(objects, id).ok()?;
    (object.kind() == kind).then(|| object.content().ok())?
}

/// The entries `MODE NAME\0ID` of a tree. `None` if it is damaged.
fn entries(mut tree: &[u8], width: usize) -> Option<HashMap<Vec<u8>, TreeEntry>> {
    let mut found = HashMap::new();
    while !tree.is_empty() {
        let end = tree.iter().position(|&byte| byte == 0)?;
        let (head, rest) = (&tree[..end], &tree[end + 1..]);
        let blank = head.iter().position(|&byte| byte == b' ')?;
        let (id, rest) = rest.split_at_checked(width)?;
        let kind = match &head[..blank] {
            b"40000" => TreeEntryKind::Directory,
            b"100644" | b"100755" => TreeEntryKind::File,
            _ => TreeEntryKind::Other,
        };
        let id = ObjectId::new(id)?;
        found.insert(head[blank + 1..].to_vec(), TreeEntry { kind, id });
        tree = rest;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_that_is_cut_has_no_entries() {
        let mut tree = b"40000 sub\0".to_vec();
        tree.extend([7; 20]);
        tree.extend(b"100644 file\0");
        tree.extend([8; 20]);
        let found = entries(&tree, 20).unwrap();
        assert_eq!(found[&b"sub"[..]].kind, TreeEntryKind::Directory);
        assert_eq!(found[&b"file"[..]].id.bytes(), [8; 20]);
        // After the first entry, a cut is no damage.
        let first = b"40000 sub\0".len() + 20;
        for cut in (1..tree.len()).filter(|&cut| cut != first) {
            assert!(entries(&tree[..cut], 20).is_none(), "cut at {cut}");
        }
        assert!(entries(&tree, 32).is_none());
    }
}
