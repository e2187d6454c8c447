//! Files that are renamed, themselves or with a directory above them.
//!
//! The fold moves descriptors and current directories along, and determines the identity that the
//! files had before.

use std::rc::Rc;

use backstory_eventlog::event::Time;
use backstory_files::Ident;
use rustc_hash::FxHashSet;

use super::names::NameState;
use super::{CALL, CallContext, Fold, NEAR, SLACK};
use crate::model::{EntityKind, Sink};
use crate::object::{MoveHistory, ObjectId, kind_of};
use crate::paths::{PathId, ROOT};
use crate::process::Descriptor;
use crate::version::key;

/// The state of a path below a directory that is being renamed.
pub(super) struct LiftedPath {
    path: PathId,
    target: Option<PathId>,
    link: Option<ObjectId>,
    file: Option<ObjectId>,
}

impl<S: Sink> Fold<'_, S> {
    /// Starts the version that a file has by its new name. It has the content of the old version,
    /// and the epochs that may be writing it. `itself` is the time at which the file itself got
    /// that name. `None` if only a directory above it did.
    pub(super) fn moved_version(
        &mut self,
        call: CallContext,
        object: ObjectId,
        new: PathId,
        itself: Option<Time>,
    ) -> Result<(), S::Error> {
        self.begins_to_move(object, itself);
        if let Some(ident) = self.hint(new, true) {
            let object_now = self.object(object);
            if object_now.guessed || object_now.key.is_none_or(|known| known == key(&ident)) {
                self.only_moved(object, &ident, false)?;
            }
        }
        let held = self.object_mut(object);
        let moves = held.moves.take();
        let before = held.now();
        let (writers, written, read) = (before.writers, before.written, before.read);
        self.next_version(call, object, new, false)?;
        let held = self.object_mut(object);
        held.moves = moves;
        let now = held.now_mut();
        (now.writers, now.written, now.read) = (writers, written, read);
        Ok(())
    }

    fn begins_to_move(&mut self, object: ObjectId, itself: Option<Time>) {
        let held = self.object_mut(object);
        let now = held.now();
        let is_itself = now.number == 0 || held.writers == 0 && held.moves.is_none();
        if is_itself && now.ident.is_none() && held.kind == EntityKind::File {
            held.moves = Some(MoveHistory {
                number: now.number,
                began: now.began,
                own: None,
                first: None,
            });
        }
        if let Some(moves) = &mut held.moves {
            moves.own = itself.or(moves.own);
        }
    }

    /// Determines the identity that a moved file had before. `ident` is its identity at this moment
    /// if `now`, else after the run. The file had the same identity before if the run has only
    /// moved it since the first use or the last write. Other runs know the file by that identity.
    /// True if so.
    pub(super) fn only_moved(
        &mut self,
        object: ObjectId,
        ident: &Ident,
        now: bool,
    ) -> Result<bool, S::Error> {
        let held = self.object_mut(object);
        let Some(moves) = &mut held.moves else {
            return Ok(false);
        };
        let own = moves
            .own
            .is_some_and(|at| (at - NEAR..=at + CALL).contains(&ident.ctime));
        let last_changed = if own { ident.mtime } else { ident.ctime };
        let since = match moves.number {
            0 => ident.birth < moves.began && last_changed < moves.began - SLACK,
            _ => now,
        };
        let fits = kind_of(ident.mode) == EntityKind::File && since;
        if !fits {
            return Ok(false);
        }
        let (first, number) = (moves.first.take(), moves.number);
        held.moves = None;
        if let Some(mut entity) = first {
            entity.ident = Some(*ident);
            self.sink.entity(&entity)?;
        } else {
            let version = held.kept(number);
            version.ident = Some(*ident);
            version.news |= version.entity.is_some();
        }
        Ok(true)
    }

    /// Takes the names below a directory away, before the directory is renamed.
    pub(super) fn lift_below(&mut self, call: CallContext, old: PathId) -> Vec<LiftedPath> {
        let mut lifted = Vec::new();
        for path in self.paths.below(old) {
            self.missing.remove(&path);
            if let Some(&NameState::Looked(entity)) = self.names.get(&path) {
                self.promote(path, call.time, entity);
            }
            let file = match self.names.remove(&path) {
                Some(NameState::Is(object)) => Some(object),
                _ => None,
            };
            if let Some(object) = file {
                self.object_mut(object).names.retain(|&n| n != path);
            }
            let (link, target) = self.links.remove(path);
            lifted.push(LiftedPath {
                path,
                target,
                link,
                file,
            });
        }
        lifted
    }

    /// Puts the names that were taken away below the directory's new name.
    pub(super) fn lay_below(
        &mut self,
        call: CallContext,
        lifted: Vec<LiftedPath>,
        old: PathId,
        new: PathId,
    ) -> Result<(), S::Error> {
        // Paths that were missing before may exist now.
        for path in self.paths.below(new) {
            self.missing.remove(&path);
            if self.names.get(&path) == Some(&NameState::Gone) {
                self.names.remove(&path);
            }
        }
        for LiftedPath {
            path,
            target,
            link,
            file,
        } in lifted
        {
            let moved = self.paths.moved(path, old, new);
            if let Some(link) = link {
                self.links.insert(moved, link, target);
            }
            let Some(object) = file else { continue };
            self.bind(moved, object);
            if self.object(object).now().entity.is_some() {
                self.object_mut(object)
                    .now_mut()
                    .was_not_kept(call.time, None);
                self.moved_version(call, object, moved, None)?;
            }
            self.recognise(object, moved, call.time);
            self.forget(object)?;
        }
        Ok(())
    }

    /// Follows the renames of files or directories, each given as the old and the new path.
    /// Descriptors and current directories that lead to them, or below them, move along. This holds
    /// in every process, and for descriptors on their way through a socket.
    pub(super) fn follow_renames(&mut self, moves: &[(PathId, PathId)]) {
        let mut processes = std::mem::take(&mut self.processes);
        let mut sent = std::mem::take(&mut self.channels.sent);
        let mut moved = FxHashSet::default();
        for held in sent.values_mut().flatten() {
            self.descriptor_after_moves(held, moves);
        }
        self.channels.sent = sent;
        if !self.older_links.is_empty() {
            let mut links = std::mem::take(&mut self.older_links);
            links.rename(|path| self.after_moves(path, moves));
            self.older_links = links;
        }
        for process in processes.values_mut() {
            for held in process.descriptors.values_mut() {
                self.descriptor_after_moves(held, moves);
            }
            // Each shared directory is moved once, for the first process that has it.
            let standings = [&process.fs].into_iter().chain(process.own_fs.values());
            for fs in standings.filter(|shared| moved.insert(Rc::as_ptr(shared))) {
                for place in [&fs.cwd, &fs.root] {
                    place.set(self.after_moves(place.get(), moves));
                }
            }
        }
        self.processes = processes;
    }

    fn descriptor_after_moves(&mut self, held: &mut Descriptor, moves: &[(PathId, PathId)]) {
        let Some(what) = &held.what else { return };
        held.location = self.after_moves(held.location, moves);
        if what.looked {
            held.path = self.after_moves(held.path, moves);
        }
    }

    /// The path after these renames, which all happen at once.
    fn after_moves(&mut self, place: PathId, moves: &[(PathId, PathId)]) -> PathId {
        // Most renames are of files, which have no paths below them.
        let within = |&&(old, _): &&(PathId, PathId)| {
            place == old
                || place != ROOT && self.paths.has_children(old) && self.paths.within(place, old)
        };
        match moves.iter().find(within).copied() {
            Some((old, new)) => self.paths.moved(place, old, new),
            None => place,
        }
    }
}
