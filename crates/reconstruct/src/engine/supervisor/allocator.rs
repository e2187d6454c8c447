//! The random bytes that glibc's allocator takes for itself.
//!
//! The allocator asks once for 8 bytes, and puts them into a variable of libc. No recorder in the
//! process sees that request. A program may ask for as many bytes with the same flag, and these are
//! in the record. The address of the buffer tells the two requests apart.

use crate::engine::caller::NotifiedCall;
use crate::matcher::LIBC_RANDOM;
use backstory_deep::shared_code::is_shared_code;
use backstory_sys::mappings::Mapping;

/// True for the allocator's request. Memory that cannot be looked up counts as the program's.
pub(super) fn is_allocators(call: &NotifiedCall) -> bool {
    let [buffer, length, flags, ..] = call.args;
    if (length, flags) != LIBC_RANDOM {
        return false;
    }
    let maps = std::fs::read(format!("/proc/{}/maps", call.tid));
    maps.is_ok_and(|maps| is_libcs_variable(&maps, buffer))
}

/// True for an address in the variables of libc. Those without a first value have no file: the
/// kernel maps them directly behind the others.
fn is_libcs_variable(maps: &[u8], at: u64) -> bool {
    let mut end_of_libc = None;
    for one in Mapping::all(maps) {
        let is_libc = is_shared_code(one.name);
        if one.contains(at) {
            return is_libc || one.name.is_empty() && end_of_libc == Some(one.start);
        }
        end_of_libc = is_libc.then_some(one.end);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::is_libcs_variable;

    const MAPS: &[u8] = b"\
555555558000-555555559000 rw-p 00003000 fe:00 77                         /w/a program
555555559000-55555557a000 rw-p 00000000 00:00 0                          [heap]
7ffff7d70000-7ffff7d80000 rw-p 00000000 00:00 0
7ffff7fa5000-7ffff7fa7000 rw-p 001d3000 fe:00 88                         /usr/lib/libc.so.6
7ffff7fa7000-7ffff7fb4000 rw-p 00000000 00:00 0
7ffff7fb8000-7ffff7fba000 rw-p 00000000 00:00 0
7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0                          [stack]
";

    #[test]
    fn variables_of_libc_are_told_from_all_other_memory() {
        for (at, is_libcs) in [
            (0x5555_5555_8010, false),
            (0x5555_5555_9010, false),
            (0x7fff_f7d7_0010, false),
            (0x7fff_f7fa_5010, true),
            (0x7fff_f7fa_d478, true),
            (0x7fff_f7fb_4000, false),
            (0x7fff_f7fb_8010, false),
            (0x7fff_ffff_e4a4, false),
        ] {
            assert_eq!(is_libcs_variable(MAPS, at), is_libcs, "{at:x}");
        }
        assert!(!is_libcs_variable(b"no list\n", 0x7fff_f7fa_5010));
    }
}
