//! Deep logs of every version stay readable: `fixtures/deep/<version>/`.
//!
//! `cut.deep` has a header, and a chunk of a program that writes `yes`. Two readings of the clocks
//! and the beginning of a frame follow.
#![allow(clippy::unwrap_used)]

use backstory_abi::deep;
use backstory_deep::{DeepDamage, DeepLog};
use std::path::Path;

const WRITE: u16 = libc::SYS_write as u16;

#[test]
fn a_cut_log_of_version_2_has_its_calls_and_dates() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/deep/2/cut.deep");
    let log = DeepLog::open(file).unwrap();
    let damage = DeepDamage {
        bytes: 40,
        no_end: true,
        lacks_chunks: true,
        ..DeepDamage::default()
    };
    assert_eq!(log.damage(), damage);
    assert_eq!(log.header().run, "7g3kq0zt");
    let calls: Vec<_> = log.thread_calls(1, 10).collect();
    let numbers: Vec<u16> = calls.iter().map(|call| call.number).collect();
    assert_eq!(numbers, [deep::BEGIN, WRITE]);
    assert_eq!(calls[1].section(deep::LEFT, 1), Some(&b"yes\n"[..]));
    let real = 1_700_000_000_000_000_000;
    assert_eq!(log.last_reading(), Some((3000, real + 1000)));
    assert_eq!(log.time_of(2000), real + 500);
}
