//! Determines at the end of the run which versions the file system still holds, and by which names.

use super::{CallContext, Fold, NEAR, SLACK};
use crate::model::{Entity, Sink};
use crate::object::{ObjectId, TrackedObject};
use backstory_eventlog::event::{Time, Via};
use backstory_files::Ident;

impl<S: Sink> Fold<'_, S> {
    /// Marks every version that the file system still holds as the last.
    pub(super) fn report_last(&mut self, ended: Time) -> Result<(), S::Error> {
        self.report_looked_directories()?;
        for index in 0..self.objects.len() {
            let id = ObjectId(index as u32);
            let object = &self.objects[index];
            let (here, ident) = self.at_end(object, ended);
            let now = self.objects[index].now_mut();
            let number = now.number;
            now.news |= now.reported_last != here || (now.ident.is_none() && ident.is_some());
            now.reported_last = here;
            now.ident = now.ident.or(ident);
            if now.news {
                self.report(id, number)?;
            }
            if here {
                self.report_links(id, ended)?;
            }
        }
        Ok(())
    }

    /// Announces the nodes of hard links that exist at the end.
    pub(super) fn report_links(&mut self, object: ObjectId, time: Time) -> Result<(), S::Error> {
        let held = &self.objects[object.0 as usize];
        let now = held.now();
        for &(path, id) in now
            .links
            .iter()
            .filter(|(path, _)| held.names.contains(path))
        {
            let entity = Entity {
                id,
                kind: held.kind,
                path: self.paths.bytes(path).into(),
                aliases: Vec::new(),
                by_name: Vec::new(),
                version: now.number,
                previous: now.entity,
                ident: now.ident,
                last: true,
            };
            self.sink.entity(&entity)?;
        }
        self.report_unused_links(object, time)
    }

    /// Announces nodes for hard links by which the last version was not used. A user who asks where
    /// such a file comes from then gets an answer.
    pub(super) fn report_unused_links(
        &mut self,
        object: ObjectId,
        time: Time,
    ) -> Result<(), S::Error> {
        let held = self.object(object);
        let Some(linker) = held.linker.filter(|_| held.linked) else {
            return Ok(());
        };
        let now = held.now();
        let Some(from) = now.entity else {
            return Ok(());
        };
        let (number, names) = (now.number, held.names.clone());
        self.object_mut(object).writers = 0;
        for path in names {
            if self.object(object).now().known_as(path) {
                continue;
            }
            let call = CallContext {
                time,
                pid: 0,
                tid: 0,
                epoch: linker,
                via: Via::Library,
                outcome: backstory_eventlog::event::Outcome::Done(0),
                ident: None,
                resolved: true,
            };
            self.twin(call, object, number, path, from)?;
        }
        Ok(())
    }

    /// True for a file that the run made and left, although its path leads to no file any more. The
    /// file was moved or removed after the end of the run, before its path was looked up.
    ///
    /// The run did not remove the name, and the last writer's close gave the identity. The nearest
    /// directory that still exists is on the same file system. A mount that the run alone had is on
    /// another one.
    fn was_moved_later(&self, object: &TrackedObject) -> bool {
        let Some(ident) = object.now().ident.filter(|_| object.now().number > 0) else {
            return false;
        };
        let mut directory = object.names[0];
        while directory != self.paths.parent(directory) {
            directory = self.paths.parent(directory);
            match self.final_state.identity(&self.paths, directory, true) {
                Some(Some(found)) => return found.dev == ident.dev,
                Some(None) => {}
                None => return false,
            }
        }
        false
    }

    /// Whether the file system holds the object's present version, and the identity that certainly
    /// belongs to that version.
    pub(super) fn at_end(&self, object: &TrackedObject, ended: Time) -> (bool, Option<Ident>) {
        let now = object.now();
        if object.names.is_empty() || now.entity.is_none() {
            return (false, None);
        }
        if now.reported_last {
            return (true, now.ident);
        }
        let ident = match self
            .final_state
            .identity(&self.paths, object.names[0], true)
        {
            Some(Some(ident)) => ident,
            Some(None) if self.was_moved_later(object) => return (true, now.ident),
            Some(None) => return (object.doubtful, None),
            None => return (object.versioned(), None),
        };
        // Somebody changed or replaced the file after the run, before its path was looked up.
        let is_later = now.ident.is_some() && ident.ctime > ended + NEAR;
        if object
            .key
            .is_some_and(|key| key != crate::version::key(&ident))
        {
            // Another file is at the path now. But if this object's identity was only a guess, the
            // version may still be there.
            return (is_later || object.guessed || object.doubtful, None);
        }
        let same = now
            .ident
            .is_none_or(|i| (i.size, i.mtime) == (ident.size, ident.mtime));
        // If the run only looked at a version, a process outside may have changed the file
        // afterwards.
        let changed = object.ctime_without_names(&ident, NEAR);
        let own = now.number > 0 || changed < now.began - SLACK || self.made_before(&ident);
        let until_end = Some(ident).filter(|ident| own && ident.ctime <= ended + NEAR);
        (same || is_later, until_end)
    }
}
