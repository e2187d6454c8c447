//! Logs a decoded call: concludes its outcome and writes its records, or defers that.
//!
//! Invariant: the record of a call is appended before its response is sent. So a call that went on
//! is in the log, whatever happens to the supervisor.

use crate::call_records::{caller_ids, write_call};
use crate::caller::Caller;
use crate::caller_files::{CallerFiles, PriorLookup};
use crate::change_preserver::{ChangeSource, ChangingCall, log_not_preserved, preserve};
use crate::conclude::conclude;
use crate::conclusion::Conclusion;
use crate::continued_call::ContinuedCall;
use crate::decoded_call::DecodedCall;
use crate::deferred::DeferredCall;
use crate::guard_state::GuardState;
use crate::hash::fingerprint;
use crate::hooks::Effort;
use crate::notification_buffers::Notification;
use crate::parked_call::CommitRequest;
use crate::path_resolver::PathResolver;
use crate::preserve_queue::{PreserveJob, PreserveQueue};
use crate::record_writer::RecordWriter;
use crate::response::Response;
use backstory_arena::RecordSink;
use std::sync::Arc;

/// Logs the calls that one receiver handles.
pub(crate) struct CallLogger<S> {
    /// Writes records to the receiver's own sink.
    pub(crate) out: RecordWriter<S>,
    /// Looks up paths and never waits.
    pub(crate) resolver: PathResolver,
    preserve_queue: Arc<PreserveQueue>,
    /// Calls of this notification that are to be logged once they are over.
    pub(crate) deferred: Vec<DeferredCall>,
    /// This notification was the first of its process, whose exit may be awaited from now on.
    pub(crate) met_process: bool,
    /// The call that is being handled waits for a commit of the log before it is made.
    pub(crate) commits: bool,
}

impl<S: RecordSink> CallLogger<S> {
    pub(crate) fn new(state: &GuardState, queue: &Arc<PreserveQueue>, sink: S) -> CallLogger<S> {
        CallLogger {
            out: RecordWriter::new(sink),
            resolver: state.resolver(false),
            preserve_queue: queue.clone(),
            deferred: Vec::new(),
            met_process: false,
            commits: false,
        }
    }

    /// Logs a call with the outcome that is concluded. A call whose paths are not cached is
    /// deferred.
    pub(crate) fn log(
        &mut self,
        state: &GuardState,
        notification: &Notification,
        caller: Caller,
        time: u64,
        (decoded, prior): (DecodedCall, Option<PriorLookup>),
    ) {
        let repeated = state
            .callers
            .repeats(caller.tid, fingerprint(notification, &decoded));
        if let DecodedCall::Opaque(what) = decoded
            && !state.rings.first_mark(caller.pid, what)
        {
            return;
        }
        let tracked = state.tracked(&caller, notification, time);
        if !matches!(decoded, DecodedCall::Exec { .. } | DecodedCall::Look { .. }) {
            state.descriptors.before_call(&mut self.out, &tracked);
        }
        let mut files = CallerFiles {
            resolver: &mut self.resolver,
            callers: &state.callers,
            caller: &caller,
            now: time,
            since: None,
            prior,
            readonly_mount: None,
            removed_link: None,
        };
        match conclude(&decoded, &mut files) {
            Ok(conclusion) => {
                if repeated && conclusion.may_wait {
                    return;
                }
                if matches!(decoded, DecodedCall::Exec { .. }) && !conclusion.fields.result_failed()
                {
                    state.descriptors.before_exec(&mut self.out, &tracked);
                }
                let stamp = (time, caller_ids(&caller, notification));
                let environments = &state.environments;
                write_call(&mut self.out, stamp, &decoded, &conclusion, environments);
            }
            Err(_) if repeated => {}
            Err(_) => self.deferred.push(DeferredCall {
                continued: ContinuedCall::new(notification),
                notification: *notification,
                caller,
                time,
                real: backstory_sys::clock::machine(),
                decoded,
            }),
        }
    }

    /// Logs a call as an attempt whose outcome is unknown.
    pub(crate) fn log_attempt(
        &mut self,
        state: &GuardState,
        notification: &Notification,
        caller: &Caller,
        time: u64,
        decoded: &DecodedCall,
    ) {
        self.log_as(
            state,
            (time, notification, caller),
            decoded,
            &Conclusion::unknown(decoded),
        );
    }

    /// Logs a call with this conclusion.
    pub(crate) fn log_as(
        &mut self,
        state: &GuardState,
        (time, notification, caller): (u64, &Notification, &Caller),
        decoded: &DecodedCall,
        conclusion: &Conclusion,
    ) {
        let stamp = (time, caller_ids(caller, notification));
        let environments = &state.environments;
        write_call(&mut self.out, stamp, decoded, conclusion, environments);
    }

    /// The time of a call that is about to change a file and was received at `time`. The processes
    /// that have ended until then get their exits in the log, before this time.
    pub(crate) fn time_of_change(&mut self, state: &GuardState, time: u64) -> u64 {
        match state.hooks.preserver() {
            Some(_) => state.exits.write_ended(time, &mut self.out),
            None => time,
        }
    }

    /// Preserves the content that a call changes, or parks the call until that is done.
    pub(crate) fn preserve(
        &mut self,
        state: &GuardState,
        notification: &Notification,
        time: u64,
        source: ChangeSource,
    ) -> Response {
        if state.hooks.preserver().is_none() {
            return Response::Continue;
        }
        let at = ChangingCall {
            notification,
            time,
            source: &source,
        };
        if self.preserve_at_once(state, &at) {
            return Response::Continue;
        }
        let Some(parked) = state.park(notification.id) else {
            // More calls wait than can be remembered for the keeper.
            log_not_preserved(&mut self.out, notification, time, &source, libc::EAGAIN);
            return Response::Continue;
        };
        let commits = self.commits.then(|| -> CommitRequest {
            let hooks = state.hooks.clone();
            Box::new(move |call| hooks.commit(call))
        });
        self.preserve_queue.push(PreserveJob {
            parked: parked.continuing().committing(commits),
            notification: *notification,
            time,
            source,
        });
        Response::Parked
    }

    /// True if the content need not be preserved, or was preserved with so little effort that no
    /// other thread has to be woken.
    fn preserve_at_once(&mut self, state: &GuardState, at: &ChangingCall<'_>) -> bool {
        // A look at what was read could wait for a file system that is not local.
        let local = self.resolver.all_local(at.time);
        state.hooks.preserver().is_some_and(|preserver| {
            let (resolver, out) = (&mut self.resolver, &mut self.out);
            local && preserve(state, preserver, Effort::Little, at, resolver, out).is_ok()
        })
    }
}
