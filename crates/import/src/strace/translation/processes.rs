//! Calls about processes: programs, ends, signals, namespaces.

use super::Translated;
use crate::strace::constants::{field, flags};
use crate::strace::system_call::SystemCall;
use crate::strace::text::{Arg, number};
use crate::strace::tracer::Tracer;
use backstory_abi::{self as abi, op};

/// Translates a call of this table. `None` for any other call.
pub(super) fn translate(tracer: &mut Tracer<'_>, call: &SystemCall<'_>) -> Option<Translated> {
    Some(match call.name {
        "execve" => exec(tracer, call, None),
        "execveat" => exec(tracer, call, Some(0)),
        "exit_group" | "exit" => {
            let status = call.flags_i32(0) & 0xff;
            tracer.add(call, op::EXIT, |record| {
                record.arg(status).result(0);
            });
            Ok(())
        }
        "wait4" | "waitpid" => wait(tracer, call),
        "waitid" => wait_by_id(tracer, call),
        "kill" | "tkill" => kill(tracer, call, 0, 1),
        "tgkill" => kill(tracer, call, 0, 2),
        "unshare" => namespace(tracer, call, call.flags_u32(0)),
        "setns" => namespace(tracer, call, call.flags_u32(1)),
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
            undecoded(tracer, call, opaque)
        }
        "process_vm_writev" => undecoded(tracer, call, abi::OPAQUE_MEMORY),
        "mq_open" => undecoded(tracer, call, abi::OPAQUE_QUEUE),
        "open_by_handle_at" => undecoded(tracer, call, abi::OPAQUE_HANDLE),
        "pidfd_getfd" => undecoded(tracer, call, abi::OPAQUE_DESCRIPTOR),
        "io_uring_setup" => undecoded(tracer, call, abi::OPAQUE_RING),
        "acct" => undecoded(tracer, call, abi::OPAQUE_ACCT),
        "swapon" => undecoded(tracer, call, abi::OPAQUE_SWAPON),
        _ => return None,
    })
}

fn exec(tracer: &mut Tracer<'_>, call: &SystemCall<'_>, dir: Option<usize>) -> Translated {
    let first = dir.map_or(0, |dir| dir + 1);
    let name = call.path(first)?;
    let dir = tracer.directory(call, dir, name);
    let aux = if first == 0 {
        0
    } else {
        call.flags_u32(first + 3)
    };
    let succeeded = call.ok();
    let arguments = strings(tracer, call.args.get(first + 1), succeeded);
    let environment = match call.args.get(first + 2) {
        Some(list @ Arg::List { .. }) => Some(strings(tracer, Some(list), succeeded)),
        _ => None,
    };
    let is_first = tracer.first == Some(call.thread.pid) && tracer.findings.command.is_empty();
    if succeeded && is_first {
        tracer.findings.command.clone_from(&arguments);
        tracer.findings.environment = environment.clone().unwrap_or_default();
    }
    tracer.records.arguments(call.thread, call.time, &arguments);
    if let Some(environment) = &environment {
        tracer
            .records
            .environment(call.thread, call.time, environment);
    }
    tracer
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
        if let Some(process) = tracer.processes.get_mut(&call.thread.pid) {
            process.executed();
        }
        tracer.started(call.thread, call.time, false);
    }
    Ok(())
}

/// The strings of a list. Those that strace cut end in `...`.
fn strings(tracer: &mut Tracer<'_>, list: Option<&Arg>, counts: bool) -> Vec<Vec<u8>> {
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
        tracer.gaps.cut_arguments += missing;
    }
    found
}

fn wait(tracer: &mut Tracer<'_>, call: &SystemCall<'_>) -> Translated {
    let status = call.raw(1);
    let exited = status.split("WEXITSTATUS(s) == ").nth(1).and_then(leading);
    let killed = status.split("WTERMSIG(s) == ").nth(1).map(signal);
    let stopped = status.contains("WIFSTOPPED(s)") || status.contains("WIFCONTINUED(s)");
    if call.number().is_some_and(|pid| pid > 0) && !stopped {
        let status = exited.map_or(killed.unwrap_or(0), |status| (status & 0xff) << 8);
        tracer.add(call, op::WAIT, |record| {
            record.arg(status);
        });
    }
    Ok(())
}

fn wait_by_id(tracer: &mut Tracer<'_>, call: &SystemCall<'_>) -> Translated {
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
        tracer
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

fn kill(tracer: &mut Tracer<'_>, call: &SystemCall<'_>, pid: usize, signal: usize) -> Translated {
    if let Some(pid) = number(call.raw(pid)).and_then(|pid| i32::try_from(pid).ok()) {
        let signal = call.flags_i32(signal);
        tracer.add(call, op::KILL, |record| {
            record.fd(pid).arg(signal);
        });
    }
    Ok(())
}

fn namespace(tracer: &mut Tracer<'_>, call: &SystemCall<'_>, flags: u32) -> Translated {
    tracer.add(call, op::NAMESPACE, |record| {
        record.aux(flags);
    });
    Ok(())
}

fn undecoded(tracer: &mut Tracer<'_>, call: &SystemCall<'_>, what: &str) -> Translated {
    tracer.opened(call, call.number(), true);
    if call.returned.value.is_none_or(|value| value >= 0) {
        tracer.add(call, op::OPAQUE, |record| {
            record.result(0).string(what.as_bytes());
        });
    }
    Ok(())
}
