//! Keeps the results of all calls that neither move bytes nor change descriptors.

use super::{Arranging, ended};
use crate::process::{CallObject, OF_DESCRIPTOR, RecordedResult, ResultKey};
use crate::resource::is_kernels;
use backstory_abi::deep;
use backstory_deep::Call;
use libc::c_long;

impl Arranging {
    /// Any other call: its result is kept under its object.
    pub(super) fn result(&mut self, call: &Call) {
        if let Some((kind, ident)) = status_of_descriptor(call) {
            self.has_status(call.fd, kind, ident);
        }
        self.addressed(call);
        let object = match (call.path(), self.table.get(&call.fd)) {
            (Some(path), _) if !path.is_empty() => CallObject::Path(self.asked(call, path)),
            // A descriptor of a file of the root has its name only.
            (_, Some(id)) if is_status(call.number) && self.run.resources[*id].is_native() => {
                CallObject::Path(self.run.resources[*id].name.clone())
            }
            (_, Some(id)) => CallObject::Resource(*id),
            _ if call.fd >= 0 && is_about_descriptor(call.number) => {
                CallObject::Resource(self.behind(call.fd, 0))
            }
            _ => CallObject::Process,
        };
        if self.omits_result(call, &object) {
            return;
        }
        let entered = call.sections.iter();
        let entered = entered.filter(|section| section.kind == deep::ENTERED);
        let mut entered: Vec<_> = entered.map(|section| section.bytes.clone()).collect();
        if let Some(address) = call.address() {
            entered.push(address.to_vec());
        }
        let has_path = call.path().is_some_and(|path| !path.is_empty());
        let is_of_file = is_status(call.number) && matches!(object, CallObject::Path(_));
        let key = ResultKey {
            call: family(call.number),
            object,
            detail: match is_of_file && !has_path {
                true => OF_DESCRIPTOR,
                false => detail(call.number, call.a, call.b),
            },
        };
        let result = RecordedResult {
            value: call.result,
            entered,
        };
        self.process
            .results
            .entry(key)
            .or_default()
            .push_back((result, ended(call)));
    }

    /// The path that the result of a call belongs to. A status of a file through a name of a
    /// directory in `/proc` is one of that file, as the status of its descriptor is.
    fn asked(&self, call: &Call, path: &[u8]) -> Vec<u8> {
        let behind = match is_status(family(call.number)) {
            true => self.behind_directory(path),
            false => None,
        };
        let is_known = |name: &Vec<u8>| name.starts_with(b"/") && !is_kernels(name);
        behind.filter(is_known).unwrap_or_else(|| path.to_vec())
    }
}

/// Calls that libc uses in the place of each other have one number here.
pub fn family(call: u16) -> u16 {
    let family = match c_long::from(call) {
        libc::SYS_stat | libc::SYS_lstat | libc::SYS_fstat => libc::SYS_newfstatat,
        libc::SYS_access | libc::SYS_faccessat2 => libc::SYS_faccessat,
        libc::SYS_mkdirat => libc::SYS_mkdir,
        libc::SYS_readlink => libc::SYS_readlinkat,
        other => other,
    };
    family as u16
}

/// True for calls that return the status of a descriptor.
fn is_status(call: u16) -> bool {
    let call = c_long::from(call);
    call == libc::SYS_fstat || call == libc::SYS_newfstatat || call == libc::SYS_statx
}

/// The type and identity of the descriptor that a call asked about: those of `struct stat`.
fn status_of_descriptor(call: &Call) -> Option<(u32, (u64, u64))> {
    const MODE_AT: usize = 24;
    let is_asked = matches!(
        c_long::from(call.number),
        libc::SYS_fstat | libc::SYS_newfstatat
    );
    let has_path = call.path().is_some_and(|path| !path.is_empty());
    if !is_asked || has_path || call.result != 0 {
        return None;
    }
    let entered = call.sections.iter();
    let mut entered = entered.filter(|section| section.kind == deep::ENTERED);
    let bytes = &entered.next()?.bytes;
    let word = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let mode = u32::from_le_bytes(*bytes.get(MODE_AT..)?.first_chunk()?);
    Some((mode & libc::S_IFMT, (word(0)?, word(8)?)))
}

/// True for calls whose first argument is a descriptor.
fn is_about_descriptor(call: u16) -> bool {
    matches!(
        c_long::from(call),
        libc::SYS_fstat
            | libc::SYS_newfstatat
            | libc::SYS_statx
            | libc::SYS_getdents64
            | libc::SYS_ioctl
            | libc::SYS_lseek
            | libc::SYS_fcntl
            | libc::SYS_bind
            | libc::SYS_listen
            | libc::SYS_shutdown
            | libc::SYS_getsockname
            | libc::SYS_getpeername
            | libc::SYS_setsockopt
            | libc::SYS_getsockopt
    )
}

/// The argument that tells calls of one number on one object apart.
pub fn detail(call: u16, a: u64, b: u64) -> u64 {
    match c_long::from(call) {
        libc::SYS_ioctl | libc::SYS_clock_gettime | libc::SYS_getrusage | libc::SYS_fcntl => a,
        libc::SYS_access | libc::SYS_faccessat | libc::SYS_faccessat2 => a,
        libc::SYS_getpgid | libc::SYS_getsid => a & 0xffff_ffff,
        libc::SYS_getsockopt | libc::SYS_setpgid => a << 32 | b & 0xffff_ffff,
        _ => 0,
    }
}
