//! Handles one notification: decodes the call, has it logged, and says how to respond.
//!
//! In: a notification that waits. Out: a [`Response`], and the call's records in the log. The
//! receiver (`receiver`) sends the response.

use crate::arguments::Arguments;
use crate::call_logger::CallLogger;
use crate::caller::{Caller, FileSystemView};
use crate::change_preserver::ChangeSource;
use crate::decode::decode;
use crate::decoded_call::DecodedCall;
use crate::environment::arena_of;
use crate::guard_state::GuardState;
use crate::held_call::{hold, is_held, note_write_through, waits_for_commit};
use crate::memory::{ProcessMemory, Unreadable};
use crate::new_process::log_new_process;
use crate::notification_buffers::Notification;
use crate::pending_effect::{may_read, pending_effect};
use crate::recorder_request::respond_to_recorder;
use crate::response::Response;
use crate::table::{Abi, CallShape, GuardAction, TableRow};
use crate::uring::RingCall;
use backstory_arena::RecordSink;
use backstory_eventlog::Reason;
use backstory_eventlog::reason::undecoded;
use backstory_sys as sys;
use std::cell::OnceCell;

/// The mark of a process whose memory cannot be read, among the marks of
/// [`Callers`](crate::callers::Callers).
const UNREADABLE: u32 = 1 << 31;

/// Handles a notification that was received at `time`.
pub(crate) fn handle<S: RecordSink>(
    state: &GuardState,
    logger: &mut CallLogger<S>,
    notification: &Notification,
    time: u64,
) -> Response {
    let simulator = state.settings.simulator.as_ref();
    let simulator = simulator.filter(|one| one.runs(&state.callers, notification.tid));
    let Some(simulator) = simulator else {
        return handle_call(state, logger, notification, time);
    };
    match simulator.program_call(notification, state.settings.gate) {
        // The list was the caller's if the caller still waits.
        Ok(Some(call)) if state.still_waits(call.id) => handle_call(state, logger, &call, time),
        Ok(None) if simulator.take_request(notification) => Response::Value(0),
        _ => Response::Continue,
    }
}

/// Handles a call that a program makes.
fn handle_call<S: RecordSink>(
    state: &GuardState,
    logger: &mut CallLogger<S>,
    notification: &Notification,
    time: u64,
) -> Response {
    // A kernel without x32 fails such a call with ENOSYS.
    let abi = Abi::of(notification.arch, notification.nr);
    let abi = abi.filter(|&abi| abi != Abi::X32 || sys::has_x32());
    let Some((abi, row)) = abi.and_then(|abi| Some((abi, abi.row(notification.nr)?))) else {
        return Response::Continue;
    };
    logger.commits = is_held(state, notification, (abi, row));
    let response = match row.guard {
        GuardAction::Restrict(_) => {
            state.hooks.restricts_itself(notification.tid);
            Response::Continue
        }
        GuardAction::Magic => respond_to_recorder(state, logger, notification, time),
        _ => handle_watched(state, logger, notification, time, (abi, row)),
    };
    match response {
        Response::Continue if logger.commits => hold(state, notification),
        other => other,
    }
}

/// Handles a watched call: decodes it, concludes its outcome and logs it.
fn handle_watched<S: RecordSink>(
    state: &GuardState,
    logger: &mut CallLogger<S>,
    notification: &Notification,
    mut time: u64,
    (abi, row): (Abi, &TableRow),
) -> Response {
    let Some(shape) = row.guard.shape() else {
        return Response::Continue;
    };
    let mut memory = ProcessMemory::of(notification.tid);
    // A caller that cannot be identified (no descriptor is left) must not be lost: its thread id
    // stands for it.
    let caller = state
        .callers
        .meet(notification.tid, time)
        .unwrap_or_else(|_| Caller::unknown(notification.tid));
    let mut arguments = Arguments {
        args: &notification.args,
        memory: &mut memory,
        caller: &caller,
        callers: &state.callers,
        cwd: OnceCell::new(),
    };
    let decoded = decode(shape, abi, &mut arguments);
    let decoded = match &state.settings.simulator {
        Some(simulator) => decoded.map(|decoded| simulator.unwrapped(decoded, &arguments)),
        None => decoded,
    };
    if !state.still_waits(notification.id) {
        return Response::Continue;
    }
    if caller.new {
        time = log_new_process(state, &mut logger.out, notification, &caller, time);
        logger.met_process = true;
    }
    let decoded = match decoded {
        Ok(decoded) => decoded,
        Err(Unreadable::Forbidden) => {
            log_unreadable(state, logger, notification, &caller, time);
            return Response::Continue;
        }
        // The kernel will fail the call with EFAULT, whatever it is.
        Err(Unreadable::Fault | Unreadable::Gone) => return Response::Continue,
    };
    match shape {
        CallShape::Listener => {
            report_refused_listener(state, &caller);
            return Response::Continue;
        }
        CallShape::RingSetup | CallShape::RingEnter | CallShape::RingRegister => {
            let call = RingCall {
                state,
                logger,
                notification,
                caller: &caller,
                memory: &mut memory,
                time,
            };
            return call.handle(shape);
        }
        _ => {}
    }
    if let Some(response) = handle_own_file(state, notification, &caller, time, &decoded) {
        return response;
    }
    note_view_change(state, &decoded, row, time);
    note_other_recording(state, &decoded);
    if logger.commits {
        logger.commits = waits_for_commit(state, logger, &caller, row, (&decoded, time));
    }
    let settings = &state.settings;
    let gated = !settings.strict && settings.gate == Some(notification.ip);
    if gated || decoded.has_empty_path() {
        return Response::Continue;
    }
    let effect = pending_effect(state, &mut logger.resolver, &caller, &decoded, time);
    let reads = may_read(&decoded);
    if effect.change.is_some() {
        time = logger.time_of_change(state, time);
    }
    note_write_through(state, &caller, &decoded);
    logger.log(state, notification, caller, time, (decoded, effect.prior));
    state.count(reads, !logger.deferred.is_empty());
    match effect.change {
        Some(change) => {
            let source = ChangeSource::Guard(vec![change]);
            logger.preserve(state, notification, time, source)
        }
        None => Response::Continue,
    }
}

