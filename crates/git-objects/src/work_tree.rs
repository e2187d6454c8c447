//! Work trees: the repository of a directory, and what its `HEAD` names.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use backstory_files::regular;

use crate::is_absent;

/// A file with references has fewer bytes.
const LARGEST_REFERENCES: u64 = 64 << 20;

/// The branch or commit that the `HEAD` of a work tree names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The whole name of a branch: `refs/heads/main`. `None` if `HEAD` names a commit.
    pub reference: Option<String>,
    /// The hash of the commit. `None` for a branch that has no commit, or if `unread` may have it.
    pub commit: Option<String>,
    /// The list of packed references, if it may have the commit and was not read, with the reason.
    pub unread: Option<String>,
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
        Some(name) => {
            let (commit, unread) = match commit_of(&git, name) {
                Ok(commit) => (commit, None),
                Err(unread) => (None, Some(unread)),
            };
            Some(Head {
                reference: Some(name.to_owned()),
                commit,
                unread,
            })
        }
        None => is_hash(head).then(|| Head {
            reference: None,
            commit: Some(head.to_owned()),
            unread: None,
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
///
/// # Errors
/// The list of packed references exists, and was not read: its name and the reason.
fn commit_of(git: &Path, name: &str) -> Result<Option<String>, String> {
    let shared = shared_directory(git);
    for git in [git, &shared] {
        if let Some(text) = text(&git.join(name))
            && is_hash(text.trim())
        {
            return Ok(Some(text.trim().to_owned()));
        }
    }
    let packed = match read(&shared.join("packed-refs")) {
        Ok(packed) => packed,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(format!("packed-refs was not read: {error}")),
    };
    let mut lines = packed.lines().filter_map(|line| line.split_once(' '));
    let found = lines.find(|(hash, of)| *of == name && is_hash(hash));
    Ok(found.map(|(hash, _)| hash.to_owned()))
}

/// A text file. `None` if it does not exist, is no text, or is too large.
fn text(path: &Path) -> Option<String> {
    read(path).ok()
}

/// A text file.
///
/// # Errors
/// Those of opening and reading. The file is no text, or too large.
fn read(path: &Path) -> io::Result<String> {
    let file = regular::open(path)?;
    if file.metadata()?.len() >= LARGEST_REFERENCES {
        let least = LARGEST_REFERENCES >> 20;
        return Err(io::Error::other(format!("it has {least} MiB or more")));
    }
    let mut text = String::new();
    // git replaces such a file by a new one, so none grows.
    file.take(LARGEST_REFERENCES).read_to_string(&mut text)?;
    Ok(text)
}
