//! Pipes that only descriptor lists mention: their makers, and the processes that can have used
//! their ends.

use super::descriptors::at;
use super::{CallContext, Fold};
use crate::model::{Certainty, Interval, Relation, Sink};
use crate::object::ObjectId;
use crate::paths::ROOT;
use crate::process::UnseenPipe;
use crate::serial::Serial;
use backstory_eventlog::event::{Outcome, Pid, Time, Via};

impl<S: Sink> Fold<'_, S> {
    /// Notes the process that made a pipe. False if the process is not known, or if a recorder saw
    /// its operations.
    pub(super) fn made_by(&mut self, maker: Pid, object: ObjectId, since: Time) -> bool {
        let Some(process) = self.processes.get_mut(&maker).filter(|p| !p.ended) else {
            return false;
        };
        let epoch = process.epoch;
        if self.epochs[epoch as usize]
            .as_ref()
            .is_none_or(|e| e.recorded)
        {
            return false;
        }
        process.made.push(UnseenPipe {
            object,
            since,
            epoch,
        });
        true
    }

    /// Handles pipes that were made unseen. If no process was found at an end, the maker can have
    /// used that end.
    pub(super) fn own_pipes(&mut self, made: Vec<UnseenPipe>, time: Time) -> Result<(), S::Error> {
        for UnseenPipe {
            object,
            since,
            epoch,
        } in made
        {
            let ends = self.lists.ends.get(&object).copied().unwrap_or_default();
            if self.epochs[epoch as usize].is_none() || !ends.shared {
                continue;
            }
            for (relation, given) in [
                (Relation::Read, ends.reader),
                (Relation::Write, ends.writer),
            ] {
                if !given {
                    self.can_have_used(epoch, object, relation, since, time)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn can_have_used(
        &mut self,
        epoch: Serial,
        object: ObjectId,
        relation: Relation,
        since: Time,
        time: Time,
    ) -> Result<(), S::Error> {
        let call = CallContext {
            time,
            pid: 0,
            tid: 0,
            epoch,
            via: Via::Kernel,
            outcome: Outcome::Unknown,
            ident: None,
            resolved: true,
        };
        let entity = self.entity_now(call, object, ROOT)?;
        let interval = Interval {
            end: time.max(since),
            ..at(since)
        };
        self.edge(
            epoch,
            entity,
            relation,
            interval,
            Certainty::Possible,
            Via::Kernel,
        );
        Ok(())
    }
}
