//! The seccomp filter: decides which calls become notifications.
//!
//! The filter looks at the architecture, then the number, then the exact instruction pointer. The
//! kernel finds out which results depend on architecture and number alone, and such a call costs
//! the same whatever the filter's size. So a tree of comparisons looks up the number before
//! anything else. A call from the gate passes, except where the supervisor must see it in any case.

use crate::table::{ARCH_I386, ARCH_X86_64, Abi, GuardAction, When, held_calls};
use backstory_sys as sys;
use backstory_vocabulary::DurabilityMode;
use libc::sock_filter;
use std::io;
use std::os::fd::OwnedFd;

/// The calls that a filter watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct FilterSpec {
    /// Address after the gate's `syscall` instruction. `None` if no recorder is used.
    pub gate: Option<u64>,
    /// The gate is not trusted.
    pub strict: bool,
    /// Look-ups are watched too.
    pub lookups: bool,
    /// `io_uring_setup` fails with `ENOSYS`.
    pub refuse_io_uring: bool,
    /// Calls that restrict their caller without a trace are notified.
    pub restrictions: bool,
    /// The calls that wait until the log is durable are notified too, also from the gate.
    pub durability: DurabilityMode,
}

/// A built filter.
#[derive(Debug, Clone)]
pub struct Filter {
    program: Vec<sock_filter>,
}

/// Why the filter could not be installed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// An outer filter has a listener already. Only one filter of a chain can have one.
    #[error(
        "cannot install the system call filter: an outer filter already has a listener (a container runtime, another recording)"
    )]
    OuterListener,
    /// The kernel lacks what the guard needs.
    #[error(
        "cannot install the system call filter: this kernel does not support it (5.19 is needed)"
    )]
    OldKernel,
    /// Another error.
    #[error("cannot install the system call filter: {0}")]
    Other(io::Error),
}

impl From<io::Error> for InstallError {
    fn from(e: io::Error) -> InstallError {
        match e.raw_os_error() {
            Some(libc::EBUSY) => InstallError::OuterListener,
            Some(libc::EINVAL | libc::ENOSYS) => InstallError::OldKernel,
            _ => InstallError::Other(e),
        }
    }
}

impl InstallError {
    /// The errno, to be passed through a pipe or an exit status.
    pub fn errno(&self) -> i32 {
        match self {
            InstallError::OuterListener => libc::EBUSY,
            InstallError::OldKernel => libc::EINVAL,
            InstallError::Other(e) => e.raw_os_error().unwrap_or(libc::EIO),
        }
    }
}

impl Filter {
    /// Builds the filter. Allocates, so it has to be called before a fork.
    pub fn build(spec: &FilterSpec) -> Filter {
        let native = intervals(spec, &[Abi::X64, Abi::X32]);
        let compat = intervals(spec, &[Abi::I386]);
        let mut code = Vec::with_capacity(4 * (native.len() + compat.len()));
        code.extend([
            Instruction::load(4),
            Instruction::Jump {
                op: libc::BPF_JEQ,
                k: ARCH_X86_64,
                yes: 3,
                no: 0,
            },
            Instruction::Jump {
                op: libc::BPF_JEQ,
                k: ARCH_I386,
                yes: 1,
                no: 0,
            },
            Instruction::Return(libc::SECCOMP_RET_ALLOW),
            Instruction::Skip(size(&native) as u32 + 1),
            Instruction::load(0),
        ]);
        tree(&native, &mut code);
        code.push(Instruction::load(0));
        tree(&compat, &mut code);
        Filter {
            program: assemble(code, spec),
        }
    }

    /// Installs the filter on the calling thread and all that it starts, and returns the listener.
    ///
    /// Without `CAP_SYS_ADMIN` the kernel requires `no_new_privs`, which is then set. Safe between
    /// fork and exec.
    pub fn install(&self) -> Result<OwnedFd, InstallError> {
        let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER
            | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW
            | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
        match sys::install_filter(&self.program, flags) {
            Err(e) if e.raw_os_error() == Some(libc::EACCES) => {
                sys::set_no_new_privs()?;
                Ok(sys::install_filter(&self.program, flags)?)
            }
            other => Ok(other?),
        }
    }

    /// The instructions, as another process installs them: an array of `struct sock_filter`.
    pub fn to_bytes(&self) -> Vec<u8> {
        let bytes = |one: &sock_filter| {
            let [code, k] = [
                one.code.to_ne_bytes().to_vec(),
                one.k.to_ne_bytes().to_vec(),
            ];
            [code, vec![one.jt, one.jf], k].concat()
        };
        self.program.iter().flat_map(bytes).collect()
    }

