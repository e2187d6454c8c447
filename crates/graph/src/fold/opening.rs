//! Calls that open files: what they show about the file, and the descriptor that they return.

use std::rc::Rc;

use backstory_eventlog::event::{Time, Via};

use super::descriptors::{O_CLOEXEC, at};
use super::{CallContext, EINTR, Fold};
use crate::activity::EntityUse;
use crate::marks;
use crate::model::{Certainty, EntityKind, Relation, Sink};
use crate::object::ObjectId;
use crate::paths::{PathId, ROOT};
use crate::process::{Descriptor, OpenFile};

pub(super) const O_ACCMODE: i32 = 3;
pub(super) const O_RDONLY: i32 = 0;
pub(super) const O_WRONLY: i32 = 1;
const O_RDWR: i32 = 2;
const O_CREAT: i32 = 0o100;
const O_EXCL: i32 = 0o200;
/// The call makes the file, and follows no link to it.
const MAKES_NEW: i32 = O_CREAT | O_EXCL;
const O_TRUNC: i32 = 0o1000;
const O_DIRECTORY: i32 = 0o200_000;
const O_NOFOLLOW: i32 = 0o400_000;
pub(super) const O_PATH: i32 = 0o10_000_000;
const O_TMPFILE: i32 = 0o20_200_000;

