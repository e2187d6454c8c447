//! Calls about processes: programs, ends, signals, namespaces.

use super::Translated;
use crate::calls::constants::{field, flags, number};
use crate::calls::system_call::SystemCall;
use crate::calls::text::Arg;
use crate::calls::trace_state::TraceState;
use backstory_abi::{self as abi, op};

/// Translates a call of this table. `None` for any other call.
pub(crate) fn translate(trace: &mut TraceState<'_>, call: &SystemCall<'_>) -> Option<Translated> {
    Some(match call.name {
        "execve" => exec(trace, call, None),
        "execveat" => exec(trace, call, Some(0)),
        "exit_group" | "exit" => {
            let status = call.flags_i32(0) & 0xff;
            trace.add(call, op::EXIT, |record| {
                record.arg(status).result(0);
            });
            Ok(())
        }
        "wait4" | "waitpid" => wait(trace, call),
        "waitid" => wait_by_id(trace, call),
        "kill" | "tkill" => kill(trace, call, 0, 1),
        "tgkill" => kill(trace, call, 0, 2),
        "unshare" => namespace(trace, call, call.flags_u32(0)),
        "setns" => namespace(trace, call, call.flags_u32(1)),
        "ptrace" => {
            let request = call.raw(0);
            let opaque = match () {
                () if request.contains("PTRACE_POKE") => abi::OPAQUE_TRACER_MEMORY,
                () if request.contains("REGS") && request.contains("SET") => {
                    abi::OPAQUE_TRACER_REGISTERS
                }
                () if request.contains("PTRACE_SYSEMU") => abi::OPAQUE_TRACER_EMULATION,
                () => return Some(Ok(())),
            };
            undecoded(trace, call, opaque)
        }
        "process_vm_writev" => undecoded(trace, call, abi::OPAQUE_MEMORY),
        "mq_open" => undecoded(trace, call, abi::OPAQUE_QUEUE),
        "open_by_handle_at" => undecoded(trace, call, abi::OPAQUE_HANDLE),
        "pidfd_getfd" => undecoded(trace, call, abi::OPAQUE_DESCRIPTOR),
        "io_uring_setup" => undecoded(trace, call, abi::OPAQUE_RING),
        "acct" => undecoded(trace, call, abi::OPAQUE_ACCT),
        "swapon" => undecoded(trace, call, abi::OPAQUE_SWAPON),
        _ => return None,
    })
}

fn exec(trace: &mut TraceState<'_>, call: &SystemCall<'_>, dir: Option<usize>) -> Translated {
    let first = dir.map_or(0, |dir| dir + 1);
    let name = call.path(first)?;
    let dir = trace.directory(call, dir, name);
    let aux = if first == 0 {
        0
    } else {
        call.flags_u32(first + 3)
    };
    let succeeded = call.ok();
    let arguments = strings(trace, call.args.get(first + 1), succeeded);
    let environment = match call.args.get(first + 2) {
        Some(list @ Arg::List { .. }) => Some(strings(trace, Some(list), succeeded)),
        _ => None,
    };
    let is_first = trace.first == Some(call.thread.pid) && trace.findings.command.is_empty();
    if succeeded && is_first {
        trace.findings.command.clone_from(&arguments);
        trace.findings.environment = environment.clone().unwrap_or_default();
    }
    trace.records.arguments(call.thread, call.time, &arguments);
    if let Some(environment) = &environment {
        trace
            .records
            .environment(call.thread, call.time, environment);
    }
    trace
        .records
        .add(op::EXEC, call.thread, call.time, |record| {
            record.fd(dir).aux(aux).arg(arguments.len() as i32);
            // A successful exec has no result.
            if let Some(error) = call.result().filter(|result| *result < 0) {
                record.result(error);
            }
            record.string(name);
        });
    if succeeded {
        if let Some(process) = trace.processes.get_mut(&call.thread.pid) {
            process.executed();
        }
        trace.started(call.thread, call.time, false);
    }
    Ok(())
}

