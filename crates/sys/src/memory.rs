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

/// True if two processes share one memory, as those of vfork(2) do, by kcmp(2).
///
/// # Errors
/// The kernel has no such call, or the caller may not look at both processes.
pub fn shares_memory(one: u32, other: u32) -> io::Result<bool> {
    const KCMP_VM: c_long = 1;
    let (one, other) = (c_long::from(one), c_long::from(other));
    let unused: c_long = 0;
    // SAFETY: takes no pointers.
    let r = unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_VM, unused, unused) };
    check(r).map(|order| order == 0)
}

#[cfg(test)]
mod tests {
    use super::shares_memory;
    use std::process::{Command, Stdio, id};

    #[test]
    fn a_process_shares_its_memory_with_itself_and_with_no_child_that_executed_a_program() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let found = [id(), child.id()].map(|other| shares_memory(id(), other));
        drop(child.stdin.take());
        child.wait().unwrap();
        match found {
            [Ok(own), Ok(of_child)] => assert_eq!((own, of_child), (true, false)),
            [own, _] => println!("SKIPPED: processes that share memory: {own:?}"),
        }
    }
}
