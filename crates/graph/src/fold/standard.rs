//! The targets of standard input, output and error when a program begins. Redirections are written
//! down again from them.

use backstory_eventlog::event::Pid;

use super::Fold;
use crate::activity::Outlet;
use crate::model::{ActivityId, Certainty, EntityId, EntityKind, Sink};
use crate::serial::Serial;
use crate::standard::{GIVEN, KIND, StandardEnd, encode, encode_given};

impl<S: Sink> Fold<'_, S> {
    /// The versions behind the first three descriptors of the process, now that a program begins.
    pub(super) fn outlets(&self, pid: Pid) -> [Option<Outlet>; 3] {
        let Some(process) = self.processes.get(&pid) else {
            return [None; 3];
        };
        [0, 1, 2].map(|fd| {
            let what = process.descriptors.get(&fd)?.what.as_deref()?;
            let object = if fd == 0 { what.source } else { what.target };
            let held = self.object(object);
            let tells = matches!(
                held.kind,
                EntityKind::File | EntityKind::Pipe | EntityKind::Device
            );
            let (number, entity) = (held.now().number, held.now().entity);
            tells.then_some(Outlet {
                object,
                number,
                keeps: what.keeps,
                entity,
            })
        })
    }

    /// Reports the standard descriptors that the epoch began with, if its parent began with others.
    pub(super) fn report_standard(
        &mut self,
        serial: Serial,
        id: ActivityId,
    ) -> Result<(), S::Error> {
        let Some(epoch) = self.epochs[serial as usize].as_deref() else {
            return Ok(());
        };
        let (began, start) = (epoch.began_with, epoch.start);
        if began == epoch.parent_began_with {
            return Ok(());
        }
        let ends = began.map(|outlet| {
            let outlet = outlet?;
            let entity = self.outlet_entity(outlet)?;
            let keeps = outlet.keeps;
            Some(StandardEnd { entity, keeps })
        });
        self.sink.extended(id, start, KIND, &encode(&ends.into()))
    }

    /// Notes the standard descriptors that a child began with. Its parent may have opened them only
    /// for the child.
    pub(super) fn give(&mut self, giver: Option<Serial>, outlets: &[Option<Outlet>; 3]) {
        let Some(epoch) = giver.and_then(|giver| self.epochs[giver as usize].as_deref_mut()) else {
            return;
        };
        for entity in outlets.iter().flatten().filter_map(|outlet| outlet.entity) {
            if !epoch.given.contains(&entity) {
                epoch.given.push(entity);
            }
        }
    }

    /// Reports the files that the epoch opened for its children and was not seen to write to
    /// itself.
    pub(super) fn report_given(&mut self, serial: Serial, id: ActivityId) -> Result<(), S::Error> {
        let Some(epoch) = self.epochs[serial as usize].as_deref() else {
            return Ok(());
        };
        if epoch.given.is_empty() || !epoch.recorded {
            return Ok(());
        }
        let opened = epoch
            .edges
            .iter()
            .filter(|edge| edge.opened && edge.certainty == Certainty::Seen)
            .map(|edge| edge.entity);
        let given: Vec<EntityId> = opened
            .filter(|entity| epoch.given.contains(entity))
            .collect();
        let start = epoch.start;
        if given.is_empty() {
            return Ok(());
        }
        self.sink.extended(id, start, GIVEN, &encode_given(&given))
    }

    /// The node of the version that a standard descriptor led to. Pipes and files get their nodes
    /// when they are first used, which is later than the program begins. A file may have been
    /// changed by then. Any of its versions shows where the descriptor led. Of these, the one
    /// before the present version is nearer to the version at the start.
    fn outlet_entity(&self, outlet: Outlet) -> Option<EntityId> {
        let now = self.object(outlet.object).now();
        let before = || now.previous.filter(|_| now.number != outlet.number);
        outlet.entity.or_else(before).or(now.entity)
    }
}
