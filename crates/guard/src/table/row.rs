//! One row of the table: what the guard does with a system call.

use super::rows_arm64::{ARM64, COMMON};
use super::shape::{Arg, CallShape};

/// `CLONE_NEW*` of `clone` that change what a name or a pid means.
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
    /// The recorder wraps the function of this name (or what replaces it in libc).
    pub recorder: bool,
    /// What the guard does.
    pub guard: GuardAction,
}

impl TableRow {
    /// Its number on aarch64; none for calls that aarch64 has not.
    pub fn arm64(&self) -> Option<i16> {
        let older = || ARM64.iter().find(|(name, _)| *name == self.name);
        Some(self.x64)
            .filter(|nr| *nr >= COMMON)
            .or_else(|| older().map(|(_, nr)| *nr))
    }
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

/// What the guard does with a call.
#[derive(Debug, Clone, Copy)]
pub enum GuardAction {
    /// Notified unless it comes from the gate.
    Flow(When, CallShape),
    /// Changes what paths or pids mean: notified wherever it comes from, logged unless it comes from the gate.
    View(When, CallShape),
    /// A look-up: as `Flow`, but only with `lookups=all`.
    Lookup(CallShape),
    /// `getpriority` with the magic argument, wherever it comes from.
    Magic,
    /// No effect on provenance, and why.
    Free(&'static str),
    /// Has an effect, but is never watched here, and why.
    Never(&'static str),
}

/// Which calls of a number are meant; the kernel looks at the low half of one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// All.
    Always,
    /// Those with any of these bits.
    Any {
        /// Which argument.
        arg: Arg,
        /// Bits.
        mask: u32,
    },
    /// Those with none of these bits.
    Without {
        /// Which argument.
        arg: Arg,
        /// Bits.
        mask: u32,
    },
    /// Those with one of these values.
    OneOf {
        /// Which argument.
        arg: Arg,
        /// Values.
        values: &'static [u32],
    },
}

impl GuardAction {
    /// What the call does, if the guard ever watches it.
    pub fn shape(&self) -> Option<CallShape> {
        match self {
            GuardAction::Flow(_, shape)
            | GuardAction::View(_, shape)
            | GuardAction::Lookup(shape) => Some(*shape),
            GuardAction::Magic | GuardAction::Free(_) | GuardAction::Never(_) => None,
        }
    }
}