/// The strings of a list. Those that strace cut end in `...`.
fn strings(trace: &mut TraceState<'_>, list: Option<&Arg>, counts: bool) -> Vec<Vec<u8>> {
    let Some(Arg::List { all, cut }) = list else {
        return Vec::new();
    };
    let mut found = Vec::with_capacity(all.len());
    let mut missing = usize::from(*cut);
    for one in all {
        if let Arg::Text { bytes, cut } = one {
            missing += usize::from(*cut);
            let end: &[u8] = if *cut { b"..." } else { b"" };
            found.push([bytes, end].concat());
        }
    }
    if *cut {
        found.push(b"...".to_vec());
    }
    if counts {
        trace.gaps.cut_arguments += missing;
    }
    found
}

fn wait(trace: &mut TraceState<'_>, call: &SystemCall<'_>) -> Translated {
    let status = call.raw(1);
    let exited = status.split("WEXITSTATUS(s) == ").nth(1).and_then(leading);
    let killed = status.split("WTERMSIG(s) == ").nth(1).map(signal);
    let stopped = status.contains("WIFSTOPPED(s)") || status.contains("WIFCONTINUED(s)");
    if call.number().is_some_and(|pid| pid > 0) && !stopped {
        let status = exited.map_or(killed.unwrap_or(0), |status| (status & 0xff) << 8);
        trace.add(call, op::WAIT, |record| {
            record.arg(status);
        });
    }
    Ok(())
}

fn wait_by_id(trace: &mut TraceState<'_>, call: &SystemCall<'_>) -> Translated {
    const LOOKED: &str = "WNOWAIT";
    let information = call.raw(2);
    let pid = field(information, "si_pid").and_then(leading);
    let code = field(information, "si_code").unwrap_or_default();
    let ended = ["CLD_EXITED", "CLD_KILLED", "CLD_DUMPED"].contains(&code);
    if let Some(pid) = pid.filter(|pid| *pid > 0 && ended && call.ok()) {
        let status = field(information, "si_status").unwrap_or_default();
        let status = match code {
            "CLD_EXITED" => (leading(status).unwrap_or(0) & 0xff) << 8,
            _ => signal(status),
        };
        let looked = u32::from(call.raw(3).contains(LOOKED));
        trace
            .records
            .add(op::WAIT, call.thread, call.time, |record| {
                record.arg(status).aux(looked).result(pid);
            });
    }
    Ok(())
}

/// The number at the beginning of a text.
fn leading(text: &str) -> Option<i32> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    i32::try_from(number(&text[..end])?).ok()
}

/// The signal at the beginning of a text.
fn signal(text: &str) -> i32 {
    let end = text
        .find(|c: char| !c.is_ascii_alphanumeric())
        .unwrap_or(text.len());
    flags(&text[..end]) as i32 & 0x7f
}

fn kill(
    trace: &mut TraceState<'_>,
    call: &SystemCall<'_>,
    pid: usize,
    signal: usize,
) -> Translated {
    if let Some(pid) = number(call.raw(pid)).and_then(|pid| i32::try_from(pid).ok()) {
        let signal = call.flags_i32(signal);
        trace.add(call, op::KILL, |record| {
            record.fd(pid).arg(signal);
        });
    }
    Ok(())
}

fn namespace(trace: &mut TraceState<'_>, call: &SystemCall<'_>, flags: u32) -> Translated {
    trace.add(call, op::NAMESPACE, |record| {
        record.aux(flags);
    });
    Ok(())
}

fn undecoded(trace: &mut TraceState<'_>, call: &SystemCall<'_>, what: &str) -> Translated {
    trace.opened(call, call.number(), true);
    if call.returned.value.is_none_or(|value| value >= 0) {
        trace.add(call, op::OPAQUE, |record| {
            record.result(0).string(what.as_bytes());
        });
    }
    Ok(())
}
