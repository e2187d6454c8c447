//! Measures the speed of reading a log. Run by hand: `cargo test --release -p backstory-eventlog
//! --test eventlog -- --ignored --nocapture speed`.

use crate::common;
use backstory_abi::{Chunk, op};
use common::{Scratch, ThreadStream};
use std::time::Instant;

const THREADS: u32 = 200;
const CHUNKS: u32 = 12;
/// The promised rate, events per second.
const LEAST: f64 = 3e6;

/// A log of threads that open, read and close files, their chunks interleaved.
fn log() -> Scratch {
    let mut log = Scratch::new();
    log.clock(0).clock(1 << 40);
    for seq in 0..CHUNKS {
        for thread in 1..=THREADS {
            let head = Chunk {
                epoch: thread.into(),
                pid: thread,
                tid: thread,
                seq,
                ..Chunk::default()
            };
            let mut stream = ThreadStream::of(head);
            let mut time = u64::from(seq) * 1_000_000 + u64::from(thread);
            for i in 0..400 {
                time += 1_000;
                stream.record(op::OPEN, time, |b| {
                    b.fd(-100)
                        .result(3)
                        .string(format!("/usr/include/some/header{i}.h").as_bytes());
                });
                stream.record(op::READ, time + 300, |b| {
                    b.fd(3).result(100);
                });
                stream.record(op::CLOSE, time + 600, |b| {
                    b.fd(3).result(0);
                });
            }
            log.add(&stream);
        }
    }
    log
}

#[test]
#[ignore = "takes a second, and means something in a release build only"]
fn three_million_events_a_second() {
    let scratch = log();
    let mut best = 0.0f64;
    for _ in 0..3 {
        let start = Instant::now();
        let log = scratch.open();
        let opened = start.elapsed();
        log.damage();
        let indexed = start.elapsed();
        let events = log.events().count();
        let all = start.elapsed();
        let rate = events as f64 / all.as_secs_f64();
        println!(
            "{events} events, {} MB: open {opened:?}, index by {indexed:?}, all {all:?}: {rate:.0}/s",
            log.len() >> 20
        );
        best = best.max(rate);
    }
    assert!(best > LEAST, "{best:.0} events a second");
}
