//! Symbolic links that the run met or made. In: links and their targets, by path. Out: the object
//! of a link, and a path with the links made in this run followed.
//!
//! Invariant: a path has a target only if the run made the link, so that the target is exact. Links
//! that are older than the run are in [`super::removed_links`].

use rustc_hash::FxHashMap;

use crate::object::ObjectId;
use crate::paths::{PathId, PathTable, ROOT};

/// The most links that the kernel follows in a path (path_resolution(7)).
pub(super) const MAX_LINKS: u32 = 40;

/// The links by their paths.
#[derive(Debug, Clone, Default)]
pub(super) struct SymbolicLinks {
    objects: FxHashMap<PathId, ObjectId>,
    targets: FxHashMap<PathId, PathId>,
}

impl SymbolicLinks {
    /// The object of the link at `path` itself.
    pub(super) fn object(&self, path: PathId) -> Option<ObjectId> {
        self.objects.get(&path).copied()
    }

    /// The target of the link at `path`, if the run made the link.
    pub(super) fn target(&self, path: PathId) -> Option<PathId> {
        self.targets.get(&path).copied()
    }

    /// A link is at `path`. It leads to `target`, if that is known.
    pub(super) fn insert(&mut self, path: PathId, link: ObjectId, target: Option<PathId>) {
        self.objects.insert(path, link);
        if let Some(target) = target {
            self.targets.insert(path, target);
        }
    }

    /// No link is at `path` any more. Returns its object and its target.
    pub(super) fn remove(&mut self, path: PathId) -> (Option<ObjectId>, Option<PathId>) {
        (self.objects.remove(&path), self.targets.remove(&path))
    }

    /// `path` with the links made in this run followed. A link at its end is followed only if
    /// `last`.
    pub(super) fn follow(&self, paths: &mut PathTable, path: PathId, last: bool) -> PathId {
        let mut path = path;
        for _ in 0..MAX_LINKS {
            if self.targets.is_empty() {
                break;
            }
            let Some((link, target)) = self.first_in(paths, path, last) else {
                break;
            };
            path = paths.moved(path, link, target);
        }
        path
    }

    /// The link nearest to the root in `path`, and where it leads.
    fn first_in(&self, paths: &PathTable, path: PathId, last: bool) -> Option<(PathId, PathId)> {
        let mut found = None;
        let mut at = if last { path } else { paths.parent(path) };
        while at != ROOT {
            if let Some(target) = self.target(at) {
                found = Some((at, target));
            }
            at = paths.parent(at);
        }
        found
    }
}
