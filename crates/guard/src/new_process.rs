//! Introduces a process at its first notified call.

use crate::call_records::write_born;
use crate::caller::Caller;
use crate::guard_state::GuardState;
use crate::notification_buffers::Notification;
use crate::record_writer::RecordWriter;
use backstory_arena::RecordSink;

/// Writes the `BORN` record of a process and awaits its exit. Returns the time that the call's own
/// records are to have: another receiver may have introduced the parent at a later call.
pub(crate) fn log_new_process<S: RecordSink>(
    state: &GuardState,
    out: &mut RecordWriter<S>,
    notification: &Notification,
    caller: &Caller,
    time: u64,
) -> u64 {
    state.rings.forget(caller.pid);
    let tracked = state.tracked(caller, notification, time);
    let time = state.descriptors.introduce(out, &tracked);
    // The supervisor collects its own children and writes their exits.
    let collected = state.hooks.collects_children_of(caller.parent);
    write_born(out, caller, notification, time, collected);
    // A child that never executes a program has an exit, too.
    if !collected {
        match caller.process.clone() {
            Some(pidfd) => state.exits.follow_pidfd(caller.pid, pidfd),
            None => state.exits.follow(caller.pid),
        }
    }
    time
}
