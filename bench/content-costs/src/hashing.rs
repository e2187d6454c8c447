//! BLAKE3 of one buffer: by the calling thread, and by the threads of rayon.

use std::hint::black_box;
use std::time::Duration;

use blake3::{Hash, Hasher};

use crate::meter::measured;

/// Bytes of the buffers.
const SIZES: [usize; 5] = [64 << 10, 128 << 10, 1 << 20, 10 << 20, 1 << 30];

/// The least bytes of a measurement. A smaller buffer is hashed several times.
const LEAST: usize = 64 << 20;

#[derive(Debug, Clone, Copy)]
enum Way {
    OneThread,
    SeveralThreads,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::OneThread => "one",
            Way::SeveralThreads => "several",
        }
    }

    fn hash(self, buffer: &[u8]) -> Hash {
        let mut hasher = Hasher::new();
        match self {
            Way::OneThread => hasher.update(buffer),
            Way::SeveralThreads => hasher.update_rayon(buffer),
        };
        hasher.finalize()
    }
}

/// Prints the costs of one hash of each size, in each way.
pub fn measure(rounds: u32) {
    let largest = SIZES.into_iter().max().unwrap_or(0);
    let mut buffer = vec![0; largest];
    Hasher::new().finalize_xof().fill(&mut buffer);
    // Also starts the threads of the pool.
    let digests = [Way::OneThread, Way::SeveralThreads].map(|way| way.hash(&buffer));
    assert_eq!(digests[0], digests[1], "both ways have one result");
    println!("bytes,mode,round,wall_s,cpu_s");
    for round in 0..rounds {
        for size in SIZES {
            let mut ways = [Way::OneThread, Way::SeveralThreads];
            if round % 2 == 1 {
                ways.reverse();
            }
            for way in ways {
                let times = (LEAST / size).max(1);
                let (cost, ()) = measured(|| {
                    for _ in 0..times {
                        black_box(way.hash(black_box(&buffer[..size])));
                    }
                });
                let of_one = |time: Duration| time.as_secs_f64() / times as f64;
                let (wall, processor) = (of_one(cost.wall), of_one(cost.processor));
                println!("{size},{},{round},{wall:.9},{processor:.9}", way.name());
            }
        }
    }
}
