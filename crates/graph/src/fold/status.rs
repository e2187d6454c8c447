//! Changes of mode, owner, times and attributes.

use super::{CallContext, Fold};
use crate::model::{EntityKind, Relation, Sink};
use crate::object::ObjectId;
use crate::paths::PathId;
use backstory_eventlog::event::MetadataPart;

impl<S: Sink> Fold<'_, S> {
    /// Notes a change of mode, owner, times or attributes. It is a change of the link itself if
    /// `link`.
    pub(super) fn meta(
        &mut self,
        call: CallContext,
        dir: i32,
        path: &[u8],
        what: MetadataPart,
        link: bool,
    ) -> Result<(), S::Error> {
        if path.is_empty() {
            if call.outcome.failed() {
                return Ok(());
            }
            let Some((object, path)) = self.object_of_descriptor(call, dir)? else {
                return Ok(());
            };
            return self.changed_status(call, object, path, what);
        }
        if call.outcome.failed() {
            return self.look(call, dir, path, true);
        }
        let Some(named) = self.place(call, dir, path) else {
            return Ok(());
        };
        let place = self.follow(named, !link);
        let itself = if link {
            self.changed_link(place, call)
        } else {
            None
        };
        let object = match itself {
            Some(link) => link,
            None => self.lookup(place, call, call.ident)?,
        };
        self.changed_status(call, object, named, what)
    }

    pub(super) fn changed_status(
        &mut self,
        call: CallContext,
        object: ObjectId,
        path: PathId,
        what: MetadataPart,
    ) -> Result<(), S::Error> {
        self.entity_now(call, object, path)?;
        self.status_changes(call, object);
        if what == MetadataPart::Times {
            self.dated(call, object, path)?;
        }
        let entity = self.entity_now(call, object, path)?;
        self.touch(call, entity, Relation::Meta);
        Ok(())
    }

    /// Notes that the times of a file changed, which are part of its identity.
    ///
    /// - A file that is older than the run gets a version of the same content, because other runs
    ///   know it by its old times.
    /// - A version that the run made is known by its last times. If a process has it open for
    ///   writing, the close gives these times.
    pub(super) fn dated(
        &mut self,
        call: CallContext,
        object: ObjectId,
        path: PathId,
    ) -> Result<(), S::Error> {
        let held = self.object_mut(object);
        if held.kind != EntityKind::File || held.writers > 0 {
            return Ok(());
        }
        if held.now().number == 0 {
            self.next_version(call, object, path, false)?;
            return self.forget(object);
        }
        let now = held.now_mut();
        now.ident = None;
        now.news |= now.entity.is_some();
        Ok(())
    }
}
