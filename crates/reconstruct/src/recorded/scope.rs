//! The part of a record that is arranged: all of it, its outline, or what requests need.
//!
//! In: the calls of a log, as for a whole run. Out: the same resources with the same numbers, and
//! of the other facts those that are needed. Memory: of what is left out, a few numbers for each
//! stream.

use super::{Arranging, ended};
use crate::input::{self, InputItem};
use crate::output::{self, OutputItem};
use crate::process::CallObject;
use crate::resource::{Origin, ResourceId};
use crate::selection::Selection;
use backstory_deep::Call;

/// Calls of a process between two looks at what can be left out of it. At least as many more follow
/// as items were left, so that the looks take a bounded part of the time.
const STEP: u64 = if cfg!(test) { 4 } else { 1 << 14 };

/// The same in bytes that the calls moved.
const STEP_BYTES: u64 = 1 << 20;

/// The part of a record that is arranged.
#[derive(Default)]
pub(crate) enum Scope {
    /// All of it.
    #[default]
    Whole,
    /// How each process began and ended, its resources, its children and its connections. No bytes,
    /// and no results.
    Outline,
    /// The outline, and all that the requests of a selection need.
    Part(Box<Selection>),
}

impl Arranging {
    /// Begins with what is arranged.
    pub(crate) fn of_scope(mut self, scope: Scope) -> Arranging {
        self.scope = scope;
        self
    }

    /// A process with this number follows.
    pub(super) fn enter_scope(&mut self, pid: u32) {
        self.in_outline = match &self.scope {
            Scope::Whole => false,
            Scope::Outline => true,
            Scope::Part(selection) => !selection.makes(pid),
        };
        self.works_for_omitted.clear();
        self.look_at = STEP;
        (self.added, self.most_added) = (0, STEP_BYTES);
    }

    /// True if the streams and results of a resource are left out.
    pub(super) fn omits(&self, id: ResourceId) -> bool {
        match &self.scope {
            Scope::Part(selection) if !self.in_outline => {
                self.is_accepted(id) && !selection.has(id)
            }
            _ => self.in_outline,
        }
    }

    /// True if a connection that gets this number when it is accepted is left out, in all
    /// processes.
    pub(super) fn omits_accepted(&self, next: ResourceId) -> bool {
        matches!(&self.scope, Scope::Part(selection) if !selection.has(next))
    }

    fn is_accepted(&self, id: ResourceId) -> bool {
        matches!(self.run.resources[id].origin, Origin::Accepted(_))
    }

    /// True if the result of a call is left out. The ends of children are in those of `wait4`.
    pub(super) fn omits_result(&self, call: &Call, object: &CallObject) -> bool {
        match object {
            CallObject::Process if call.number == libc::SYS_wait4 as u16 => false,
            CallObject::Resource(id) => self.omits(*id),
            _ => self.in_outline,
        }
    }

    /// Counts a read whose bytes are left out.
    pub(super) fn omit_read(&mut self, id: ResourceId, call: &Call, item: &InputItem) {
        let (time, length) = (ended(call), input::length(item) as u64);
        let omitted = &mut self.process.omitted;
        omitted.streams.entry(id).or_default().read(time, length);
        if matches!(&self.scope, Scope::Part(selection) if selection.is_shared(id)) {
            let moves = omitted.moves.entry(id).or_default();
            moves.reads.push((time, length));
        }
    }

    /// Counts a write whose bytes are left out.
    pub(super) fn omit_write(&mut self, id: ResourceId, call: &Call, item: &OutputItem) {
        let (time, length) = (ended(call), output::length(item));
        let omitted = &mut self.process.omitted;
        omitted.streams.entry(id).or_default().wrote(time, length);
        if matches!(&self.scope, Scope::Part(selection) if selection.is_shared(id)) {
            let moves = omitted.moves.entry(id).or_default();
            moves.writes.push((time, length));
        }
    }

    /// Notes for which kind of accepted connections a thread works: for ones that are left out, or
    /// for others.
    pub(super) fn note_work(&mut self, id: ResourceId, call: &Call) {
        if self.in_outline || !matches!(self.scope, Scope::Part(_)) || !self.is_accepted(id) {
            return;
        }
        if !self.omits(id) {
            self.works_for_omitted.remove(&call.tid);
            return;
        }
        let time = ended(call);
        let goes_on = !self.works_for_omitted.insert(call.tid);
        let spans = self.process.omitted.work.entry(call.tid).or_default();
        match spans.last_mut().filter(|_| goes_on) {
            Some((_, last)) => *last = time.max(*last),
            None => spans.push((time, time)),
        }
    }

    /// So many bytes of a call are kept.
    pub(super) fn keeps_bytes(&mut self, bytes: usize) {
        self.added = self.added.saturating_add(bytes as u64);
    }

    /// Leaves out what no request of the selection needs, if enough calls were taken since the last
    /// look.
    pub(super) fn look_again(&mut self) {
        if self.process.calls < self.look_at && self.added < self.most_added {
            return;
        }
        let (items, bytes) = self.leave_out();
        self.look_at = self.process.calls.saturating_add(STEP.max(items));
        (self.added, self.most_added) = (0, STEP_BYTES.max(bytes));
    }

    /// Leaves out what no request of the selection needs. Returns the number of items that are
    /// left, and their bytes.
    pub(super) fn leave_out(&mut self) -> (u64, u64) {
        match &self.scope {
            Scope::Part(selection) if !self.in_outline => {
                selection.leave_out(&mut self.process, &self.run.resources)
            }
            _ => (u64::MAX, u64::MAX),
        }
    }
}
