//! Calls that wait until the log is durable.
//!
//! In: a notification of a call that the table of held calls names. Out: the call is parked, and
//! the supervisor lets it go on after a commit of the log. All records that its caller wrote before
//! the call are in the arena by then.
//!
//! Invariant: a call that cannot be parked goes on at once, and the run says so.

use crate::call_logger::CallLogger;
use crate::caller::Caller;
use crate::decoded_call::DecodedCall;
use crate::guard_state::GuardState;
use crate::notification_buffers::{Notification, PARKED};
use crate::path_resolver::Resolved;
use crate::response::Response;
use crate::table::{Abi, HoldRule, TableRow, held_calls, hold_rule};
use backstory_arena::RecordSink;
use backstory_eventlog::Reason;
use backstory_vocabulary::DurabilityMode;

/// True if the call is among those that wait, as far as its arguments decide.
pub(crate) fn is_held(
    state: &GuardState,
    notification: &Notification,
    (abi, row): (Abi, &TableRow),
) -> bool {
    held_calls(state.settings.durability, abi, row.name)
        .is_some_and(|when| when.holds(&notification.args))
}

/// True if a decoded call that is among the held ones waits indeed. `rename` waits only if it
/// replaces a file, or if that cannot be seen without waiting for a file system.
pub(crate) fn waits_for_commit<S: RecordSink>(
    state: &GuardState,
    logger: &mut CallLogger<S>,
    caller: &Caller,
    row: &TableRow,
    (decoded, time): (&DecodedCall, u64),
) -> bool {
    let DecodedCall::Rename { to, .. } = decoded else {
        return true;
    };
    if hold_rule(state.settings.durability, row.name) == HoldRule::Always {
        return true;
    }
    let target = logger
        .resolver
        .look_carefully(caller, &to.inside, false, time);
    !matches!(target, Ok(Resolved::Error(_)))
}

/// Parks a call until the log is durable.
pub(crate) fn hold(state: &GuardState, notification: &Notification) -> Response {
    match state.park(notification.id) {
        Some(parked) => {
            state.hooks.commit(parked.continuing());
            Response::Parked
        }
        None => {
            report_crowd(state);
            Response::Continue
        }
    }
}

/// Reports that more calls waited than can be remembered for the keeper.
pub(crate) fn report_crowd(state: &GuardState) {
    let why = format!("more than {PARKED} calls waited at once");
    state.hooks.report(Reason::Unordered { why });
}

/// Reports a process without a recorder that opens a file to write through it: no part of the
/// recording sees these writes.
pub(crate) fn note_write_through(state: &GuardState, caller: &Caller, decoded: &DecodedCall) {
    let DecodedCall::Open { flags, .. } = decoded else {
        return;
    };
    let through = flags & (libc::O_DSYNC | libc::O_DIRECT) != 0;
    let ordered = state.settings.durability == DurabilityMode::Ordered;
    let writes = flags & libc::O_ACCMODE != libc::O_RDONLY;
    if ordered && through && writes && !state.descriptors.is_recorded(caller.pid) {
        let why = "a program without the recorder wrote through O_SYNC or O_DIRECT".to_owned();
        state.hooks.report(Reason::Unordered { why });
    }
}
