//! Work trees: the repository of a directory, and what its `HEAD` names.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use backstory_files::regular;

/// The most bytes of a file with references.
const MOST: u64 = 64 << 20;

/// The branch or commit that the `HEAD` of a work tree names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The whole name of a branch: `refs/heads/main`. `None` if `HEAD` names a commit.
    pub reference: Option<String>,
    /// The hash of the commit. `None` for a branch that has no commit.
    pub commit: Option<String>,
}

/// The root of the work tree that a directory is in. `None` if it is in none.
pub fn root(dir: &Path) -> Option<&Path> {
    dir.ancestors().find(|dir| dir.join(".git").exists())
}

/// What `HEAD` names in the work tree with this root.
pub fn head(root: &Path) -> Option<Head> {
    let git = git_directory(root)?;
    let head = text(&git.join("HEAD"))?;
    let head = head.trim();
    match head.strip_prefix("ref: ") {
        Some(name) => Some(Head {
            commit: commit_of(&git, name),
            reference: Some(name.to_owned()),
        }),
        None => is_hash(head).then(|| Head {
            reference: None,
            commit: Some(head.to_owned()),
        }),
    }
}

/// The directory of the objects of the work tree with this root, without links.
pub fn objects(root: &Path) -> Option<PathBuf> {
    let objects = shared_directory(&git_directory(root)?).join("objects");
    fs::canonicalize(objects).ok()
}

/// True for a whole hash of git.
pub fn is_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The directory with `HEAD`: `.git`, or where the file `.git` of a submodule or a further work
/// tree points.
fn git_directory(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let text = text(&git)?;
    Some(root.join(text.strip_prefix("gitdir: ")?.trim_end()))
}

/// The directory that a further work tree shares with the first.
fn shared_directory(git: &Path) -> PathBuf {
    let shared = text(&git.join("commondir"));
    shared.map_or_else(|| git.to_owned(), |text| git.join(text.trim_end()))
}

/// The commit of a branch. A further work tree shares its branches with the first.
fn commit_of(git: &Path, name: &str) -> Option<String> {
    let shared = shared_directory(git);
    for git in [git, &shared] {
        if let Some(text) = text(&git.join(name))
            && is_hash(text.trim())
        {
            return Some(text.trim().to_owned());
        }
    }
    let packed = text(&shared.join("packed-refs"))?;
    let mut lines = packed.lines().filter_map(|line| line.split_once(' '));
    let (hash, _) = lines.find(|(hash, of)| *of == name && is_hash(hash))?;
    Some(hash.to_owned())
}

/// A text file. `None` if it does not exist, is no text, or is too large.
fn text(path: &Path) -> Option<String> {
    let mut text = String::new();
    let read = regular::open(path)
        .ok()?
        .take(MOST)
        .read_to_string(&mut text);
    read.is_ok_and(|read| (read as u64) < MOST).then_some(text)
}
