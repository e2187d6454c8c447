//! Whether a file is the user's own: the one definition for all commands.
//!
//! In: absolute paths as they were recorded, and the directories of the user's projects. Out: a
//! [`FileOwner`]. All files are the user's own, except these:
//!
//! - the files of packages ([`backstory_packages`]), and those in other directories of the system
//!   and of tools
//! - the files in caches, and builders' records of their own work
//! - temporary files
//!
//! A project may lie anywhere, in `/tmp` or in `/usr/src` too. Below a project's directory, only
//! the rest of a path counts: `/opt/work/src/a.c` is a user's file if `/opt/work` is a project, and
//! `/opt/work/node_modules/x/index.js` is not.
//!
//! ```no_run
//! use backstory_workflow::ownership::Ownership;
//!
//! let mut ownership = Ownership::new("/".as_ref(), [b"/home/ada/climate".as_slice()]);
//! assert!(ownership.is_own(b"/home/ada/climate/main.c"));
//! assert!(!ownership.is_own(b"/usr/include/stdio.h"));
//! ```
//!
//! [`Ownership::is_own`] looks at the text of a path first, and at files beside it only if the text
//! does not decide. [`Ownership::owner`] names the package.

use std::path::Path;

use backstory_packages::{PackageId, PackageTally, Packages, PathLayouts};

use crate::paths;
use crate::tools::knowledge;

/// The owner of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileOwner {
    /// The user.
    User,
    /// A package, a toolchain or an environment.
    Package(PackageId),
    /// The system, the kernel or a tool, outside of packages.
    System,
    /// A cache, or a builder's record of its own work.
    Cache,
    /// A program that did not need the file for long.
    Temporary,
}

/// Decides who owns files.
pub struct Ownership {
    packages: Packages,
    /// Directories of projects, without a slash at the end.
    projects: Vec<Box<[u8]>>,
}

impl Ownership {
    /// `root`: the root of the file system with the packages (`/`). `projects`: absolute paths of
    /// directories in which the user works, such as the current directory of a run.
    pub fn new<'p>(root: &Path, projects: impl IntoIterator<Item = &'p [u8]>) -> Ownership {
        Ownership::of(Packages::new(root), projects)
    }

    /// The same for the file system of this machine, with an index of its packages
    /// ([`Packages::indexed`]).
    pub fn indexed<'p>(index: &Path, projects: impl IntoIterator<Item = &'p [u8]>) -> Ownership {
        Ownership::of(Packages::indexed(Path::new("/"), index), projects)
    }

    fn of<'p>(packages: Packages, projects: impl IntoIterator<Item = &'p [u8]>) -> Ownership {
        let layouts = &knowledge().packages.layouts;
        // A user's entry that is no layout must not hide the embedded ones.
        let mut known = PathLayouts::default();
        for layout in layouts {
            if let Ok(layout) = PathLayouts::parse(&[layout]) {
                known.extend(layout);
            }
        }
        let trimmed = projects
            .into_iter()
            .map(|project| project.strip_suffix(b"/").unwrap_or(project));
        Ownership {
            packages: packages.with_layouts(known),
            projects: trimmed
                .filter(|project| is_project(project))
                .map(Into::into)
                .collect(),
        }
    }

    /// True if the file at `path` is the user's own.
    pub fn is_own(&mut self, path: &[u8]) -> bool {
        self.by_text(path).is_none() && self.packages.package(path).is_none()
    }

    /// The owner of the file at `path`.
    pub fn owner(&mut self, path: &[u8]) -> FileOwner {
        if paths::is_of_kernel(path) {
            return FileOwner::System;
        }
        match self.packages.package(path) {
            Some(package) => FileOwner::Package(package),
            None => self.by_text(path).unwrap_or(FileOwner::User),
        }
    }

    /// True if a file that a run wrote is a result that the user may want. Such a file is the
    /// user's own, or a file of the system that the run changed.
    pub fn is_own_result(&mut self, path: &[u8]) -> bool {
        match self.owner(path) {
            FileOwner::User => true,
            FileOwner::Package(_) | FileOwner::System => {
                paths::is_system(path) && !paths::is_of_kernel(path)
            }
            FileOwner::Cache | FileOwner::Temporary => false,
        }
    }

    /// The owner of a file that its run made and removed again. In a directory of temporary files,
    /// such a file is temporary whatever its name is.
    pub fn owner_of_removed(&mut self, path: &[u8]) -> FileOwner {
        match self.owner(path) {
            FileOwner::User if temporary_part(path, &self.projects).is_some() => {
                FileOwner::Temporary
            }
            owner => owner,
        }
    }

    /// The package that provides the file at `path`.
    pub fn package(&mut self, path: &[u8]) -> Option<PackageId> {
        self.packages.package(path)
    }

    /// Counts the files of each package among `paths`.
    pub fn tally<'p>(&mut self, paths: impl IntoIterator<Item = &'p [u8]>) -> PackageTally {
        PackageTally::of(&mut self.packages, paths)
    }

    /// The owner that the text of a path tells; `None` if it may be the user.
    fn by_text(&self, path: &[u8]) -> Option<FileOwner> {
        if paths::is_of_kernel(path) {
            return Some(FileOwner::System);
        }
        // Where projects lie in each other, the innermost counts.
        let below = self
            .projects
            .iter()
            .filter_map(|project| below(path, project));
        let rest = below.min_by_key(|rest| rest.len());
        let rest = rest.unwrap_or(path);
        if paths::is_cache(rest) {
            return Some(FileOwner::Cache);
        }
        let name = temporary_part(path, &self.projects);
        if name.is_some_and(is_scratch) {
            return Some(FileOwner::Temporary);
        }
        let of_tool = match rest.len() == path.len() {
            true => paths::is_tool(rest),
            false => paths::is_below_tool(rest),
        };
        of_tool.then_some(FileOwner::System)
    }
}