impl<S: Sink> Fold<'_, S> {
    pub(super) fn open(
        &mut self,
        call: CallContext,
        dir: i32,
        path: &[u8],
        flags: i32,
    ) -> Result<(), S::Error> {
        if call.absent()
            && let Some(mark) = marks::mark(path)
        {
            return self.disclosed(call, mark);
        }
        let Some(named) = self.place(call, dir, path) else {
            return Ok(());
        };
        if call.outcome.failed() {
            return self.open_failed(call, named, flags);
        }
        if let Some((owner, fd)) = self.descriptor_by_place(call, named)
            && self.reopen(call, owner, fd, flags)?
        {
            return Ok(());
        }
        let place = self.follow(named, flags & O_NOFOLLOW == 0);
        if flags & O_TMPFILE == O_TMPFILE {
            return self.open_unnamed(call, place, flags);
        }
        let (object, made) = self.opened_object(call, place, flags)?;
        self.hold_opened(call, object, named, place, flags, made)
    }

    /// The object that a successful open leads to, and whether the open made the file.
    pub(super) fn opened_object(
        &mut self,
        call: CallContext,
        place: PathId,
        flags: i32,
    ) -> Result<(ObjectId, bool), S::Error> {
        let gone = matches!(self.names.get(&place), Some(super::NameState::Gone))
            || self.missing.contains_key(&place);
        let creates = flags & O_CREAT != 0;
        let made = creates
            && call.ident.is_none()
            && (flags & O_EXCL != 0
                || gone
                || self.born_now(place, call.time)
                || self.in_new_directory(place));
        if made && self.kind_by_place(place) != Some(EntityKind::Device) {
            return Ok((self.create(place, call.time, EntityKind::File), true));
        }
        let object = self.lookup(place, call, call.ident)?;
        let held = self.object_mut(object);
        if flags & O_DIRECTORY != 0 && held.kind == EntityKind::File {
            held.kind = EntityKind::Directory;
        }
        held.was(call.ident);
        let empties = flags & O_TRUNC != 0 && flags & O_ACCMODE != O_RDONLY;
        if empties && self.object(object).versioned() {
            if !creates && call.certainty() == Certainty::Seen {
                // So the file existed before. No data flows from its old content, but the version
                // that this open starts must follow one that has a node.
                self.entity_now(call, object, place)?;
            } else {
                self.replaced_version(call, place)?;
            }
        }
        Ok((object, false))
    }

    /// Whether this call made the file at `place`. The run must not have used the path before, and
    /// the file that is there after the run must have been born during this call.
    pub(super) fn born_now(&self, place: PathId, time: Time) -> bool {
        let born = |at: Time| (time - super::NEAR..=time + super::NEAR).contains(&at);
        !self.names.contains_key(&place) && self.hint(place, true).is_some_and(|i| born(i.birth))
    }

    /// Whether no file can have been at `place` before: the run has made the directory, and has put
    /// nothing there. A file that is there after the run tells its birth itself.
    fn in_new_directory(&self, place: PathId) -> bool {
        let directory = match self.names.get(&self.paths.parent(place)) {
            Some(&super::NameState::Is(directory)) => self.object(directory),
            _ => return false,
        };
        directory.made.is_some()
            && directory.kind == EntityKind::Directory
            && !self.names.contains_key(&place)
            && self.hint(place, true).is_none()
    }

    pub(super) fn hold_opened(
        &mut self,
        call: CallContext,
        object: ObjectId,
        named: PathId,
        place: PathId,
        flags: i32,
        made: bool,
    ) -> Result<(), S::Error> {
        let directory = self.object(object).kind == EntityKind::Directory;
        let looked = flags & O_PATH != 0 || directory;
        let mode = flags & O_ACCMODE;
        let reads = !looked && mode != O_WRONLY;
        let writes = !looked && (mode == O_WRONLY || mode == O_RDWR);
        let definite = !looked && (made || flags & O_TRUNC != 0 && writes);
        let before = self.object(object).now().number;
        if writes && !definite && self.is_recorded(call.epoch) {
            self.settle(object, place, call.ident);
        }
        if looked || !definite && !writes {
            self.object_mut(object).now_mut().read |= reads;
        } else if definite || !self.object(object).unchanged_since(call.time, super::SLACK) {
            self.begin_write(call, object, place, definite)?;
        }
        if definite {
            let used = self.written(call, object, named)?;
            let (entity, certainty) = (used.id, call.certainty());
            self.note(used, Relation::Write, certainty);
            if let Some(epoch) = &mut self.epochs[call.epoch as usize] {
                epoch.edges.add(EntityUse {
                    entity,
                    relation: Relation::Write,
                    interval: at(call.time),
                    certainty,
                    via: call.via,
                    opened: true,
                });
            }
            self.used(call.epoch, entity, Relation::Write);
            self.object_mut(object).now_mut().written = true;
        }
        let mut named = named;
        if self.object(object).linked {
            // For a file with several hard links, the name by which it is used is fixed here,
            // before any data flows.
            named = place;
            if !writes {
                self.entity_now(call, object, place)?;
            }
        }
        let now = self.object(object).now().number;
        let description = OpenFile {
            source: object,
            target: object,
            reads,
            writes,
            keeps: writes && flags & O_TRUNC == 0,
            path: named,
            via: call.via,
            looked,
        };
        let mut held = Descriptor::opened(Rc::new(description), call.time, flags & O_CLOEXEC != 0);
        held.source_from = if definite { now } else { before };
        held.target_from = now;
        held.written = definite.then_some(call.time);
        held.doubtful = call.certainty() == Certainty::Possible;
        // The recorder logs a listing. A process without a recorder may list the directory unseen
        // after the guard saw the open.
        // An imported log that has every call of the process has its listings, too.
        let has_listings = self.header.imported.is_some() && self.is_recorded(call.epoch);
        held.may_be_listed =
            directory && call.via == Via::Kernel && flags & O_PATH == 0 && !has_listings;
        held.location = place;
        self.install_result(call, held)
    }

    /// Opens a file without a name (`O_TMPFILE`), which it stays until `linkat` gives it one.
    pub(super) fn open_unnamed(
        &mut self,
        call: CallContext,
        directory: PathId,
        flags: i32,
    ) -> Result<(), S::Error> {
        let object = self.add(EntityKind::File, directory, call.time, 1);
        let mut label = self.paths.bytes(directory);
        label.extend_from_slice(format!("/#{}", object.0).as_bytes());
        self.object_mut(object).label = Some(label.into());
        // The file has no name by which it could be used yet.
        self.hold_opened(
            call,
            object,
            ROOT,
            ROOT,
            flags & !(O_DIRECTORY | O_CREAT),
            true,
        )
    }

    pub(super) fn open_failed(
        &mut self,
        call: CallContext,
        named: PathId,
        flags: i32,
    ) -> Result<(), S::Error> {
        if call.absent() {
            return self.not_there(call, named);
        }
        if call.outcome.value() == Some(EINTR) {
            return Ok(());
        }
        // The file exists, or could not be reached. The program learned no more than that.
        let follows = flags & O_NOFOLLOW == 0 && flags & MAKES_NEW != MAKES_NEW;
        let place = self.follow(named, follows);
        let entity = self.looked(call, place, named)?;
        self.touch(call, entity, Relation::Stat);
        Ok(())
    }

    /// Notes that the path led to no file.
    pub(super) fn not_there(&mut self, call: CallContext, named: PathId) -> Result<(), S::Error> {
        let entity = self.missing(named)?;
        self.touch(call, entity, Relation::Missing);
        Ok(())
    }

    /// Opens `/dev/fd/N`, which gives another descriptor of the file that is open there.
    pub(super) fn reopen(
        &mut self,
        call: CallContext,
        owner: u32,
        fd: i32,
        flags: i32,
    ) -> Result<bool, S::Error> {
        let Some(held) = self
            .processes
            .get(&owner)
            .and_then(|p| p.descriptors.get(&fd))
            .cloned()
        else {
            return Ok(false);
        };
        let Some(old) = held.what.clone() else {
            return Ok(false);
        };
        if flags & O_DIRECTORY != 0 && self.object(old.source).kind == EntityKind::File {
            self.object_mut(old.source).kind = EntityKind::Directory;
        }
        if self.object(old.source).kind == EntityKind::File {
            let (named, place) = (held.path, held.location);
            self.hold_opened(call, old.source, named, place, flags, false)?;
            return Ok(true);
        }
        let (path, location) = (held.path, held.location);
        let mut held = Descriptor::opened(old, call.time, flags & O_CLOEXEC != 0);
        (held.own, held.path, held.location) = (false, path, location);
        self.install_result(call, held)?;
        Ok(true)
    }
}
