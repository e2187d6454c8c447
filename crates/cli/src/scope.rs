//! The directory tree of the user's project, in which `status` and `rerun` stay.
//!
//! In: `--root`, `--outside` and the current directory. Out: whether a path belongs to the project.
//! The project is the tree of `--root`, else of the nearest directory with `.git` at or above the
//! current directory, else of the current directory. With `--outside` every path belongs to it.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::args::scope::ScopeArgs;
use crate::error::Failure;

/// The paths that a command may look at and change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectScope {
    /// The real path of the project's directory. `None`: every path belongs to the project.
    directory: Option<PathBuf>,
}

impl ProjectScope {
    /// The scope of a command line.
    ///
    /// # Errors
    ///
    /// If `--root` is not a directory, or the current directory was removed.
    pub fn new(args: &ScopeArgs) -> Result<ProjectScope, Failure> {
        let directory = match &args.root {
            _ if args.outside => None,
            Some(root) => Some(directory(root)?),
            None => {
                let here = std::env::current_dir().map_err(|error| {
                    Failure::not_found(format!(
                        "the current directory cannot be found ({error}): give --root DIR"
                    ))
                })?;
                Some(project(&here).to_owned())
            }
        };
        Ok(ProjectScope { directory })
    }

    /// True if an absolute path belongs to the project.
    pub fn contains(&self, path: &[u8]) -> bool {
        let Some(directory) = &self.directory else {
            return true;
        };
        Path::new(std::ffi::OsStr::from_bytes(path)).starts_with(directory)
    }

    /// The project's directory. `None`: every path belongs to the project.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }
}

fn directory(root: &Path) -> Result<PathBuf, Failure> {
    let wrong = |why: String| {
        Failure::misuse(format!(
            "--root {}: {why}; give an existing directory",
            root.display()
        ))
    };
    let real = root
        .canonicalize()
        .map_err(|error| wrong(error.to_string()))?;
    match real.is_dir() {
        true => Ok(real),
        false => Err(wrong("it is not a directory".to_owned())),
    }
}

/// The nearest directory with `.git` at or above `here`, else `here`. In a worktree and in a
/// submodule `.git` is a file.
fn project(here: &Path) -> &Path {
    let has_git = |at: &&Path| at.join(".git").symlink_metadata().is_ok();
    here.ancestors().find(has_git).unwrap_or(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_is_the_tree_of_the_nearest_git_directory_else_the_current_directory() {
        let place = tempfile::tempdir().unwrap();
        let inner = place.path().join("outer/inner/deep");
        std::fs::create_dir_all(&inner).unwrap();
        assert_eq!(project(&inner), inner);
        std::fs::create_dir(place.path().join("outer/.git")).unwrap();
        assert_eq!(project(&inner), place.path().join("outer"));
        std::fs::write(place.path().join("outer/inner/.git"), "gitdir: x").unwrap();
        assert_eq!(project(&inner), place.path().join("outer/inner"));
    }

    #[test]
    fn a_path_belongs_to_the_project_by_whole_names() {
        let scope = ProjectScope {
            directory: Some("/a/b".into()),
        };
        assert!(scope.contains(b"/a/b") && scope.contains(b"/a/b/c"));
        assert!(!scope.contains(b"/a/bc") && !scope.contains(b"/a"));
        assert!(ProjectScope { directory: None }.contains(b"/anything"));
    }

    #[test]
    fn a_root_that_is_no_directory_is_misuse() {
        let args = ScopeArgs {
            root: Some("/dev/null".into()),
            outside: false,
        };
        let failure = ProjectScope::new(&args).unwrap_err();
        assert!(failure.line.contains("not a directory"), "{failure:?}");
    }
}