/// False for directories that are too large to be a project: everything in `/usr` would be the
/// user's own if a command ran there.
fn is_project(directory: &[u8]) -> bool {
    let depth = directory.iter().filter(|byte| **byte == b'/').count();
    let inside = [directory, b"/x"].concat();
    depth >= if paths::is_system(&inside) { 3 } else { 1 }
}

/// The path below a directory, with the slash.
fn below<'p>(path: &'p [u8], directory: &[u8]) -> Option<&'p [u8]> {
    path.strip_prefix(directory)
        .filter(|rest| rest.starts_with(b"/"))
}

/// The name directly in a directory of temporary files that leads to `path`. `None` outside of such
/// directories, and in a project that lies in one.
fn temporary_part<'p>(path: &'p [u8], projects: &[Box<[u8]>]) -> Option<&'p [u8]> {
    let directories = &knowledge().paths.temporary_directories;
    let directory = directories
        .iter()
        .map(String::as_bytes)
        .find(|directory| path.starts_with(directory))?;
    let in_it = |project: &[u8]| below(path, project).is_some() && project.len() >= directory.len();
    if projects.iter().any(|project| in_it(project)) {
        return None;
    }
    path[directory.len()..].split(|byte| *byte == b'/').next()
}

/// True if a program made up this name for a file that it needs for a moment.
fn is_scratch(name: &[u8]) -> bool {
    let patterns = &knowledge().paths.scratch_names;
    patterns
        .iter()
        .any(|pattern| matches(pattern.as_bytes(), name))
}

