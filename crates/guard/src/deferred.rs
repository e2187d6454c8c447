//! Calls that are concluded after the response, because the look-up could wait for another process.
//!
//! Invariant: the deferred thread receives no notifications. So a file server that is recorded
//! itself, and that the thread waits for, can always make calls. The thread asks a file server
//! nothing while the caller still waits for that server's reply (`continued_call`).

use crate::call_records::{caller_ids, write_call};
use crate::caller::Caller;
use crate::caller_files::CallerFiles;
use crate::conclude::conclude;
use crate::conclusion::Conclusion;
use crate::continued_call::ContinuedCall;
use crate::decoded_call::DecodedCall;
use crate::guard_state::GuardState;
use crate::notification_buffers::Notification;
use crate::pending_effect::may_read;
use crate::record_writer::RecordWriter;
use crate::threads::ThreadControl;
use backstory_arena::RecordSink;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

/// A call that goes on and is concluded later. The queue holds boxes: without them it would be a
/// megabyte, touched at once.
pub(crate) struct DeferredCall {
    pub(crate) notification: Notification,
    pub(crate) caller: Caller,
    /// When the call was received, in ticks.
    pub(crate) time: u64,
    /// The same in nanoseconds since 1970.
    pub(crate) real: i64,
    pub(crate) decoded: DecodedCall,
    /// Tells when the call is over.
    pub(crate) continued: ContinuedCall,
}

/// The deferred thread: works through the queue until no receiver is left that could add to it.
pub(crate) fn run_deferred<S: RecordSink>(
    state: &GuardState,
    control: &ThreadControl,
    mut out: RecordWriter<S>,
    queue: &Receiver<Box<DeferredCall>>,
) {
    let mut resolver = state.resolver(true);
    for call in queue {
        let goes_on = || state.later_calls.follow(&call.notification);
        if !call.continued.wait_until_over(&goes_on) {
            control.unanswered.store(true, Ordering::Release);
            log_unknown(state, &mut out, &call);
            continue;
        }
        let mut files = CallerFiles {
            resolver: &mut resolver,
            callers: &state.callers,
            caller: &call.caller,
            now: call.time,
            since: Some(call.real),
            prior: None,
            readonly_mount: None,
            removed_link: None,
        };
        if let Ok(conclusion) = conclude(&call.decoded, &mut files) {
            write(state, &mut out, &call, &conclusion);
        }
        finish(state, &call);
    }
}

/// Logs a deferred call whose outcome cannot be found out.
pub(crate) fn log_unknown<S: RecordSink>(
    state: &GuardState,
    out: &mut RecordWriter<S>,
    call: &DeferredCall,
) {
    write(state, out, call, &Conclusion::unknown(&call.decoded));
    finish(state, call);
}

fn write<S: RecordSink>(
    state: &GuardState,
    out: &mut RecordWriter<S>,
    call: &DeferredCall,
    conclusion: &Conclusion,
) {
    let stamp = (call.time, caller_ids(&call.caller, &call.notification));
    write_call(out, stamp, &call.decoded, conclusion, &state.environments);
}

/// The call is logged and no longer counted as deferred.
fn finish(state: &GuardState, call: &DeferredCall) {
    state.note_read(may_read(&call.decoded));
    state.finish_deferred();
}
