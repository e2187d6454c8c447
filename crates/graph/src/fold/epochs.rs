//! Announces epochs to the sink when an edge names them, and completes them when they have ended.

use backstory_vocabulary::LookupsMode;
use std::sync::Arc;

use backstory_eventlog::event::{Bytes, Pid, Time, Via};
use rustc_hash::FxHashSet;

use super::{CallContext, Fold};
use crate::activity::{Epoch, EpochEdges};
use crate::model::{Activity, ActivityId, Inform, Informed, Interval, Sink};
use crate::processor_time;
use crate::serial::Serial;

/// The nodes of all epochs.
#[derive(Debug, Clone, Default)]
pub(super) struct ActivityIds {
    announced: u32,
    by_epoch: Vec<ActivityId>,
}

impl ActivityIds {
    /// The node of an epoch that has none yet.
    fn next(&mut self, epoch: Serial) -> ActivityId {
        let id = ActivityId(self.announced);
        self.announced += 1;
        let all = self.by_epoch.len().max(epoch as usize + 1);
        self.by_epoch.resize(all, ActivityId(u32::MAX));
        self.by_epoch[epoch as usize] = id;
        id
    }

    /// A node of no epoch.
    pub(super) fn without_epoch(&mut self) -> ActivityId {
        let id = ActivityId(self.announced);
        self.announced += 1;
        id
    }

    /// The node of an epoch that has ended.
    pub(super) fn of(&self, epoch: Serial) -> ActivityId {
        let id = self.by_epoch.get(epoch as usize);
        id.copied().unwrap_or(ActivityId(0))
    }
}

impl<S: Sink> Fold<'_, S> {
    pub(super) fn informed(
        &mut self,
        from: Serial,
        to: Serial,
        why: Informed,
        time: Time,
    ) -> Result<(), S::Error> {
        if self.epochs[from as usize].is_none() || self.epochs[to as usize].is_none() {
            return Ok(());
        }
        self.last(from);
        self.last(to);
        let (from, to) = (self.announce(from)?, self.announce(to)?);
        self.sink.inform(&Inform {
            from,
            to,
            why,
            time,
        })
    }

    /// Makes an epoch an activity of its own, whatever program its process runs next.
    pub(super) fn last(&mut self, serial: Serial) {
        if let Some(epoch) = &mut self.epochs[serial as usize] {
            epoch.lasting = true;
        }
    }

    /// Gives an epoch its node.
    pub(super) fn announce(&mut self, serial: Serial) -> Result<ActivityId, S::Error> {
        let Some(epoch) = &mut self.epochs[serial as usize] else {
            // An epoch that has ended has its node already.
            return Ok(self.activities.of(serial));
        };
        if let Some(id) = epoch.id {
            return Ok(id);
        }
        let id = self.activities.next(serial);
        epoch.id = Some(id);
        let activity = epoch.activity(id, self.header.modes.lookups == Some(LookupsMode::All));
        let origin = epoch.origin;
        self.sink.activity(&activity)?;
        if let (Some(origin), Some(from)) = (origin, activity.parent) {
            self.sink.inform(&Inform {
                from,
                to: id,
                why: origin.why,
                time: origin.time,
            })?;
        }
        Ok(id)
    }

    /// Announces an epoch in its final form with its edges, and drops it.
    pub(super) fn flush(&mut self, serial: Serial, end: Time) -> Result<(), S::Error> {
        let told = self.epochs[serial as usize]
            .as_ref()
            .and_then(|epoch| epoch.id);
        if let Some(id) = told {
            self.report_standard(serial, id)?;
            self.report_given(serial, id)?;
        }
        let Some(mut epoch) = self.epochs[serial as usize].take() else {
            return Ok(());
        };
        epoch.last = epoch.last.max(end);
        let Some(id) = epoch.id else { return Ok(()) };
        if let Some(time) = epoch.processor_time {
            let payload = processor_time::encode(time);
            self.sink
                .extended(id, epoch.last, processor_time::KIND, &payload)?;
        }
        self.sink
            .activity(&epoch.activity(id, self.header.modes.lookups == Some(LookupsMode::All)))?;
        for one in epoch.edges.iter() {
            self.sink.edge(&one.edge(id))?;
        }
        Ok(())
    }
}

impl Epoch {
    pub(super) fn new(pid: Pid, start: Time, via: Via) -> Epoch {
        Epoch {
            id: None,
            origin: None,
            parent: None,
            pid,
            number: 0,
            exec_path: None,
            argv: Vec::new(),
            env: None,
            parent_env: None,
            cwd: b"/".as_slice().into(),
            start,
            last: start,
            exit: None,
            signal: None,
            execed: false,
            processor_time: None,
            is_nested: false,
            is_function: false,
            memory: None,
            lasting: false,
            recorded: false,
            via,
            began_with: [None; 3],
            parent_began_with: [None; 3],
            given: Vec::new(),
            edges: EpochEdges::default(),
        }
    }

    /// Gives a new child's epoch its parent's program, which it runs until its first exec.
    pub(super) fn resemble(&mut self, parent: &Epoch) {
        self.exec_path = parent.exec_path.clone();
        self.argv = parent.argv.clone();
        self.env = parent.env.clone();
        self.parent_env = parent.env.clone();
        (self.began_with, self.parent_began_with) = (parent.began_with, parent.began_with);
    }

    /// Begins the next program of the epoch.
    pub(super) fn run(
        &mut self,
        path: Option<Bytes>,
        argv: Vec<Bytes>,
        env: Option<Arc<[Bytes]>>,
        call: CallContext,
    ) {
        self.number += 1;
        self.exec_path = path;
        self.argv = argv;
        self.env = env.or_else(|| self.env.take());
        self.recorded = false;
        self.via = call.via;
    }

    pub(super) fn activity(&self, id: ActivityId, lookups: bool) -> Activity {
        let (env_set, env_unset) = difference(self.parent_env.as_deref(), self.env.as_deref());
        Activity {
            id,
            parent: self.parent,
            pid: self.pid,
            epoch: self.number,
            exec_path: self.exec_path.clone(),
            argv: self.argv.clone(),
            env_set,
            env_unset,
            cwd: self.cwd.clone(),
            interval: Interval {
                start: self.start,
                end: self.last,
            },
            exit: self.exit,
            signal: self.signal,
            execed: self.execed,
            lookups_known: lookups || self.recorded,
            via: self.via,
        }
    }
}

/// The variables whose values differ from those in `old`, and the names that only `old` has.
fn difference(old: Option<&[Bytes]>, new: Option<&[Bytes]>) -> (Vec<Bytes>, Vec<Bytes>) {
    let (Some(old), Some(new)) = (old, new) else {
        return (Vec::new(), Vec::new());
    };
    if std::ptr::eq(old, new) {
        return (Vec::new(), Vec::new());
    }
    let had: FxHashSet<&[u8]> = old.iter().map(|v| &**v).collect();
    let set = new
        .iter()
        .filter(|v| !had.contains(&***v))
        .cloned()
        .collect();
    let names: FxHashSet<&[u8]> = new.iter().map(|v| name(v)).collect();
    let unset = old
        .iter()
        .map(|v| name(v))
        .filter(|n| !names.contains(n))
        .map(Into::into)
        .collect();
    (set, unset)
}

fn name(variable: &[u8]) -> &[u8] {
    variable.split(|&b| b == b'=').next().unwrap_or(variable)
}
