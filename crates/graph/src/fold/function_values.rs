//! Arguments and results of calls of functions (`record --arguments`).
//!
//! The arguments are words of the call's activity. Its result is an attribute, `return`. If an
//! argument is the path of a file that the run knows, or a descriptor, an attribute has the file's
//! absolute path: `file of NAME`. [`super::function_buffers`] joins calls that share a buffer.
//!
//! Invariant: a parameter is a descriptor by its name. An integer of another name is a number.

use backstory_eventlog::event::{Bytes, CWD, ValuePointer};

use super::names::NameState;
use super::{CallContext, Fold};
use crate::marks::ATTRIBUTE;
use crate::model::Sink;
use crate::paths::ROOT;

/// Names of parameters that are descriptors, and ends of such names.
const DESCRIPTORS: [&[u8]; 4] = [b"fd", b"fildes", b"sockfd", b"descriptor"];
const DESCRIPTOR_ENDS: [&[u8]; 2] = [b"_fd", b"_descriptor"];

impl<S: Sink> Fold<'_, S> {
    /// Folds the arguments or the result of the function that is active in the calling thread.
    pub(super) fn function_values(
        &mut self,
        call: CallContext,
        number: u32,
        returned: bool,
        values: &[Bytes],
        pointers: &[ValuePointer],
    ) -> Result<(), S::Error> {
        let functions = &mut self.functions;
        let is_activity = functions.take_values(call, number, returned, values, pointers);
        if !is_activity || !returned {
            return Ok(());
        }
        let epoch = self.process_of(call)?;
        values.iter().try_for_each(|value| {
            let (name, value) = parts(value);
            self.value_attribute(CallContext { epoch, ..call }, name, value)
        })
    }

    /// Names the files that the descriptors among the arguments of a call lead to.
    pub(super) fn join_descriptors(
        &mut self,
        call: CallContext,
        arguments: &[Bytes],
    ) -> Result<(), S::Error> {
        for argument in arguments {
            let (name, value) = parts(argument);
            let is_descriptor = DESCRIPTORS.contains(&name)
                || DESCRIPTOR_ENDS.iter().any(|end| name.ends_with(end));
            let number = std::str::from_utf8(value).ok();
            let number = number.and_then(|value| value.parse().ok());
            let Some(number) = number.filter(|_| is_descriptor) else {
                continue;
            };
            let path = self.descriptor(call, number).map(|held| held.path);
            if let Some(path) = path.filter(|&path| path != ROOT) {
                let path = self.paths.bytes(path);
                self.value_attribute(call, &file_of(name), &path)?;
            }
        }
        Ok(())
    }

    /// Names the files whose paths are among the arguments of a call that ends.
    pub(super) fn join_paths(
        &mut self,
        call: CallContext,
        arguments: &[Bytes],
    ) -> Result<(), S::Error> {
        for argument in arguments {
            let (name, value) = parts(argument);
            let text = value.strip_prefix(b"\"");
            let Some(text) = text.and_then(|text| text.strip_suffix(b"\"")) else {
                continue;
            };
            if text.is_empty() {
                continue;
            }
            let Some(path) = self.place(call, CWD, text) else {
                continue;
            };
            let known = self.names.get(&path);
            if matches!(known, Some(NameState::Is(_) | NameState::Looked(_))) {
                let path = self.paths.bytes(path);
                self.value_attribute(call, &file_of(name), &path)?;
            }
        }
        Ok(())
    }

    pub(super) fn value_attribute(
        &mut self,
        call: CallContext,
        name: &[u8],
        value: &[u8],
    ) -> Result<(), S::Error> {
        let id = self.announce(call.epoch)?;
        let payload = [name, b"\0", value].concat();
        self.sink.extended(id, call.time, ATTRIBUTE, &payload)
    }
}

fn file_of(name: &[u8]) -> Vec<u8> {
    [b"file of ", name].concat()
}

/// The name and the value of `NAME=VALUE`.
fn parts(value: &[u8]) -> (&[u8], &[u8]) {
    let at = value.iter().position(|&byte| byte == b'=');
    let at = at.unwrap_or(value.len());
    (&value[..at], value.get(at + 1..).unwrap_or_default())
}
