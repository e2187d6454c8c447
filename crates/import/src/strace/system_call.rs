//! A system call of a trace, with its arguments and its result.

use super::constants::{field, flags};
use super::text::{Arg, Returned};
use crate::CallingThread;
use backstory_eventlog::event::Time;
use backstory_eventlog::record::RecordBuilder;

/// A call whose text was read. `returned` has no value if the call did not return.
#[derive(Debug)]
pub(super) struct SystemCall<'a> {
    pub(super) thread: CallingThread,
    pub(super) time: Time,
    pub(super) name: &'a str,
    pub(super) args: Vec<Arg>,
    pub(super) returned: Returned,
}

/// A path argument that strace could not print, or did not print to its end.
pub(super) struct Unprinted;

impl SystemCall<'_> {
    /// True if the call returned without an error.
    pub(super) fn ok(&self) -> bool {
        self.returned.ok()
    }

    /// The result, if the call returned: at least 0, or `-errno`.
    pub(super) fn result(&self) -> Option<i32> {
        let value = self.returned.value?;
        Some(i32::try_from(value).unwrap_or(i32::MAX))
    }

    /// A returned descriptor or process id.
    pub(super) fn number(&self) -> Option<i32> {
        self.result().filter(|value| *value >= 0)
    }

    /// The path at an argument.
    pub(super) fn path(&self, at: usize) -> Result<&[u8], Unprinted> {
        self.args.get(at).and_then(Arg::path).ok_or(Unprinted)
    }

    /// The descriptor at an argument.
    pub(super) fn descriptor(&self, at: usize) -> Option<i32> {
        self.args.get(at)?.descriptor()
    }

    /// The flags at an argument. 0 if it is missing.
    pub(super) fn flags(&self, at: usize) -> i64 {
        self.args.get(at).map_or(0, |arg| flags(arg.raw()))
    }

    /// The same, as records have flags.
    pub(super) fn flags_i32(&self, at: usize) -> i32 {
        self.flags(at) as i32
    }

    /// The same for modes and unsigned flags.
    pub(super) fn flags_u32(&self, at: usize) -> u32 {
        self.flags(at) as u32
    }

    /// The text of an argument.
    pub(super) fn raw(&self, at: usize) -> &str {
        self.args.get(at).map_or("", Arg::raw)
    }

    /// The field of any argument: of a structure, or of a call whose arguments have names.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.args.iter().find_map(|arg| field(arg.raw(), name))
    }

    /// Sets the result of a record. Without one, the outcome stays unknown.
    pub(super) fn finish(&self, record: &mut RecordBuilder) {
        if let Some(result) = self.result() {
            record.result(result);
        }
    }
}
