//! The address space that recording needs beside the arena, where it is limited (`ulimit -v`).
//!
//! Invariant: a command is started only where supervisor and keeper have the address space that
//! their threads and heaps need. A process that runs out of it later can only be killed, and the
//! guard's notifications then get no response.
#![allow(unsafe_code)]

/// Bytes that launcher, keeper and supervisor need beside their initial memory and the arena. They
/// hold ten stacks and 4 MB for heaps. The drainer's stack has 512 KB, the others 256 KB.
pub const NEEDED: usize = 8 << 20;

/// True if [`NEEDED`] bytes can still be mapped. Costs nothing where the address space is not
/// limited.
pub fn is_left() -> bool {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the structure is a plain local; the mapping is new, is never touched, and is taken
    // away again as it was made.
    unsafe {
        libc::getrlimit(libc::RLIMIT_AS, &mut limit);
        if limit.rlim_cur == libc::RLIM_INFINITY {
            return true;
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let at = libc::mmap(std::ptr::null_mut(), NEEDED, libc::PROT_NONE, flags, -1, 0);
        at != libc::MAP_FAILED && libc::munmap(at, NEEDED) == 0
    }
}
