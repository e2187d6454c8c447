//! Renames and exchanges.
//!
//! A rename gives the file a new version under its new name, derived from the version it had. The
//! content is the same, but the name is not.

use super::names::NameState;
use super::{CallContext, Fold};
use crate::model::{Relation, Sink};
use crate::object::ObjectId;
use crate::paths::PathId;

/// `RENAME_EXCHANGE`
const EXCHANGE: u32 = 2;

impl<S: Sink> Fold<'_, S> {
    pub(super) fn rename(
        &mut self,
        call: CallContext,
        from: (i32, &[u8]),
        to: (i32, &[u8]),
        flags: u32,
    ) -> Result<(), S::Error> {
        let Some(old) = self.place(call, from.0, from.1) else {
            return Ok(());
        };
        let Some(new) = self.place(call, to.0, to.1) else {
            return Ok(());
        };
        if call.outcome.failed() {
            return self.looked_in_vain(call, old);
        }
        let (old, new) = (self.follow(old, false), self.follow(new, false));
        if old == new {
            return Ok(());
        }
        if let Some(ident) = call.ident {
            let target = self.lookup(new, call, Some(ident))?;
            self.status_changes(call, target);
        }
        if flags & EXCHANGE != 0 {
            return self.exchange(call, old, new);
        }
        let (object, link) = self.take(call, old)?;
        self.removed(call, new)?;
        let below = self.lift_below(call, old);
        self.put(call, object, link, new)?;
        self.lay_below(call, below, old, new)?;
        self.follow_renames(&[(old, new)]);
        Ok(())
    }

    /// Exchanges two names at once. A path below one of them is never below the other.
    pub(super) fn exchange(
        &mut self,
        call: CallContext,
        a: PathId,
        b: PathId,
    ) -> Result<(), S::Error> {
        let (first, first_link) = self.take(call, a)?;
        let (second, second_link) = self.take(call, b)?;
        let (below_a, below_b) = (self.lift_below(call, a), self.lift_below(call, b));
        self.put(call, first, first_link, b)?;
        self.put(call, second, second_link, a)?;
        self.lay_below(call, below_a, a, b)?;
        self.lay_below(call, below_b, b, a)?;
        self.follow_renames(&[(a, b), (b, a)]);
        Ok(())
    }

    /// Takes the file away from its name. Returns the object and, for a link, its target if that is
    /// known.
    pub(super) fn take(
        &mut self,
        call: CallContext,
        path: PathId,
    ) -> Result<(ObjectId, Option<Option<PathId>>), S::Error> {
        let (object, link) = match self.link_at(path, call.time) {
            Some(link) => (link, Some(self.links.target(path))),
            None => (self.lookup(path, call, None)?, None),
        };
        let entity = self.entity_now(call, object, path)?;
        self.touch(call, entity, Relation::Delete);
        self.not_last(object)?;
        self.object_mut(object)
            .now_mut()
            .was_not_kept(call.time, None);
        let linked = std::mem::replace(&mut self.object_mut(object).linked, true);
        self.unbind(path);
        self.object_mut(object).linked = linked;
        Ok((object, link))
    }

    /// Gives the file the name `new`.
    pub(super) fn put(
        &mut self,
        call: CallContext,
        object: ObjectId,
        link: Option<Option<PathId>>,
        new: PathId,
    ) -> Result<(), S::Error> {
        let itself = link.is_none().then_some(call.time);
        self.moved_version(call, object, new, itself)?;
        let entity = self.entity_now(call, object, new)?;
        self.touch(call, entity, Relation::Rename);
        match link {
            Some(target) => {
                self.links.insert(new, object, target);
                self.missing.remove(&new);
            }
            None => {
                self.bind(new, object);
                self.recognise(object, new, call.time);
            }
        }
        self.forget(object)
    }

    /// Removes the name of a file that a rename replaces.
    pub(super) fn removed(&mut self, call: CallContext, path: PathId) -> Result<(), S::Error> {
        self.replaced_version(call, path)?;
        if let Some(&NameState::Is(object)) = self.names.get(&path) {
            self.not_last(object)?;
        }
        self.unbind(path);
        Ok(())
    }
}
