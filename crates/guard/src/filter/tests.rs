//! Runs built filters in an interpreter of classic BPF, over the whole table.

use super::*;
use crate::table::{NEW_NAMESPACE, ROWS, X32_BIT};

const GATE: u64 = 0x5500_0001_0123;
const SPEC: FilterSpec = FilterSpec {
    gate: Some(GATE),
    strict: false,
    lookups: false,
    restrictions: false,
    refuse_io_uring: false,
    durability: DurabilityMode::After,
};

/// A call as the kernel shows it to a filter.
#[derive(Clone, Copy)]
struct Call {
    nr: u32,
    arch: u32,
    ip: u64,
    args: [u64; 6],
}

impl Call {
    fn word(&self, offset: u32) -> u32 {
        match offset {
            0 => self.nr,
            4 => self.arch,
            8 => self.ip as u32,
            12 => (self.ip >> 32) as u32,
            _ => {
                let arg = self.args[(offset as usize - 16) / 8];
                if offset.is_multiple_of(8) {
                    arg as u32
                } else {
                    (arg >> 32) as u32
                }
            }
        }
    }
}

/// The result of a filter, and whether it looked at number and architecture only.
fn run(filter: &Filter, call: Call) -> (u32, bool) {
    let (result, constant, _) = run_counted(filter, call);
    (result, constant)
}

/// As `run`, with the number of instructions.
fn run_counted(filter: &Filter, call: Call) -> (u32, bool, u32) {
    let (mut pc, mut a, mut constant) = (0usize, 0u32, true);
    for steps in 1.. {
        let i = filter.program[pc];
        pc += 1;
        let code = u32::from(i.code);
        let branch = |yes: bool| usize::from(if yes { i.jt } else { i.jf });
        match code & 0x07 {
            0x00 => {
                assert_eq!(code, libc::BPF_LD | libc::BPF_W | libc::BPF_ABS);
                constant &= i.k < 8;
                a = call.word(i.k);
            }
            0x05 => {
                pc += match code & 0xf0 {
                    libc::BPF_JA => i.k as usize,
                    libc::BPF_JEQ => branch(a == i.k),
                    libc::BPF_JGE => branch(a >= i.k),
                    libc::BPF_JSET => branch(a & i.k != 0),
                    other => panic!("jump {other:x}"),
                }
            }
            0x06 => return (i.k, constant, steps),
            other => panic!("class {other:x}"),
        }
    }
    unreachable!("a filter has no loops")
}

fn verdict(spec: FilterSpec, nr: u32, arch: u32, ip: u64, arg0: u64) -> u32 {
    run(
        &Filter::build(&spec),
        Call {
            nr,
            arch,
            ip,
            args: [arg0, 0, 0, 0, 0, 0],
        },
    )
    .0
}

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const NOTIFY: u32 = libc::SECCOMP_RET_USER_NOTIF;

#[test]
fn the_whole_table_is_filtered_as_its_rows_say() {
    for spec in [
        SPEC,
        FilterSpec {
            lookups: true,
            ..SPEC
        },
        FilterSpec {
            strict: true,
            ..SPEC
        },
        FilterSpec {
            restrictions: true,
            ..SPEC
        },
    ] {
        let filter = Filter::build(&spec);
        for abi in [Abi::X64, Abi::X32, Abi::I386] {
            let arch = if abi == Abi::I386 {
                ARCH_I386
            } else {
                ARCH_X86_64
            };
            for nr in (0..700u32).map(|nr| if abi == Abi::X32 { nr | X32_BIT } else { nr }) {
                for ip in [GATE, GATE + 1, GATE - 1, GATE | 1 << 40, 0x7fff_0000_0000] {
                    let call = Call {
                        nr,
                        arch,
                        ip,
                        args: [0xdead_0000_0000; 6],
                    };
                    let (verdict, constant) = run(&filter, call);
                    let through = abi == Abi::X64 && ip == GATE && !spec.strict;
                    let notified = match abi.row(nr).map(|row| &row.guard) {
                        Some(GuardAction::Flow(When::Always | When::Without { .. }, _)) => !through,
                        Some(GuardAction::Flow(When::OneOf { values, .. }, _)) => {
                            values.contains(&0) && !through
                        }
                        Some(GuardAction::View(when, _)) => *when == When::Always,
                        Some(GuardAction::Lookup(_)) => spec.lookups && !through,
                        Some(GuardAction::Restrict(when)) => {
                            spec.restrictions && *when == When::Always
                        }
                        _ => false,
                    };
                    assert_eq!(verdict == NOTIFY, notified, "{abi:?} {nr} at {ip:x}");
                    let unwatched = matches!(
                        abi.row(nr).map(|row| &row.guard),
                        None | Some(GuardAction::Free(_) | GuardAction::Never(_))
                    );
                    assert!(constant || !unwatched, "{abi:?} {nr} is not constant");
                }
            }
        }
    }
}

