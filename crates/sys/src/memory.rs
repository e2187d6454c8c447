//! The memory of another process.
#![allow(unsafe_code)]

use crate::call::check;
use libc::{c_long, c_void};
use std::io;

/// Reads the memory of another process into the start of `buffer`, by process_vm_readv(2). `pieces`
/// are remote addresses and lengths, in sum at most the buffer's length. Returns the number of
/// bytes read.
pub fn read_memory(tid: u32, buffer: &mut [u8], pieces: &[(u64, usize); 2]) -> io::Result<usize> {
    let local = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast::<c_void>(),
        iov_len: buffer.len(),
    };
    let remote = pieces.map(|(at, len)| libc::iovec {
        iov_base: at as usize as *mut c_void,
        iov_len: len,
    });
    let count = if pieces[1].1 == 0 { 1 } else { 2 };
    // SAFETY: the kernel writes at most `iov_len` bytes to `local`, which is the whole of `buffer`.
    // Remote addresses are used in the other process only.
    let r =
        unsafe { libc::process_vm_readv(tid as libc::pid_t, &local, 1, remote.as_ptr(), count, 0) };
    check(r as c_long).map(|n| n as usize)
}

/// Writes into the memory of another process, by process_vm_writev(2). Returns the number of bytes
/// written: fewer if the memory ends before.
pub fn write_memory(tid: u32, at: u64, bytes: &[u8]) -> io::Result<usize> {
    let local = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast::<c_void>(),
        iov_len: bytes.len(),
    };
    let remote = libc::iovec {
        iov_base: at as usize as *mut c_void,
        iov_len: bytes.len(),
    };
    // SAFETY: the kernel only reads `local`, which is the whole of `bytes`. The remote address is
    // used in the other process only.
    let r = unsafe { libc::process_vm_writev(tid as libc::pid_t, &local, 1, &remote, 1, 0) };
    check(r as c_long).map(|n| n as usize)
}
