//! A system call of a trace, with its arguments and its result.

use super::address::socket_address;
use super::constants::{field, flags};
use super::text::{Arg, Returned};
use crate::CallingThread;
use backstory_eventlog::event::Time;
use backstory_eventlog::record::RecordBuilder;

/// A call whose text was read. `returned` has no value if the call did not return.
#[derive(Debug)]
pub(crate) struct SystemCall<'a> {
    pub(crate) thread: CallingThread,
    pub(crate) time: Time,
    pub(crate) name: &'a str,
    pub(crate) args: Vec<Arg>,
    pub(crate) returned: Returned,
}

/// A path argument that strace could not print, or did not print to its end.
pub(crate) struct Unprinted;

impl SystemCall<'_> {
    /// True if the call returned without an error.
    pub(crate) fn ok(&self) -> bool {
        self.returned.ok()
    }

    /// The result, if the call returned: at least 0, or `-errno`.
    pub(crate) fn result(&self) -> Option<i32> {
        let value = self.returned.value?;
        Some(i32::try_from(value).unwrap_or(i32::MAX))
    }

    /// A returned descriptor or process id.
    pub(crate) fn number(&self) -> Option<i32> {
        self.result().filter(|value| *value >= 0)
    }

    /// The path at an argument.
    pub(crate) fn path(&self, at: usize) -> Result<&[u8], Unprinted> {
        self.args.get(at).and_then(Arg::path).ok_or(Unprinted)
    }

    /// The descriptor at an argument.
    pub(crate) fn descriptor(&self, at: usize) -> Option<i32> {
        self.args.get(at)?.descriptor()
    }

    /// The flags at an argument. 0 if it is missing.
    pub(crate) fn flags(&self, at: usize) -> i64 {
        self.args.get(at).map_or(0, |arg| flags(arg.raw()))
    }

    /// The same, as records have flags.
    pub(crate) fn flags_i32(&self, at: usize) -> i32 {
        self.flags(at) as i32
    }

    /// The same for modes and unsigned flags.
    pub(crate) fn flags_u32(&self, at: usize) -> u32 {
        self.flags(at) as u32
    }

    /// The text of an argument.
    pub(crate) fn raw(&self, at: usize) -> &str {
        self.args.get(at).map_or("", Arg::raw)
    }

    /// The socket's address at an argument. `None` if it is only a pointer.
    pub(crate) fn address(&self, at: usize) -> Option<Vec<u8>> {
        match self.args.get(at)? {
            Arg::Address(bytes) => Some(bytes.clone()),
            other => socket_address(other.raw()),
        }
    }

    /// The field of any argument: of a structure, or of a call whose arguments have names.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.args.iter().find_map(|arg| field(arg.raw(), name))
    }

    /// Sets the result of a record. Without one, the outcome stays unknown.
    pub(crate) fn finish(&self, record: &mut RecordBuilder) {
        if let Some(result) = self.result() {
            record.result(result);
        }
    }
}
