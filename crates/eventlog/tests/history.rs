//! The log reports operations in their true order, whatever the processes do, and however the
//! clocks of their cores differ.

use crate::common;
use backstory_abi::{SPAWN_POSIX, op};
use backstory_eventlog::event::{Event, Op};
use common::{Scratch, ThreadStream};
use proptest::collection::vec;
use proptest::prelude::*;

/// Distance between steps. Steps that only a cause can order are only [`SOON`] apart.
const STEP: u64 = 10_000;
const SOON: u64 = 100;
/// Greatest difference of clocks in either direction.
const SKEW: u64 = 1_000;
/// Few ids, so that they are reused often.
const PIDS: std::ops::RangeInclusive<u32> = 2..=6;

/// The action of one step, its process, and the errors of the clocks at that moment.
type Step = (u8, prop::sample::Index, [u64; 4]);

/// The machine: living processes, their logs, and the true history.
struct World {
    streams: Vec<ThreadStream>,
    alive: Vec<(u32, usize)>,
    now: u64,
    truth: Vec<(u32, &'static str)>,
}

impl World {
    fn new() -> World {
        let mut world = World {
            streams: Vec::new(),
            alive: Vec::new(),
            now: STEP,
            truth: Vec::new(),
        };
        world.begin(1, false, SKEW);
        world
    }

    /// A recorder starts in a process.
    fn begin(&mut self, pid: u32, forked: bool, clock: u64) {
        self.alive.retain(|(p, _)| *p != pid);
        self.alive.push((pid, self.streams.len()));
        self.streams
            .push(ThreadStream::new(self.streams.len() as u64 + 1, pid, pid));
        let stream = self.streams.len() - 1;
        self.log(
            stream,
            op::START,
            pid,
            "start",
            clock,
            if forked { 1 } else { 0 },
        );
    }

    fn log(
        &mut self,
        stream: usize,
        op: u16,
        pid: u32,
        name: &'static str,
        clock: u64,
        value: i32,
    ) {
        let time = self.now + clock - SKEW;
        self.streams[stream].record(op, time, |b| {
            b.fd(-100).aux(value as u32).string(b"x");
            if op != op::EXEC {
                b.result(value);
            }
        });
        if !name.is_empty() {
            self.truth.push((pid, name));
        }
    }

    fn step(&mut self, (what, who, clocks): &Step) {
        self.now += STEP;
        let Some((pid, stream)) = (!self.alive.is_empty()).then(|| *who.get(&self.alive)) else {
            return;
        };
        let free = PIDS
            .into_iter()
            .find(|p| self.alive.iter().all(|(a, _)| a != p));
        match (what, free) {
            (0 | 1, Some(child)) => {
                self.log(stream, op::FORK, pid, "fork", clocks[0], child as i32);
                self.now += SOON;
                self.begin(child, true, clocks[1]);
            }
            (2 | 3, Some(child)) => {
                self.streams[stream].record(op::VFORK, self.now + clocks[0] - SKEW, |b| {
                    b.arg(SPAWN_POSIX);
                });
                self.truth.push((pid, "fork"));
                self.now += STEP;
                self.log(stream, op::EXEC, child, "exec", clocks[1], 0);
                self.now += SOON;
                self.begin(child, false, clocks[2]);
                self.now += STEP;
                self.log(stream, op::VFORKED, pid, "", clocks[3], child as i32);
            }
            (4 | 5, _) => {
                self.log(stream, op::EXEC, pid, "exec", clocks[0], 0);
                self.now += SOON;
                self.begin(pid, false, clocks[1]);
            }
            (6, _) => {
                self.log(stream, op::EXIT, pid, "exit", clocks[0], 0);
                self.alive.retain(|(p, _)| *p != pid);
            }
            _ => self.log(stream, op::CLOSE, pid, "close", clocks[0], 0),
        }
    }
}

fn name(event: &Event) -> (u32, &'static str) {
    let name = match event.op {
        Op::Start { .. } => "start",
        Op::Fork { .. } => "fork",
        Op::Exec { .. } => "exec",
        Op::Exit { .. } => "exit",
        Op::Close { .. } => "close",
        _ => "?",
    };
    (event.pid, name)
}

proptest! {
    #[test]
    fn the_log_tells_it_in_the_order_it_happened(
        steps in vec((0..10u8, any::<prop::sample::Index>(), [0..=2 * SKEW, 0..=2 * SKEW, 0..=2 * SKEW, 0..=2 * SKEW]), 0..80),
        shuffle in any::<u64>(),
    ) {
        let mut world = World::new();
        steps.iter().for_each(|s| world.step(s));
        let mut log = Scratch::new();
        log.clock(0);
        // The order in which chunks are drained carries no information.
        let mut order: Vec<usize> = (0..world.streams.len()).collect();
        order.sort_by_key(|i| (*i as u64 + 1).wrapping_mul(shuffle | 1));
        order.iter().for_each(|i| {
            log.add(&world.streams[*i]);
        });
        log.clock(world.now + STEP);
        let told: Vec<_> = log.events().iter().map(name).collect();
        prop_assert_eq!(told, world.truth);
    }
}
