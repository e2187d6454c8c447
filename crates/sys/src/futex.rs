//! futex(2), for words that only this process uses.
#![allow(unsafe_code)]

use libc::c_long;
use std::ptr::{from_ref, null};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps while `word` holds `value`.
pub fn futex_wait(word: &AtomicU32, value: u32) {
    wait(word, value, None);
}

/// As [`futex_wait`], for at most this long.
pub fn futex_wait_for(word: &AtomicU32, value: u32, at_most: Duration) {
    let at_most = libc::timespec {
        tv_sec: at_most.as_secs() as i64,
        tv_nsec: c_long::from(at_most.subsec_nanos()),
    };
    wait(word, value, Some(&at_most));
}

fn wait(word: &AtomicU32, value: u32, at_most: Option<&libc::timespec>) {
    let at_most = at_most.map_or(null(), from_ref);
    // SAFETY: word and timeout outlive the call; a null timeout means none.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            value,
            at_most,
        )
    };
}

/// Wakes at most `count` sleepers on `word`.
pub fn futex_wake(word: &AtomicU32, count: u32) {
    // SAFETY: the kernel uses the word's address only to find its sleepers.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            count,
        )
    };
}
