//! Pipes, sockets, and descriptors that lead to no file.

use super::Translated;
use crate::calls::system_call::SystemCall;
use crate::calls::text::Arg;
use crate::calls::trace_state::TraceState;
use backstory_abi::op;

/// Translates a call of this table. `None` for any other call.
pub(crate) fn translate(trace: &mut TraceState<'_>, call: &SystemCall<'_>) -> Option<Translated> {
    Some(match call.name {
        "pipe" => pair(trace, call, op::PIPE, (0, 0), 0),
        "pipe2" => pair(trace, call, op::PIPE, (0, 1), call.flags_i32(1)),
        "socketpair" => {
            let kind = call.flags_i32(1);
            let cloexec = kind & libc::SOCK_CLOEXEC;
            pair(trace, call, op::SOCKETPAIR, (3, 1), cloexec)
        }
        "socket" => {
            let (domain, kind) = (call.flags_i32(0), call.flags_i32(1));
            trace
                .records
                .add(op::SOCKET, call.thread, call.time, |record| {
                    call.finish(record);
                    record.fd(domain).arg(kind);
                });
            trace.opened(call, call.number(), kind & libc::SOCK_CLOEXEC != 0);
            Ok(())
        }
        "connect" => addressed(trace, call, op::CONNECT, 1),
        "bind" => addressed(trace, call, op::BIND, 1),
        "accept" => accepted(trace, call, 0),
        "accept4" => accepted(trace, call, call.flags_i32(3)),
        "listen" => {
            if let Some(fd) = trace.descriptor(call, 0) {
                trace.add(call, op::LISTEN, |record| {
                    record.fd(fd);
                });
            }
            Ok(())
        }
        "sendto" => datagram(trace, call, false),
        "recvfrom" => datagram(trace, call, true),
        "sendmsg" => passed(trace, call, false),
        "recvmsg" => passed(trace, call, true),
        "memfd_create" => {
            let name = match call.path(0) {
                Ok(name) => name,
                Err(unprinted) => return Some(Err(unprinted)),
            };
            let cloexec = call.raw(1).contains("MFD_CLOEXEC") || call.flags(1) & 1 != 0;
            trace.add(call, op::MEMFD, |record| {
                record.string(name);
            });
            trace.opened(call, call.number(), cloexec);
            Ok(())
        }
        "eventfd"
        | "eventfd2"
        | "epoll_create"
        | "epoll_create1"
        | "timerfd_create"
        | "signalfd"
        | "signalfd4"
        | "inotify_init"
        | "inotify_init1"
        | "pidfd_open"
        | "userfaultfd"
        | "perf_event_open"
        | "fanotify_init"
        | "bpf"
        | "fsopen"
        | "fspick"
        | "fsmount"
        | "landlock_create_ruleset" => {
            trace.add(call, op::EVENTFD, |_| {});
            trace.opened(
                call,
                call.number(),
                call.raw(call.args.len().saturating_sub(1))
                    .contains("CLOEXEC"),
            );
            Ok(())
        }
        _ => return None,
    })
}

/// A pair of descriptors in a list, and the argument of its flags or type.
fn pair(
    trace: &mut TraceState<'_>,
    call: &SystemCall<'_>,
    op: u16,
    (list, kind): (usize, usize),
    cloexec: i32,
) -> Translated {
    if let Some(Arg::List { all, .. }) = call.args.get(list)
        && let [a, b] = all.as_slice()
        && let (Some(a), Some(b)) = (a.descriptor(), b.descriptor())
        && call.ok()
    {
        let aux = if list == kind {
            0
        } else {
            call.flags_u32(kind)
        };
        trace.add(call, op, |record| {
            record.fd(a).arg(b).aux(aux);
        });
        for end in [a, b] {
            trace.opened(call, Some(end), cloexec & libc::O_CLOEXEC != 0);
        }
    }
    Ok(())
}

/// A call with a descriptor and an address.
fn addressed(trace: &mut TraceState<'_>, call: &SystemCall<'_>, op: u16, at: usize) -> Translated {
    let (Some(fd), Some(address)) = (trace.descriptor_or_failed(call), call.address(at)) else {
        return Ok(());
    };
    trace.add(call, op, |record| {
        record.fd(fd).address(&address);
    });
    Ok(())
}

fn accepted(trace: &mut TraceState<'_>, call: &SystemCall<'_>, flags: i32) -> Translated {
    if let Some(fd) = trace.descriptor(call, 0) {
        let address = call.address(1).unwrap_or_default();
        trace.add(call, op::ACCEPT, |record| {
            record.fd(fd).address(&address);
        });
        trace.opened(call, call.number(), flags & libc::SOCK_CLOEXEC != 0);
    }
    Ok(())
}

/// A datagram to an address, or from one.
fn datagram(trace: &mut TraceState<'_>, call: &SystemCall<'_>, received: bool) -> Translated {
    if let Some(fd) = call.descriptor(0)
        && let Some(address) = call.address(4)
        && call.ok()
    {
        trace.add(call, op::DATAGRAM, |record| {
            record.fd(fd).arg(i32::from(received)).address(&address);
        });
    }
    Ok(())
}

/// Descriptors in a message.
fn passed(trace: &mut TraceState<'_>, call: &SystemCall<'_>, received: bool) -> Translated {
    let message = call.raw(1);
    let Some(socket) = call.descriptor(0).filter(|_| call.ok()) else {
        return Ok(());
    };
    let Some(data) = message.split("cmsg_type=SCM_RIGHTS, cmsg_data=[").nth(1) else {
        return Ok(());
    };
    let numbers = data.split(']').next().unwrap_or_default().split(',');
    let numbers = numbers.filter_map(|one| one.trim().split('<').next()?.parse().ok());
    for fd in numbers.collect::<Vec<i32>>() {
        trace
            .records
            .add(op::PASS, call.thread, call.time, |record| {
                record.fd(socket).arg(fd).aux(u32::from(received)).result(0);
            });
        if received {
            trace.opened(call, Some(fd), message.contains("MSG_CMSG_CLOEXEC"));
        }
    }
    Ok(())
}

impl TraceState<'_> {
    /// The first argument's descriptor, also of a call that failed: an attempt to connect.
    fn descriptor_or_failed(&mut self, call: &SystemCall<'_>) -> Option<i32> {
        match call.ok() {
            true => self.descriptor(call, 0),
            false => call.descriptor(0),
        }
    }
}
