//! The thread that drains the arena while the command runs, and keeps chunks in stock.

use super::{ChunkSelection, Drainer, deep, lined};
use backstory_abi as abi;
use backstory_arena::ChunkSupply;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Pause between two passes while chunks arrive.
const BUSY: Duration = Duration::from_millis(8);
/// Pause while chunks are used up faster than they can be added.
const SCARCE: Duration = Duration::from_millis(1);
/// Longest pause.
const IDLE: Duration = Duration::from_millis(250);
/// Longest pause without a guard. A thread that finds no chunk then cannot ask for one, and retries
/// for a fraction of a second only.
const UNASKED: Duration = Duration::from_millis(50);
/// Longest pause if another process follows the log.
const FOLLOWED: Duration = Duration::from_millis(20);

/// Whether recorders can ask for a chunk by a call that the guard responds to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asking {
    /// If the run has a guard.
    Possible,
    /// The guard has died with the supervisor.
    Impossible,
}

/// Drains periodically until stopped: often while chunks arrive, rarely otherwise.
pub(crate) fn run(stock: &ChunkSupply, drainer: &Mutex<Drainer>, asking: Asking) {
    // The first chunks are added while the command starts, but only where that does not delay it.
    let mut pause = SCARCE;
    let flags = stock.arena.header().flags.load(Ordering::Relaxed);
    let guarded = flags & (abi::ARENA_GUARDED | abi::ARENA_AUTO) == abi::ARENA_GUARDED;
    let mut longest = match guarded && asking == Asking::Possible {
        true => IDLE,
        false => UNASKED,
    };
    while stock.pause(pause) {
        let (drained, waited_for, behind) = {
            let mut drainer = drainer.lock().unwrap_or_else(PoisonError::into_inner);
            let drained = drainer.pass(ChunkSelection::Finished);
            if drainer.is_followed {
                drainer.pass(ChunkSelection::All);
                longest = FOLLOWED;
            }
            // Chunks that wait for the disk become free, too.
            let behind = drainer.deep_log_is_behind();
            let moved = drained + usize::from(behind);
            (moved, drainer.is_waited_for(), behind)
        };
        let before = stock.arena.chunks();
        if behind && before >= deep::MOST_CHUNKS {
            // Programs wait for the disk of the deep log.
            stock.deliver();
            stock.looked();
            pause = BUSY;
            continue;
        }
        stock.arena.keep_stocked();
        // Many processes that start at once fill no chunk for long. Each one that waits needs a
        // chunk.
        stock.arena.grow(stock.asking().saturating_sub(drained));
        let grown = stock.arena.chunks() > before;
        if grown && drained < before / 8 {
            stock.arena.grow(before / 2);
        }
        stock.arena.tell_if_dry(drained);
        stock.deliver();
        stock.looked();
        pause = match drained {
            _ if waited_for => lined::SOON,
            _ if grown && stock.arena.scarce() => SCARCE,
            0 if grown || stock.arena.is_dry() => BUSY,
            0 => (pause * 2).clamp(BUSY, longest),
            _ if stock.arena.scarce() => SCARCE,
            _ => BUSY,
        };
    }
}