#[test]
fn a_process_that_restricts_itself_is_notified_by_every_entry_if_there_is_a_broker() {
    let broker = FilterSpec {
        restrictions: true,
        ..SPEC
    };
    for (arch, prctl, landlock) in [(ARCH_X86_64, 157, 446), (ARCH_I386, 172, 446)] {
        for ip in [1, GATE] {
            assert_eq!(verdict(broker, prctl, arch, ip, 38), NOTIFY);
            assert_eq!(verdict(broker, prctl, arch, ip, 15), ALLOW, "a name");
            assert_eq!(verdict(broker, landlock, arch, ip, 0), NOTIFY);
            assert_eq!(verdict(SPEC, prctl, arch, ip, 38), ALLOW);
            assert_eq!(verdict(SPEC, landlock, arch, ip, 0), ALLOW);
        }
    }
    assert_eq!(
        verdict(broker, 157 | X32_BIT, ARCH_X86_64, 1, 38),
        NOTIFY,
        "x32"
    );
}

#[test]
fn int_80_from_the_gate_does_not_pass_as_the_gate() {
    // Number 5 is open on i386 and fstat on x86-64. The kernel reports the same instruction pointer
    // for both entries. A 32-bit program cannot have a 64-bit gate's address, but `int 0x80` of a
    // 64-bit program can.
    assert_eq!(verdict(SPEC, 5, ARCH_X86_64, GATE, 0), ALLOW);
    assert_eq!(verdict(SPEC, 5, ARCH_I386, GATE, 0), NOTIFY);
}

#[test]
fn clone_is_notified_only_with_new_namespaces() {
    assert_eq!(verdict(SPEC, 56, ARCH_X86_64, 1, 0x0120_0011), ALLOW);
    assert_eq!(
        verdict(
            SPEC,
            56,
            ARCH_X86_64,
            1,
            u64::from(0x2000_0000 & NEW_NAMESPACE) | 17
        ),
        NOTIFY
    );
    assert_eq!(verdict(SPEC, 56, ARCH_X86_64, GATE, 0x0002_0000), NOTIFY);
}

#[test]
fn only_the_magic_getpriority_is_notified_also_from_the_gate() {
    let magic = backstory_abi::MAGIC_WHICH as u64;
    assert_eq!(verdict(SPEC, 140, ARCH_X86_64, 1, 0), ALLOW);
    assert_eq!(verdict(SPEC, 140, ARCH_X86_64, 1, magic), NOTIFY);
    assert_eq!(verdict(SPEC, 140, ARCH_X86_64, GATE, magic), NOTIFY);
}

#[test]
fn io_uring_is_refused_where_asked() {
    let refuse = FilterSpec {
        refuse_io_uring: true,
        ..SPEC
    };
    assert_eq!(verdict(SPEC, 425, ARCH_X86_64, 1, 0), NOTIFY);
    assert_eq!(
        verdict(refuse, 425, ARCH_X86_64, 1, 0),
        libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32
    );
    assert_eq!(
        verdict(refuse, 425, ARCH_I386, GATE, 0),
        libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32
    );
}

