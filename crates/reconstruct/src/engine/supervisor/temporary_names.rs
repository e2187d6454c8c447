//! Names of temporary files and directories, which libc chooses anew.
//!
//! The recorded name is written over the new one, in the memory that the call passes: the caller's
//! template. So the program reads the recorded name from there, as it would read the new one.
//! `crate::temporary_names` says which calls these are, and where that is from.
//!
//! Invariant: the memory changes only where the two names differ, and only if it still has the name
//! that was read. It does not change if it cannot be written, if the record has the name, or if no
//! further recorded name fits.

use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use crate::temporary_names::Creation;
use libc::{AT_FDCWD, SYS_mkdir, SYS_mkdirat, SYS_open, SYS_openat};
use std::ops::Range;

impl Supervisor {
    /// The kernel makes a directory, with its recorded name if libc chose that.
    pub(super) fn make_directory(&mut self, call: &NotifiedCall, index: usize) -> Response {
        let at = match call.number {
            SYS_mkdir => call.args[0],
            _ => call.args[1],
        };
        if let Ok(path) = call.string(at) {
            drop(self.recorded_name(call, index, at, &path));
        }
        Response::Continue
    }

    /// The recorded name that the call now has at this address, in the place of a path that libc
    /// chose. `None`: nothing was changed.
    pub(super) fn recorded_name(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        at: u64,
        path: &[u8],
    ) -> Option<Vec<u8>> {
        let (place, letters) = self.next_free_name(call, index, path)?;
        let names = &self.matchers[index].rest.temporary_names;
        let name = names.get(place)?.0.path.clone();
        let from = at.wrapping_add(letters.start as u64);
        let chosen = &path[letters.clone()];
        let is_there = call.bytes(from, chosen.len());
        if !is_there.is_ok_and(|now| now == chosen) {
            return None;
        }
        if call.put(from, &name[letters]).is_err() {
            // The kernel may have written a part, up to the end of a page.
            drop(call.put(from, chosen));
            return None;
        }
        self.matchers[index].rest.temporary_names.remove(place);
        Some(name)
    }

    /// The place of the next recorded name for a path, with the letters that differ. Names that
    /// exist are left out: libc would not choose them.
    fn next_free_name(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        path: &[u8],
    ) -> Option<(usize, Range<usize>)> {
        let creation = creation(call)?;
        let thread = self.recorded_thread(call.tid, index);
        loop {
            let matcher = &mut self.matchers[index];
            let (place, letters) = matcher.temporary_name(path, creation, thread)?;
            let name = &self.matchers[index].rest.temporary_names.get(place)?.0.path;
            if self.native_status(call, AT_FDCWD, name, false).is_err() {
                return Some((place, letters));
            }
            self.matchers[index].rest.temporary_names.remove(place);
        }
    }
}

/// How a call makes a file or directory, if libc may have chosen the name.
fn creation(call: &NotifiedCall) -> Option<Creation> {
    let mode = |argument: usize| call.args[argument] as u32;
    let is_current = || call.int(0) == AT_FDCWD;
    match call.number {
        SYS_open => Creation::of_file(call.int(1), mode(2)),
        SYS_openat if is_current() => Creation::of_file(call.int(2), mode(3)),
        SYS_mkdir => Creation::of_directory(mode(1)),
        SYS_mkdirat if is_current() => Creation::of_directory(mode(2)),
        _ => None,
    }
}
