//! One row of the table: what the guard does with a system call.

use super::shape::{Arg, CallShape};

/// The `CLONE_NEW*` flags of `clone` that change what a name or a process id means.
pub const NEW_NAMESPACE: u32 = 0x7e02_0000;

/// One system call.
#[derive(Debug, Clone, Copy)]
pub struct TableRow {
    /// Name as in the kernel's headers.
    pub name: &'static str,
    /// Number on x86-64, or -1.
    pub x64: i16,
    /// Number on i386, or -1.
    pub i386: i16,
    /// The recorder wraps libc's function of this name, or the functions that stand for it.
    pub recorder: bool,
    /// The guard's action.
    pub guard: GuardAction,
}

pub(super) const fn row(
    name: &'static str,
    x64: i16,
    i386: i16,
    recorder: bool,
    guard: GuardAction,
) -> TableRow {
    TableRow {
        name,
        x64,
        i386,
        recorder,
        guard,
    }
}

/// The guard's action for a call.
#[derive(Debug, Clone, Copy)]
pub enum GuardAction {
    /// Notified unless it comes from the gate.
    Flow(When, CallShape),
    /// The call changes what paths or process ids mean. It is notified wherever it comes from, and
    /// logged unless it comes from the gate.
    View(When, CallShape),
    /// A look-up: as `Flow`, but watched only with `--lookups=all`.
    Lookup(CallShape),
    /// `getpriority` with the magic argument, wherever it comes from.
    Magic,
    /// The call may restrict its caller without a trace, and has no effect on provenance.
    /// Notified wherever it comes from, if a broker exists (`Hooks::restricts_itself`).
    Restrict(When),
    /// The call has no effect on provenance, for this reason.
    Free(&'static str),
    /// The call has an effect but is never watched, for this reason.
    Never(&'static str),
}

/// Which calls of a number are watched. The filter tests the low half of one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// All calls.
    Always,
    /// Calls with any of these bits.
    Any {
        /// Which argument.
        arg: Arg,
        /// Bits.
        mask: u32,
    },
    /// Calls with none of these bits.
    Without {
        /// Which argument.
        arg: Arg,
        /// Bits.
        mask: u32,
    },
    /// Calls with one of these values.
    OneOf {
        /// Which argument.
        arg: Arg,
        /// Values.
        values: &'static [u32],
    },
}

impl GuardAction {
    /// The shape of the call, if the guard watches it in any mode.
    pub fn shape(&self) -> Option<CallShape> {
        match self {
            GuardAction::Flow(_, shape)
            | GuardAction::View(_, shape)
            | GuardAction::Lookup(shape) => Some(*shape),
            GuardAction::Magic
            | GuardAction::Restrict(_)
            | GuardAction::Free(_)
            | GuardAction::Never(_) => None,
        }
    }
}