    /// The number of instructions.
    pub fn len(&self) -> usize {
        self.program.len()
    }

    /// False: a filter has instructions.
    pub fn is_empty(&self) -> bool {
        self.program.is_empty()
    }
}

/// The action for a call, as far as its number decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilterAction {
    Allow,
    Refuse,
    /// The call passes from the gate, and is notified from elsewhere.
    Gate(When),
    /// As `Gate(Always)`, but these calls are notified from the gate, too.
    GateUnless(When),
    /// The call is notified wherever it comes from.
    Notify(When),
}

/// An instruction whose far jumps are not resolved yet.
#[derive(Debug, Clone, Copy)]
enum Instruction {
    Load(u32),
    Jump { op: u32, k: u32, yes: u8, no: u8 },
    Skip(u32),
    Return(u32),
    Goto(FilterAction),
}

impl Instruction {
    /// Loads a 32-bit word of `struct seccomp_data`.
    fn load(offset: u32) -> Instruction {
        Instruction::Load(offset)
    }
}

/// The action for a call. The gate is a 64-bit `syscall` instruction; a call by another entry that
/// reports the gate's address does not come from the gate.
fn action(spec: &FilterSpec, abi: Abi, name: &str, guard: &GuardAction) -> FilterAction {
    let gated = abi == Abi::X64 && !spec.strict && spec.gate.is_some();
    let gate = |when| {
        if gated {
            FilterAction::Gate(when)
        } else {
            FilterAction::Notify(when)
        }
    };
    if let Some(held) = held_calls(spec.durability, abi, name) {
        return match (gate(held), guard) {
            // Its other calls are watched, too.
            (FilterAction::Gate(held), GuardAction::Flow(When::Always, _))
                if held != When::Always =>
            {
                FilterAction::GateUnless(held)
            }
            (_, GuardAction::Flow(when, _)) => FilterAction::Notify(*when),
            _ => FilterAction::Notify(held),
        };
    }
    match guard {
        GuardAction::Flow(..) if spec.refuse_io_uring && name == "io_uring_setup" => {
            FilterAction::Refuse
        }
        GuardAction::Flow(when, _) => gate(*when),
        GuardAction::View(when, _) => FilterAction::Notify(*when),
        GuardAction::Lookup(_) if spec.lookups => gate(When::Always),
        GuardAction::Magic => FilterAction::Notify(When::OneOf {
            arg: 0,
            values: MAGIC,
        }),
        GuardAction::Restrict(when) if spec.restrictions => FilterAction::Notify(*when),
        GuardAction::Lookup(_)
        | GuardAction::Restrict(_)
        | GuardAction::Free(_)
        | GuardAction::Never(_) => FilterAction::Allow,
    }
}

const MAGIC: &[u32] = &[backstory_abi::MAGIC_WHICH as u32];

/// The actions of all numbers, as the starts of intervals in order. The first interval starts at 0.
fn intervals(spec: &FilterSpec, abis: &[Abi]) -> Vec<(u32, FilterAction)> {
    let mut out = Vec::with_capacity(512);
    out.push((0, FilterAction::Allow));
    let mut put = |start: u32, action: FilterAction| {
        if let Some(last) = out.last_mut() {
            if last.0 == start {
                last.1 = action;
            } else if last.1 != action {
                out.push((start, action));
            }
        }
    };
    for abi in abis {
        for (nr, row) in abi.numbers() {
            put(nr, action(spec, *abi, row.name, &row.guard));
            put(nr + 1, FilterAction::Allow);
        }
    }
    // Drops starts of intervals that change nothing.
    out.dedup_by(|next, last| next.1 == last.1);
    out
}

/// Appends a tree of comparisons that ends at each interval's action. It writes into `out`
/// directly: the start of every recording waits for it.
fn tree(intervals: &[(u32, FilterAction)], out: &mut Vec<Instruction>) {
    match intervals {
        [] | [(_, FilterAction::Allow)] => out.push(Instruction::Return(libc::SECCOMP_RET_ALLOW)),
        [(_, action)] => out.push(Instruction::Goto(*action)),
        _ => {
            let (low, high) = intervals.split_at(intervals.len() / 2);
            let (start, length) = (high[0].0, size(low));
            let jump = |yes, no| Instruction::Jump {
                op: libc::BPF_JGE,
                k: start,
                yes,
                no,
            };
            match u8::try_from(length) {
                Ok(length) => out.push(jump(length, 0)),
                Err(_) => out.extend([jump(0, 1), Instruction::Skip(length as u32)]),
            }
            tree(low, out);
            tree(high, out);
        }
    }
}

