//! Calls that a program makes by an instruction of its own, and not through libc. The recorder saw
//! no such call, so the record lacks it.
//!
//! In: the address of a notified call. Out: the number of these calls of each program. Code that
//! cannot be looked up counts as libc's.

use super::Supervisor;
use crate::engine::caller::NotifiedCall;
use crate::engine::filter::{ASKED, PLACE};
use backstory_deep::shared_code::is_shared_code;
use backstory_sys::mappings::Mapping;
use std::collections::HashMap;
use std::ops::Range;

/// Code in memory, and whether it makes calls for programs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MappedCode {
    addresses: Range<u64>,
    is_shared: bool,
}

/// The calls so far.
#[derive(Debug, Default)]
pub(super) struct OwnCalls {
    /// The code of each program, as it was last looked up.
    code: HashMap<usize, Vec<MappedCode>>,
    counts: HashMap<usize, u64>,
}

impl OwnCalls {
    /// The number of such calls of a program.
    pub(super) fn of(&self, index: usize) -> u64 {
        self.counts.get(&index).copied().unwrap_or(0)
    }

    fn note(&mut self, call: &NotifiedCall, index: usize) {
        // The last byte of the instruction.
        let at = call.behind.wrapping_sub(1);
        let code = self.code.entry(index).or_default();
        let mut is_shared = is_shared_at(code, at);
        if is_shared.is_none() {
            let maps = std::fs::read(format!("/proc/{}/maps", call.tid));
            *code = mapped_code(&maps.unwrap_or_default());
            is_shared = is_shared_at(code, at);
        }
        if is_shared == Some(false) {
            *self.counts.entry(index).or_default() += 1;
        }
    }
}

/// Whether the code at an address makes calls for programs. `None`: no code is known there.
fn is_shared_at(code: &[MappedCode], at: u64) -> Option<bool> {
    let mut found = code.iter().filter(|one| one.addresses.contains(&at));
    found.next().map(|one| one.is_shared)
}

/// The executable mappings in a list of the kernel (`/proc/PID/maps`).
fn mapped_code(maps: &[u8]) -> Vec<MappedCode> {
    let code = Mapping::all(maps).filter(|one| one.is_executable);
    code.map(|one| MappedCode {
        addresses: one.start..one.end,
        is_shared: is_shared_code(one.name),
    })
    .collect()
}

impl Supervisor {
    /// Counts a call of a program that its own code made. Under a tool, the tool's code can make
    /// the program's calls.
    pub(super) fn notes_own_call(&mut self, call: &NotifiedCall, index: usize) {
        if !self.has_tool && !matches!(call.number, PLACE | ASKED) {
            self.own_calls.note(call, index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{is_shared_at, mapped_code};

    const MAPS: &[u8] = b"\
555555554000-555555555000 r--p 00000000 fe:00 77                         /w/a program
555555555000-555555556000 r-xp 00001000 fe:00 77                         /w/a program
7ffff7d80000-7ffff7ed5000 r-xp 00026000 fe:00 88                         /usr/lib/libc.so.6
7ffff7fa0000-7ffff7fa1000 rwxp 00000000 00:00 0
7ffff7fc9000-7ffff7fcb000 r-xp 00000000 00:00 0                          [vdso]
";

    #[test]
    fn code_of_the_program_and_code_that_it_made_are_its_own() {
        let code = mapped_code(MAPS);
        assert_eq!(code.len(), 4, "{code:?}");
        for (at, is_shared) in [
            (0x5555_5555_4010, None),
            (0x5555_5555_5010, Some(false)),
            (0x7fff_f7d8_0000, Some(true)),
            (0x7fff_f7fa_0fff, Some(false)),
            (0x7fff_f7fc_9001, Some(true)),
            (0x7fff_f7fc_b000, None),
        ] {
            assert_eq!(is_shared_at(&code, at), is_shared, "{at:x}");
        }
        assert!(mapped_code(b"no list\n\n1-2 r-xp").is_empty());
    }
}
