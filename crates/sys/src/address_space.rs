//! Address space beside the arena's, where it is limited (`ulimit -v`).
//!
//! Invariant: a command is started only where supervisor and keeper have what their threads and heaps need to live. Who
//! finds out afterwards can only be killed, and with it the answers to the guard's calls.
#![allow(unsafe_code)]

/// What launcher, keeper and supervisor need beside what they begin with and beside the arena: ten stacks, of which the drainer's is 512 KB
/// and the others 256 KB, and 4 MB for heaps.
pub const NEEDED: usize = 8 << 20;

/// True if so much can still be had. Free where nothing is limited.
pub fn is_left() -> bool {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the structure is plain and ours; the mapping is new, is never touched, and is taken away again as it was made.
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
