//! Names of files that were used through a symbolic link which the run removed.
//!
//! In: the text of each older link just before its removal, from the log. Out, at the end of the
//! run: the file's path without the link, as the first name of its version. The name that the
//! program used becomes an alias. A link that this run made needs none of this: it is followed when
//! a path is used.

use backstory_files::Ident;
use rustc_hash::FxHashMap;

use super::names::NameState;
use super::symbolic_links::MAX_LINKS;
use super::{CallContext, Fold};
use crate::model::{EntityKind, Sink};
use crate::object::ObjectId;
use crate::paths::{PathId, ROOT};
use crate::version::key;

/// Older links and where they lead.
#[derive(Debug, Clone, Default)]
pub(super) struct OlderLinks {
    /// Links that the run removed.
    removed: FxHashMap<PathId, PathId>,
    /// Targets of links that exist after the run, by the paths that were looked up so far. `None`
    /// if the path is not a link.
    lasting: FxHashMap<PathId, Option<PathId>>,
}

impl OlderLinks {
    /// Notes that a directory was renamed. `after` maps a path to its new path.
    pub(super) fn rename(&mut self, mut after: impl FnMut(PathId) -> PathId) {
        let removed = std::mem::take(&mut self.removed);
        let mut removed: Vec<_> = removed.into_iter().collect();
        removed.sort_unstable();
        for (link, target) in removed {
            self.removed.insert(after(link), after(target));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.removed.is_empty()
    }
}

impl<S: Sink> Fold<'_, S> {
    /// Notes that the next call removes the link at `path`, which has this text.
    pub(super) fn link_text(&mut self, call: CallContext, dir: i32, path: &[u8], text: &[u8]) {
        let Some(link) = self.place(call, dir, path) else {
            return;
        };
        let link = self.follow(link, false);
        // The run made this link, so it is followed when it is used. Its text is not older than the
        // run.
        if self.links.target(link).is_some() {
            return;
        }
        let target = self.link_target(call, link, text);
        self.older_links.removed.entry(link).or_insert(target);
        if let Some(&NameState::Is(file)) = self.names.get(&link)
            && !self.names.contains_key(&target)
            && self.object(file).kind != EntityKind::Symlink
        {
            // The removal takes the link away, but not the file behind it.
            self.move_name(file, link, target);
        }
        self.link_at(link, call.time)
            .unwrap_or_else(|| self.link_met(link, call.time));
    }

    fn move_name(&mut self, object: ObjectId, name: PathId, path: PathId) {
        self.names.remove(&name);
        self.object_mut(object).names.retain(|&other| other != name);
        self.bind(path, object);
        self.object_mut(object).now_mut().exchange_name(name, path);
    }

    /// Finds files that are no longer at their names because links are gone, and gives them the
    /// names without these links.
    pub(super) fn restore_names(&mut self) {
        if self.older_links.is_empty() {
            return;
        }
        for index in 0..self.objects.len() {
            let object = ObjectId(index as u32);
            for name in self.object(object).names.clone() {
                if self.is_elsewhere(object, name)
                    && let Some(path) = self.without_removed_links(name)
                {
                    self.restore_name(object, name, path);
                }
            }
        }
    }

    /// Whether the file system has no file at `name` after the run, or another one.
    fn is_elsewhere(&self, object: ObjectId, name: PathId) -> bool {
        let object = self.object(object);
        let certain = object.key.filter(|_| !object.guessed);
        match self.final_state.identity(&self.paths, name, true) {
            Some(Some(found)) => certain.is_some_and(|certain| certain != key(&found)),
            Some(None) => true,
            None => false,
        }
    }

    /// `path` with all links in it followed; `None` if no removed link is among them.
    fn without_removed_links(&mut self, path: PathId) -> Option<PathId> {
        let (mut path, mut removed) = (path, false);
        for _ in 0..MAX_LINKS {
            let Some((link, target)) = self.first_older_link(path) else {
                break;
            };
            removed |= self.older_links.removed.contains_key(&link);
            path = self.paths.moved(path, link, target);
        }
        removed.then_some(path)
    }

    /// The link nearest to the root in `path`, and where it leads.
    fn first_older_link(&mut self, path: PathId) -> Option<(PathId, PathId)> {
        let (mut found, mut at) = (None, path);
        while at != ROOT {
            let removed = self.older_links.removed.get(&at).copied();
            if let Some(target) = removed.or_else(|| self.lasting_link(at)) {
                found = Some((at, target));
            }
            at = self.paths.parent(at);
        }
        found
    }

    /// The target of the link that is at `path` after the run.
    fn lasting_link(&mut self, path: PathId) -> Option<PathId> {
        if let Some(target) = self.links.target(path) {
            return Some(target);
        }
        if let Some(&known) = self.older_links.lasting.get(&path) {
            return known;
        }
        let text = match self.is_older_link(path) {
            true => self.final_state.link_text(&self.paths, path),
            false => None,
        };
        let target = text.map(|text| {
            let directory = self.paths.parent(path);
            let base = if text.starts_with(b"/") {
                ROOT
            } else {
                directory
            };
            self.walk(base, ROOT, &text)
        });
        self.older_links.lasting.insert(path, target);
        target
    }

    /// Notes that the file known by `name` is at `path`, if the file that is there after the run
    /// can be that file.
    fn restore_name(&mut self, object: ObjectId, name: PathId, path: PathId) {
        let taken = matches!(self.names.get(&path), Some(&NameState::Is(other)) if other != object);
        if taken || !self.is_at(object, path) {
            return;
        }
        self.move_name(object, name, path);
    }

    fn is_at(&mut self, object: ObjectId, path: PathId) -> bool {
        let Some(ident): Option<Ident> = self.hint(path, true) else {
            return false;
        };
        let began = self.object(object).now().began;
        self.recognise(object, path, began);
        self.object(object).key == Some(key(&ident))
    }
}
