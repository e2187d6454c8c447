//! The owners of chunks: which processes have them, and whether these can still append.
//!
//! In: the arena with the headers of its chunks, which programs can forge. Out: the owned chunks,
//! and those whose owner is gone.

use backstory_abi as abi;
use backstory_arena::Arena;
use backstory_sys::{self as sys, Pid};
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// The chunks that have an owner, with their headers, in the order in which they were taken. A
/// secret of a thread can go on in its next chunk, which can have a lower index.
pub(super) fn owned(arena: &Arena) -> Vec<(usize, abi::Chunk)> {
    let owned = arena.owned().into_iter();
    let mut owned: Vec<_> = owned
        .map(|index| (index, arena.chunk_header(index)))
        .filter(|(_, header)| header.magic == abi::CHUNK_MAGIC)
        .collect();
    owned.sort_by_key(|(_, header)| header.taken);
    owned
}

/// Detects the first process of another pid namespace by its number. From then on the owner of a
/// chunk is trusted only if it was announced.
pub(super) fn notice_namespaces(arena: &Arena, owned: &[(usize, abi::Chunk)]) {
    if owned
        .iter()
        .any(|(_, h)| h.pid == 1 && h.tid != 0 && h.host_pid == 0)
        && std::process::id() != 1
    {
        let flags = &arena.header().flags;
        flags.fetch_or(abi::ARENA_PIDNS, Ordering::AcqRel);
    }
}

fn foreign_pids(arena: &Arena) -> bool {
    arena.header().flags.load(Ordering::Acquire) & abi::ARENA_PIDNS != 0
}

/// The owner's process id in the supervisor's pid namespace, if it can be known.
fn host_pid(arena: &Arena, header: &abi::Chunk) -> Option<Pid> {
    match header.host_pid {
        0 if foreign_pids(arena) => None,
        0 => Some(header.pid as Pid),
        pid => Some(pid as Pid),
    }
}

/// The latest recorder start of each process. An `execve` abandons the chunks of the former
/// program.
pub(super) fn newest_epochs(arena: &Arena, owned: &[(usize, abi::Chunk)]) -> HashMap<Pid, u64> {
    let mut newest = HashMap::new();
    for (_, header) in owned {
        if let Some(pid) = host_pid(arena, header) {
            let epoch = newest.entry(pid).or_insert(header.epoch);
            *epoch = header.epoch.max(*epoch);
        }
    }
    newest
}

/// True if no thread is left that can append to this chunk.
pub(super) fn abandoned(arena: &Arena, header: &abi::Chunk, newest: &HashMap<Pid, u64>) -> bool {
    let Some(pid) = host_pid(arena, header) else {
        return false;
    };
    // Epoch 0 belongs to the guard, or to a header that its owner is just writing.
    if header.epoch != 0 && newest.get(&pid).is_some_and(|&epoch| epoch > header.epoch) {
        return true;
    }
    // Thread ids of another namespace mean nothing here. The guard's chunks belong to no thread.
    let tid = if header.host_pid == 0 && header.tid != 0 && header.tid < abi::TID_SUBSTITUTE {
        header.tid as Pid
    } else {
        pid
    };
    !sys::thread_exists(pid, tid)
}
