//! The requests of recorders: `getpriority` calls with a magic argument, which no program makes.
//!
//! The numbers and their arguments are defined in `backstory_abi.h`.

use crate::call_logger::CallLogger;
use crate::call_records::write_born;
use crate::change_preserver::ChangeSource;
use crate::guard_state::GuardState;
use crate::held_call::report_crowd;
use crate::memory::ProcessMemory;
use crate::notification_buffers::Notification;
use crate::response::Response;
use backstory_abi::{
    MAGIC_ANNOUNCE, MAGIC_ARENA, MAGIC_BROKER, MAGIC_COMMIT, MAGIC_DRAIN, MAGIC_FILTERED,
    MAGIC_FUNCTIONS, MAGIC_INSTRUCTIONS, MAGIC_LINE, MAGIC_PRESERVE,
};
use backstory_arena::RecordSink;
use backstory_sys as sys;
use std::os::fd::AsFd;

/// Handles a recorder's request.
pub(crate) fn respond_to_recorder<S: RecordSink>(
    state: &GuardState,
    logger: &mut CallLogger<S>,
    notification: &Notification,
    time: u64,
) -> Response {
    let (request, argument) = (notification.args[1] as i32, notification.args[2]);
    match request {
        MAGIC_ANNOUNCE => {
            announce(state, logger, notification, argument as u32, time);
            Response::Value(0)
        }
        MAGIC_FILTERED => Response::Value(0),
        MAGIC_ARENA => send_arena(state, notification.id),
        MAGIC_DRAIN => match state.park(notification.id) {
            Some(parked) => {
                state.hooks.request_chunk(parked);
                Response::Parked
            }
            None => Response::Value(0),
        },
        MAGIC_COMMIT => match state.park(notification.id) {
            Some(parked) => {
                state.hooks.commit(parked);
                Response::Parked
            }
            None => {
                report_crowd(state);
                Response::Value(0)
            }
        },
        MAGIC_PRESERVE => {
            let time = logger.time_of_change(state, time);
            logger.preserve(state, notification, time, ChangeSource::Recorder)
        }
        MAGIC_BROKER => respond_to_client(state, notification),
        MAGIC_LINE => pass_mark(state, notification),
        MAGIC_FUNCTIONS => match state.park(notification.id) {
            Some(parked) => {
                let parked = parked.refused(libc::ENOENT);
                state
                    .hooks
                    .function_table(notification.tid, argument, parked);
                Response::Parked
            }
            None => Response::Error(libc::ENOENT),
        },
        MAGIC_INSTRUCTIONS => match state.park(notification.id) {
            Some(parked) => {
                let parked = parked.refused(libc::ENOTSUP);
                state
                    .hooks
                    .redirect_instructions(notification.tid, argument, parked);
                Response::Parked
            }
            None => Response::Error(libc::ENOTSUP),
        },
        _ => Response::Continue,
    }
}

/// Bytes of the longest mark. The text of a longer line is cut.
const LONGEST_MARK: usize = 64 * 1024;

/// Passes the mark of a shell's command line to the supervisor.
fn pass_mark(state: &GuardState, notification: &Notification) -> Response {
    let mut mark = Vec::new();
    let read =
        ProcessMemory::of(notification.tid).string(notification.args[2], LONGEST_MARK, &mut mark);
    if read.is_err() || !state.still_waits(notification.id) {
        return Response::Value(0);
    }
    match state.park(notification.id) {
        Some(parked) => {
            state.hooks.line_mark(notification.tid, mark, parked);
            Response::Parked
        }
        None => Response::Value(0),
    }
}

/// A recorder has taken a chunk of the arena.
fn announce<S: RecordSink>(
    state: &GuardState,
    logger: &mut CallLogger<S>,
    notification: &Notification,
    chunk: u32,
    time: u64,
) {
    let Ok(caller) = state.callers.meet(notification.tid, time) else {
        return;
    };
    state.hooks.announce_chunk(chunk, caller.pid, caller.tid);
    state.descriptors.set_recorded(caller.pid);
    if caller.new {
        let collected = state.hooks.collects_children_of(caller.parent);
        write_born(&mut logger.out, &caller, notification, time, collected);
    }
}

/// Responds to a caller that wants the broker to execute a program.
fn respond_to_client(state: &GuardState, notification: &Notification) -> Response {
    let (tid, id) = (notification.tid, notification.id);
    let refused = Response::Error(libc::EPERM);
    if notification.args[2] == 0 {
        return match state.hooks.may_use_broker(tid) && state.still_waits(id) {
            true => Response::Value(0),
            false => refused,
        };
    }
    let socket = state.hooks.broker_socket(tid, &|| state.still_waits(id));
    // If the caller gets no descriptor, the broker sees the end of the socket.
    match socket.map(|end| sys::answer_descriptor(state.listener(), id, end.as_fd())) {
        Some(Ok(())) => Response::Sent,
        _ => refused,
    }
}

/// Gives a recorder that cannot reach the arena's path a descriptor of it.
fn send_arena(state: &GuardState, id: u64) -> Response {
    let Some(arena) = &state.settings.arena else {
        return Response::Error(libc::ENOENT);
    };
    match sys::answer_descriptor(state.listener(), id, arena.as_fd()) {
        Ok(()) => Response::Sent,
        Err(e) => Response::Error(e.raw_os_error().unwrap_or(libc::EIO)),
    }
}