#[test]
fn ptrace_is_notified_only_when_it_changes_the_tracee() {
    for (request, expected) in [
        // PTRACE_TRACEME, PTRACE_PEEKUSER, PTRACE_CONT, PTRACE_GETREGS, PTRACE_ATTACH,
        // PTRACE_DETACH, PTRACE_SYSCALL
        (0, ALLOW),
        (3, ALLOW),
        (7, ALLOW),
        (12, ALLOW),
        (16, ALLOW),
        (17, ALLOW),
        (24, ALLOW),
        // PTRACE_SETOPTIONS, PTRACE_GETREGSET, PTRACE_SEIZE
        (0x4200, ALLOW),
        (0x4204, ALLOW),
        (0x4206, ALLOW),
        // PTRACE_POKETEXT, PTRACE_POKEDATA, PTRACE_POKEUSER, PTRACE_SETREGS, PTRACE_SETFPREGS,
        // PTRACE_SYSEMU
        (4, NOTIFY),
        (5, NOTIFY),
        (6, NOTIFY),
        (13, NOTIFY),
        (15, NOTIFY),
        (31, NOTIFY),
        // PTRACE_SETREGSET, PTRACE_SET_SYSCALL_INFO
        (0x4205, NOTIFY),
        (0x4212, NOTIFY),
    ] {
        assert_eq!(
            verdict(SPEC, 101, ARCH_X86_64, 1, request),
            expected,
            "request {request}"
        );
    }
}

#[test]
fn a_filter_fits_the_kernel() {
    let all = FilterSpec {
        lookups: true,
        ..SPEC
    };
    assert!(
        Filter::build(&all).len() < 1000,
        "{}",
        Filter::build(&all).len()
    );
}

#[test]
fn a_call_from_the_gate_passes_after_few_instructions() {
    let filter = Filter::build(&SPEC);
    let steps = |name: &str| {
        let nr = ROWS
            .iter()
            .find(|row| row.name == name)
            .map(|row| row.x64 as u32);
        let call = Call {
            nr: nr.unwrap(),
            arch: ARCH_X86_64,
            ip: GATE,
            args: [0; 6],
        };
        let (result, _, steps) = run_counted(&filter, call);
        assert_eq!(result, libc::SECCOMP_RET_ALLOW, "{name}");
        steps
    };
    // Three instructions test architecture and number, five the address. A binary search finds the
    // number.
    for row in ROWS.iter().filter(|row| row.x64 >= 0) {
        if matches!(row.guard, GuardAction::Flow(When::Always, _)) {
            assert!(steps(row.name) <= 18, "{}: {}", row.name, steps(row.name));
        }
    }
}

/// The results for a call from the gate and for one from elsewhere.
fn from_gate_and_elsewhere(filter: &Filter, abi: Abi, nr: u32, args: [u64; 6]) -> [u32; 2] {
    let arch = match abi {
        Abi::I386 => ARCH_I386,
        _ => ARCH_X86_64,
    };
    [GATE, 1].map(|ip| run(filter, Call { nr, arch, ip, args }).0)
}

#[test]
fn held_calls_are_notified_also_from_the_gate_and_all_others_as_ever() {
    let plain = Filter::build(&SPEC);
    for durability in [DurabilityMode::Ordered, DurabilityMode::Sync] {
        let holding = Filter::build(&FilterSpec { durability, ..SPEC });
        for abi in [Abi::X64, Abi::I386] {
            for (nr, row) in abi.numbers() {
                for args in [[0; 6], [u64::MAX; 6], [0x241; 6], [4; 6], [0x4004_9409; 6]] {
                    let without = from_gate_and_elsewhere(&plain, abi, nr, args);
                    let with = from_gate_and_elsewhere(&holding, abi, nr, args);
                    let held = held_calls(durability, abi, row.name);
                    match held.is_some_and(|when| when.holds(&args)) {
                        true => assert_eq!(with, [NOTIFY; 2], "{} {args:x?}", row.name),
                        false if held.is_none() => assert_eq!(with, without, "{}", row.name),
                        // A call of the name that is not held is watched as ever.
                        false => assert_eq!(with[1], without[1], "{} {args:x?}", row.name),
                    }
                }
            }
        }
        assert!(holding.len() < 1000, "{}", holding.len());
    }
}

#[test]
fn with_sync_an_open_from_the_gate_is_notified_only_if_it_truncates() {
    let durability = DurabilityMode::Sync;
    let filter = Filter::build(&FilterSpec { durability, ..SPEC });
    for (flags, from_gate) in [(0, ALLOW), (0o1, ALLOW), (0o1101, NOTIFY)] {
        let args = [0, 0, flags, 0, 0, 0];
        let found = from_gate_and_elsewhere(&filter, Abi::X64, 257, args);
        assert_eq!(found, [from_gate, NOTIFY], "flags {flags:o}");
    }
}