/// Handles opens that concern only the recorder, the guard and the byte engine: of the arena and of
/// libraries that these put into programs.
fn handle_own_file(
    state: &GuardState,
    notification: &Notification,
    caller: &Caller,
    time: u64,
    decoded: &DecodedCall,
) -> Option<Response> {
    let DecodedCall::Open { name, .. } = decoded else {
        return None;
    };
    let settings = &state.settings;
    if name.inside == settings.arena_path && !name.inside.is_empty() {
        let from_gate = settings.gate == Some(notification.ip);
        if (settings.strict || settings.simulator.is_some()) && from_gate {
            return Some(Response::Continue);
        }
        state.descriptors.forget_recorder(caller.pid);
        return Some(Response::Error(libc::EOPNOTSUPP));
    }
    let simulator = settings.simulator.as_ref();
    if simulator.is_some_and(|simulator| simulator.owns(&name.inside)) {
        return Some(Response::Continue);
    }
    let mut hidden = settings.hidden.iter();
    if !hidden.any(|prefix| name.inside.starts_with(prefix)) {
        return None;
    }
    // The recorder's library is opened before a recorder runs in the process. `clone3` is never
    // notified, and a recorder in the parent has seen it. Process ids matter to recorders alone, so
    // this is early enough.
    if !state.descriptors.is_recorded(caller.parent)
        && state.callers.has_other_numbers(notification.tid)
    {
        state.hooks.pid_namespace_created();
    }
    let native = Abi::of(notification.arch, notification.nr) == Some(Abi::X64);
    if native && matches!(caller.view, FileSystemView::Own) {
        state.descriptors.set_recorded(caller.pid);
        if let Some(preserver) = state.hooks.preserver() {
            let directory = state.callers.link(caller.tid, format_args!("cwd"));
            preserver.program_starts(time, caller.pid, directory);
        }
    }
    Some(Response::Continue)
}

/// Notes that a process is about to execute a program for another recording inside this one. The
/// recorder there has the same gate, so the filter lets the calls of the program pass unseen.
fn note_other_recording(state: &GuardState, decoded: &DecodedCall) {
    if let DecodedCall::Exec { env: Some(env), .. } = decoded
        && let Some(arena) = arena_of(&env.bytes)
        && *arena != state.settings.arena_path[..]
    {
        state.hooks.other_recording(arena);
    }
}

/// Notes that a call is about to change the meaning of paths or of process ids.
fn note_view_change(state: &GuardState, decoded: &DecodedCall, row: &TableRow, time: u64) {
    if !matches!(row.guard, GuardAction::View(..)) {
        return;
    }
    let mut view = true;
    if let DecodedCall::Namespace { flags } = decoded {
        if flags & libc::CLONE_NEWPID as u32 != 0 {
            state.hooks.pid_namespace_created();
        }
        view = flags & libc::CLONE_NEWNS as u32 != 0;
    }
    if let DecodedCall::Mount { .. } = decoded {
        // This is also the first sign of a mount namespace that `clone3` made: `clone3` is never
        // notified.
        state.settings.mounts.change(time);
    }
    if view {
        state.callers.view_changes(time);
    }
}

fn log_unreadable<S: RecordSink>(
    state: &GuardState,
    logger: &mut CallLogger<S>,
    notification: &Notification,
    caller: &Caller,
    time: u64,
) {
    if state.callers.mark(caller.tid, UNREADABLE) {
        state.hooks.report(Reason::Unreadable { pid: caller.pid });
        let decoded = DecodedCall::Opaque(undecoded::PROTECTED);
        logger.log_attempt(state, notification, caller, time, &decoded);
    }
}

fn report_refused_listener(state: &GuardState, caller: &Caller) {
    let program = state.callers.link(caller.tid, format_args!("exe"));
    let program = program.unwrap_or_else(|| format!("process {}", caller.pid).into_bytes());
    let program = String::from_utf8_lossy(&program).into_owned();
    state.hooks.report(Reason::ListenerRefused { program });
}