/// The number of instructions in the tree of these intervals.
fn size(intervals: &[(u32, FilterAction)]) -> usize {
    if intervals.len() < 2 {
        return 1;
    }
    let (low, high) = intervals.split_at(intervals.len() / 2);
    let length = size(low);
    length + size(high) + if length > usize::from(u8::MAX) { 2 } else { 1 }
}

/// Instructions of a test whether the call comes from the gate.
const GATE_TEST: u8 = 5;

/// The instructions for one action, which follow the trees: they test an argument, then the
/// instruction pointer.
fn block(action: FilterAction, spec: &FilterSpec) -> Vec<Instruction> {
    let mut out = Vec::new();
    let (when, gated) = match action {
        FilterAction::Allow => return vec![Instruction::Return(libc::SECCOMP_RET_ALLOW)],
        FilterAction::Refuse => {
            return vec![Instruction::Return(
                libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32,
            )];
        }
        FilterAction::Gate(when) => (when, true),
        FilterAction::GateUnless(When::Any { arg, mask }) => {
            out.push(Instruction::load(argument(arg)));
            out.push(Instruction::Jump {
                op: libc::BPF_JSET,
                k: mask,
                yes: GATE_TEST,
                no: 0,
            });
            (When::Always, true)
        }
        // No row has such a condition.
        FilterAction::GateUnless(_) => (When::Always, false),
        FilterAction::Notify(when) => (when, false),
    };
    match when {
        When::Always => {}
        When::Any { arg, mask } | When::Without { arg, mask } => {
            // The case that is notified skips the return.
            let set = u8::from(matches!(when, When::Any { .. }));
            out.push(Instruction::load(argument(arg)));
            out.push(Instruction::Jump {
                op: libc::BPF_JSET,
                k: mask,
                yes: set,
                no: 1 - set,
            });
            out.push(Instruction::Return(libc::SECCOMP_RET_ALLOW));
        }
        When::OneOf { arg, values } => {
            out.push(Instruction::load(argument(arg)));
            let count = values.len() as u8;
            for (k, i) in values.iter().zip(0u8..) {
                out.push(Instruction::Jump {
                    op: libc::BPF_JEQ,
                    k: *k,
                    yes: count - i,
                    no: 0,
                });
            }
            out.push(Instruction::Return(libc::SECCOMP_RET_ALLOW));
        }
    }
    if let (true, Some(gate)) = (gated, spec.gate) {
        out.push(Instruction::load(12));
        out.push(Instruction::Jump {
            op: libc::BPF_JEQ,
            k: (gate >> 32) as u32,
            yes: 0,
            no: 3,
        });
        out.push(Instruction::load(8));
        out.push(Instruction::Jump {
            op: libc::BPF_JEQ,
            k: gate as u32,
            yes: 0,
            no: 1,
        });
        out.push(Instruction::Return(libc::SECCOMP_RET_ALLOW));
    }
    out.push(Instruction::Return(libc::SECCOMP_RET_USER_NOTIF));
    out
}

/// The offset of the low half of an argument in `struct seccomp_data`.
fn argument(arg: u8) -> u32 {
    16 + 8 * u32::from(arg)
}

/// Appends the blocks of all actions in use, and resolves the jumps to them.
fn assemble(mut code: Vec<Instruction>, spec: &FilterSpec) -> Vec<sock_filter> {
    let mut places: Vec<(FilterAction, usize)> = Vec::new();
    for i in 0..code.len() {
        if let Instruction::Goto(action) = code[i]
            && places.iter().all(|(known, _)| *known != action)
        {
            places.push((action, code.len()));
            code.extend(block(action, spec));
        }
    }
    let target = |action: FilterAction, from: usize| {
        let place = places
            .iter()
            .find(|(known, _)| *known == action)
            .map_or(from + 1, |(_, place)| *place);
        (place - from - 1) as u32
    };
    code.iter()
        .enumerate()
        .map(|(i, step)| match *step {
            Instruction::Load(k) => {
                instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, k, 0, 0)
            }
            Instruction::Jump { op, k, yes, no } => {
                instruction(libc::BPF_JMP | libc::BPF_K | op, k, yes, no)
            }
            Instruction::Skip(k) => instruction(libc::BPF_JMP | libc::BPF_JA, k, 0, 0),
            Instruction::Return(k) => instruction(libc::BPF_RET | libc::BPF_K, k, 0, 0),
            Instruction::Goto(action) => {
                instruction(libc::BPF_JMP | libc::BPF_JA, target(action, i), 0, 0)
            }
        })
        .collect()
}

fn instruction(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    }
}

#[cfg(test)]
mod tests;
