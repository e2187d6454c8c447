//! Activities that a source names by itself, and the things that they use. A database's
//! transaction, table or row is an example.
//!
//! A thing has versions, as a file has. It has no path, no descriptor and no inode. A thing with
//! the address of a connection as its name is that connection, which has one state only.

use backstory_eventlog::event::{Bytes, Pid, ResourceAccess};
use rustc_hash::FxHashMap;

use super::{CallContext, Fold};
use crate::model::{EntityKind, Relation, Sink};
use crate::nested::{KIND, NESTED};
use crate::object::ObjectId;
use crate::paths::ROOT;

/// The things that sources named, by name and number.
pub(super) type ResourceObjects = FxHashMap<(Bytes, i32), ObjectId>;

/// True for the name of a connection.
fn is_connection(name: &[u8]) -> bool {
    [&b"tcp:"[..], b"unix:"]
        .iter()
        .any(|kind| name.starts_with(kind))
}

impl<S: Sink> Fold<'_, S> {
    /// Begins an activity of a source, inside the present activity of a process.
    pub(super) fn work(
        &mut self,
        call: CallContext,
        inside: Option<Pid>,
        what: Bytes,
        text: Bytes,
    ) -> Result<(), S::Error> {
        let words = [what, text].into_iter();
        let words = words.filter(|word| !word.is_empty()).collect();
        // The work of a source has no directory.
        self.begin_work(call, inside, words, Bytes::default())
    }

    /// Begins an activity with the number `call.pid`, which is no process.
    pub(super) fn begin_work(
        &mut self,
        call: CallContext,
        inside: Option<Pid>,
        argv: Vec<Bytes>,
        cwd: Bytes,
    ) -> Result<(), S::Error> {
        self.begin_process(call, call.pid, None, None)?;
        let outer = inside.and_then(|pid| self.processes.get(&pid));
        let outer = outer.map(|process| process.epoch);
        let parent = match outer {
            Some(serial) => {
                self.last(serial);
                Some(self.announce(serial)?)
            }
            None => None,
        };
        let serial = self.processes[&call.pid].epoch;
        if let Some(epoch) = &mut self.epochs[serial as usize] {
            (epoch.parent, epoch.argv) = (parent, argv);
            epoch.cwd = cwd;
            (epoch.lasting, epoch.is_nested) = (true, true);
        }
        let id = self.announce(serial)?;
        self.sink.extended(id, call.time, KIND, NESTED)
    }

    /// Notes that an activity used a thing.
    pub(super) fn resource(
        &mut self,
        call: CallContext,
        number: i32,
        access: ResourceAccess,
        name: Bytes,
    ) -> Result<(), S::Error> {
        let object = match self.resources.get(&(name.clone(), number)) {
            Some(object) => *object,
            None => {
                let kind = match is_connection(&name) {
                    true => EntityKind::Socket,
                    false => EntityKind::Resource,
                };
                let object = self.channel(kind, name.to_vec(), call.time);
                self.resources.insert((name, number), object);
                object
            }
        };
        match access {
            ResourceAccess::Read => self.read_resource(call, object, Relation::Read),
            ResourceAccess::Delete => self.read_resource(call, object, Relation::Delete),
            ResourceAccess::Write => self.write_resource(call, object, true),
            ResourceAccess::Change => self.write_resource(call, object, false),
        }
    }

    /// A use of the present version, which a later write does not change.
    fn read_resource(
        &mut self,
        call: CallContext,
        object: ObjectId,
        relation: Relation,
    ) -> Result<(), S::Error> {
        let entity = self.entity_now(call, object, ROOT)?;
        self.touch(call, entity, relation);
        self.object_mut(object).now_mut().read = true;
        Ok(())
    }

    fn write_resource(
        &mut self,
        call: CallContext,
        object: ObjectId,
        fresh: bool,
    ) -> Result<(), S::Error> {
        self.begin_write(call, object, ROOT, fresh)?;
        self.wrote(call, object, ROOT)?;
        let version = self.object_mut(object).now_mut();
        version.writers.add(call.epoch);
        version.ident = call.ident;
        self.forget(object)
    }
}
