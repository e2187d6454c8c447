//! Current directories and roots.

use super::{CallContext, Fold};
use crate::model::{Relation, Sink};
use crate::paths::{PathId, ROOT};

impl<S: Sink> Fold<'_, S> {
    pub(super) fn chdir(
        &mut self,
        call: CallContext,
        fd: i32,
        path: &[u8],
        now: &[u8],
    ) -> Result<(), S::Error> {
        let named = if path.is_empty() {
            self.descriptor(call, fd).map(|h| h.location)
        } else {
            self.place(call, backstory_eventlog::event::CWD, path)
        };
        if call.outcome.failed() {
            return match named {
                Some(named) if call.absent() => self.not_there(call, named),
                _ => Ok(()),
            };
        }
        let root = self.top_of(call);
        let place = if now.starts_with(b"/") {
            let seen = self.walk(root, root, now);
            Some(self.shown(call.pid, seen))
        } else {
            named
        };
        if let Some(place) = place {
            let place = self.follow(place, true);
            self.set_cwd(call, place);
            if let Some(named) = named.filter(|named| *named != place) {
                self.passed_links(call, named)?;
            }
        }
        Ok(())
    }

    /// Notes the older symbolic links in a path that the process followed.
    fn passed_links(&mut self, call: CallContext, path: PathId) -> Result<(), S::Error> {
        let mut at = path;
        while at != ROOT {
            if self.is_older_link(at) {
                let link = self.link_met(at, call.time);
                let entity = self.entity_now(call, link, at)?;
                self.touch(call, entity, Relation::Link);
            }
            at = self.paths.parent(at);
        }
        Ok(())
    }

    /// The root directory of the calling process.
    pub(super) fn root_of(&self, call: CallContext) -> PathId {
        let process = self.processes.get(&call.pid);
        process.map_or(ROOT, |p| p.fs(call.tid).root.get())
    }

    pub(super) fn set_cwd(&mut self, call: CallContext, place: PathId) {
        if let Some(process) = self.processes.get_mut(&call.pid) {
            process.fs(call.tid).cwd.set(place);
            if let Some(epoch) = self.epochs[process.epoch as usize]
                .as_mut()
                .filter(|e| e.number == 0)
            {
                epoch.cwd = self.paths.bytes(place).into();
            }
        }
    }

    pub(super) fn chroot(&mut self, call: CallContext, path: &[u8]) -> Result<(), S::Error> {
        if call.outcome.failed() {
            return Ok(());
        }
        let place = self.place_of_content(call, backstory_eventlog::event::CWD, path);
        if let (Some(place), Some(process)) = (place, self.processes.get(&call.pid)) {
            process.fs(call.tid).root.set(place);
        }
        Ok(())
    }
}
