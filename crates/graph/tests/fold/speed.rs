//! Measures the speed of the fold. Not run by default: `cargo test --release -p backstory-graph
//! --test fold speed -- --ignored --nocapture`.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::time::Instant;

use crate::common::*;
use backstory_eventlog::event::Op;

/// The events of a build: a shell runs compilers, each with its look-ups, headers, a temporary file
/// and an object file.
fn build(compilers: u32) -> Scene {
    let mut s = Scene::new(&["make"]);
    for n in 0..compilers {
        let pid = 1000 + n % 20_000;
        s.runs(2, pid, &["cc", "-c"]);
        for h in 0..40 {
            let missing = Op::Open {
                dir: -100,
                path: bytes(&format!("/usr/lib/gcc/include/h{h}.h")),
                flags: 0,
                mode: 0,
            };
            s.push(pid, backstory_eventlog::event::Outcome::Done(-2), missing);
            s.reads(pid, &format!("/usr/include/x86_64-linux-gnu/sys/h{h}.h"));
        }
        s.reads(pid, &format!("src/f{n}.c"));
        s.writes(pid, &format!("/tmp/cc{n}.s"), OUT);
        s.reads(pid, &format!("/tmp/cc{n}.s"));
        s.writes(pid, &format!("src/f{n}.o"), OUT);
        s.unlink(pid, &format!("/tmp/cc{n}.s"));
        s.exits(pid, 2);
    }
    s
}

#[test]
#[ignore = "measures; says nothing in a debug build"]
fn the_fold_handles_a_build_of_many_compilers() {
    let scene = build(10_000);
    let count = scene.events.len();
    for pass in ["fold", "fold"] {
        let events = scene.events.clone();
        let started = Instant::now();
        let mut sink = backstory_graph::memory::NullSink;
        let Ok(()) = backstory_graph::fold(
            &scene.header,
            Some(&scene.end()),
            events,
            &After::default(),
            &mut sink,
        );
        let taken = started.elapsed();
        println!(
            "{pass}: {count} events, {:.2} M/s",
            count as f64 / taken.as_secs_f64() / 1e6
        );
    }
}