/// `*` matches any text, `?` one letter, digit or underscore.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => (0..=name.len()).any(|from| matches(rest, &name[from..])),
        (Some((b'?', rest)), Some((byte, after))) => {
            (byte.is_ascii_alphanumeric() || *byte == b'_') && matches(rest, after)
        }
        (Some((wanted, rest)), Some((byte, after))) => wanted == byte && matches(rest, after),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners(projects: &[&str], paths: &[&str]) -> Vec<FileOwner> {
        let empty = tempfile::tempdir().unwrap();
        let projects = projects.iter().map(|project| project.as_bytes());
        let mut ownership = Ownership::new(empty.path(), projects);
        let all = paths.iter().map(|path| {
            let owner = ownership.owner(path.as_bytes());
            assert_eq!(
                ownership.is_own(path.as_bytes()),
                owner == FileOwner::User,
                "{path}"
            );
            owner
        });
        all.collect()
    }

    #[test]
    fn what_is_no_package_no_system_file_no_cache_and_not_temporary_is_the_users_own() {
        use FileOwner::{Cache, System, Temporary, User};
        let found = owners(
            &["/home/ada/climate"],
            &[
                "/home/ada/climate/main.c",
                "/home/ada/data/in.csv",
                "/tmp/data.csv",
                "/usr/include/stdio.h",
                "/etc/ld.so.cache",
                "/var/lib/texmf/ls-R",
                "/proc/self/maps",
                "/usr/local/lib/libx.so",
                "/home/ada/climate/__pycache__/a.cpython-311.pyc",
                "/home/ada/.cache/pip/x",
                "/tmp/ccAbCd12.s",
                "/tmp/tmp.A1b2C3d4E5/x",
            ],
        );
        let expected = [
            User, User, User, System, System, System, System, System, Cache, Cache, Temporary,
            Temporary,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_project_may_lie_in_a_directory_of_the_system_or_of_temporary_files() {
        use FileOwner::{Cache, System, Temporary, User};
        let found = owners(
            &["/opt/work", "/tmp/tmp.A1b2C3d4E5/w", "/usr/src/x-1", "/usr"],
            &[
                "/opt/work/src/a.c",
                "/opt/other/a.c",
                "/tmp/tmp.A1b2C3d4E5/w/a.c",
                "/tmp/tmp.A1b2C3d4E5/b.c",
                "/usr/src/x-1/a.c",
                "/usr/src/x-1/.cache/a.py",
                "/usr/lib/a.so",
            ],
        );
        assert_eq!(found, [User, System, User, Temporary, User, Cache, System]);
        let of_tmp = owners(&["/tmp"], &["/tmp/ccAbCd12.o", "/tmp/out.txt"]);
        assert_eq!(of_tmp, [Temporary, User]);
    }

    #[test]
    fn a_removed_file_in_a_directory_of_temporary_files_was_temporary() {
        let mut ownership = Ownership::new("/nonexistent".as_ref(), [b"/tmp/w".as_slice()]);
        assert_eq!(ownership.owner_of_removed(b"/tmp/x"), FileOwner::Temporary);
        assert_eq!(ownership.owner_of_removed(b"/tmp/w/x.o"), FileOwner::User);
    }

    #[test]
    fn the_embedded_layouts_are_layouts() {
        let layouts = &knowledge().packages.layouts;
        assert!(PathLayouts::parse(layouts).is_ok());
        let expected = [
            (
                "/root/.pyenv/versions/3.11.7/lib/python3.11/os.py",
                "python 3.11.7 (pyenv)",
            ),
            ("/root/.pyenv/shims/python3", "pyenv (pyenv)"),
            ("/h/.rbenv/versions/3.2.0/bin/ruby", "ruby 3.2.0 (rbenv)"),
            (
                "/h/.nvm/versions/node/v20.1.0/bin/node",
                "node 20.1.0 (nvm)",
            ),
            (
                "/h/.asdf/installs/erlang/26.2/bin/erl",
                "erlang 26.2 (asdf)",
            ),
            (
                "/h/.local/share/mise/installs/node/20/bin/node",
                "node 20 (mise)",
            ),
            (
                "/h/.local/share/uv/python/cpython-3.12.1-linux-x86_64-gnu/bin/python3",
                "python 3.12.1 (uv)",
            ),
            (
                "/nix/store/0abc-glibc-2.38-44/lib/libc.so.6",
                "glibc 2.38-44 (nix)",
            ),
            ("/gnu/store/0abc-profile/bin/x", "profile (guix)"),
            (
                "/home/linuxbrew/.linuxbrew/Cellar/jq/1.7/bin/jq",
                "jq 1.7 (homebrew)",
            ),
            (
                "/h/.gem/ruby/3.1.0/gems/rake-compiler-1.2.0/lib/a.rb",
                "rake-compiler 1.2.0 (gem)",
            ),
            (
                "/var/lib/gems/3.1.0/gems/rake-13.0/lib/a.rb",
                "rake 13.0 (gem)",
            ),
            (
                "/h/miniconda3/pkgs/zlib-1.2.13-h5eee18b_0/lib/libz.a",
                "zlib 1.2.13 (conda)",
            ),
            (
                "/h/texlive/2023/texmf-dist/x.sty",
                "texlive 2023 (TeX Live)",
            ),
        ];
        let paths: Vec<&str> = expected.iter().map(|(path, _)| *path).collect();
        for ((path, wanted), found) in expected.iter().zip(owners(&[], &paths)) {
            let FileOwner::Package(id) = found else {
                panic!("{path}: {found:?}");
            };
            assert_eq!(id.to_string(), *wanted, "{path}");
        }
    }
}
