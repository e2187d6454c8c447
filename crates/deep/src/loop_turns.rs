//! The turns of the event loops of clients: the calls of a thread between two waits for several
//! descriptors.
//!
//! In: deep streams. Out: one [`LoopTurn`] for each wait that returned, if other calls followed it.
//!
//! - A turn begins when a wait for several descriptors returns, also if its time was up. It ends
//!   with the thread's last call before its next wait.
//! - Programs count that made requests, and served none: the units of a server are its requests.
//!
//! Memory: at most [`MOST_TURNS`] turns, and a number for each call of the log.

use crate::call::Call;
use crate::call_numbers::WAITS;
use crate::log::{DeepLog, DeepProcess};
use crate::request_walk::{MOST_FILES_OF_ALL, add_file, opened};
use crate::requests::{Part, Request, Role};
use backstory_ordering::SmallSort;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Most turns of a log. Calls of further ones belong to none.
pub const MOST_TURNS: usize = 1 << 20;

/// One turn of an event loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopTurn {
    /// The epoch of the process, which names it in the deep log.
    pub epoch: u64,
    /// The process id, as the run's log has it.
    pub pid: u32,
    /// The thread, as the process sees it.
    pub tid: u32,
    /// The number of the wait that began it among the recorded calls of the run, from 1.
    pub from: usize,
    /// That of its last call.
    pub to: usize,
    /// Time-stamp counter when the wait returned.
    pub began: u64,
    /// That after its last call.
    pub ended: u64,
    /// The number of descriptors that were ready. 0: the time of the wait was up.
    pub ready: u64,
    /// Bytes that the thread received on connections.
    pub bytes_in: u64,
    /// Bytes that it sent on them.
    pub bytes_out: u64,
    /// Calls behind the wait.
    pub calls: u64,
    /// The requests whose bytes moved, by their place in [`DeepLog::requests`].
    pub requests: BTreeSet<usize>,
    /// The paths that were opened, in order, each once.
    pub files: Vec<Vec<u8>>,
}

impl DeepLog {
    /// The turns of all clients, in the order of their beginning, and the requests of the log.
    pub fn loop_turns(&self) -> (Vec<LoopTurn>, Vec<Request>) {
        let requests = self.requests();
        let clients = clients(&requests);
        let mut walk = TurnWalk::of(&requests);
        if clients.is_empty() {
            return (Vec::new(), requests);
        }
        self.walk_requests(|process, call, belongs| {
            if clients.contains(&process.epoch) {
                walk.take(process, call, belongs);
            }
        });
        (walk.finish(&self.ends_of_calls()), requests)
    }
}

/// The epochs of the programs that made requests, and served none.
fn clients(requests: &[Request]) -> HashSet<u64> {
    let with = |role: Role| {
        let all = requests.iter().filter(move |one| one.role == role);
        all.map(|one| one.epoch).collect::<HashSet<u64>>()
    };
    &with(Role::Client) - &with(Role::Server)
}

/// The state while the calls are read.
struct TurnWalk {
    /// The place of each request, by its id.
    places: HashMap<usize, usize>,
    /// The turns in progress, by epoch and thread.
    current: HashMap<(u64, u32), LoopTurn>,
    done: Vec<LoopTurn>,
    /// How many more files are named.
    files: usize,
}

impl TurnWalk {
    fn of(requests: &[Request]) -> TurnWalk {
        let places = requests.iter().enumerate();
        TurnWalk {
            places: places.map(|(at, request)| (request.id, at)).collect(),
            current: HashMap::new(),
            done: Vec::new(),
            files: MOST_FILES_OF_ALL,
        }
    }

    fn take(&mut self, process: &DeepProcess, call: &Call, belongs: Option<(usize, Part)>) {
        if call.is_fact() {
            return;
        }
        let thread = (process.epoch, call.tid);
        if WAITS.contains(&call.number) {
            self.end(thread);
            // A wait that failed tells of no descriptor.
            if let Ok(ready) = u64::try_from(call.result) {
                self.current.insert(thread, begun(process, call, ready));
            }
            return;
        }
        let Some(turn) = self.current.get_mut(&thread) else {
            return;
        };
        turn.calls += 1;
        turn.ended = returned(call);
        if let Some((path, _)) = opened(call) {
            add_file(&mut turn.files, path, &mut self.files);
        }
        let bytes = u64::try_from(call.result).unwrap_or(0);
        let (request, total) = match belongs {
            Some((id, Part::Received)) => (id, &mut turn.bytes_in),
            Some((id, Part::Sent)) => (id, &mut turn.bytes_out),
            _ => return,
        };
        *total = total.saturating_add(bytes);
        turn.requests.extend(self.places.get(&request));
    }

    /// The turn of a thread has ended. One without any call is left out.
    fn end(&mut self, thread: (u64, u32)) {
        let turn = self.current.remove(&thread);
        let room = MOST_TURNS.saturating_sub(self.done.len());
        self.done
            .extend(turn.filter(|turn| turn.calls > 0 && room > 0));
    }

    /// The turns, with the numbers of their calls. `ends`: as of [`DeepLog::ends_of_calls`].
    fn finish(mut self, ends: &[u64]) -> Vec<LoopTurn> {
        let last: Vec<(u64, u32)> = self.current.keys().copied().collect();
        last.into_iter().for_each(|thread| self.end(thread));
        let number = |counter: u64| ends.partition_point(|end| *end <= counter);
        for turn in &mut self.done {
            (turn.from, turn.to) = (number(turn.began), number(turn.ended));
        }
        self.done
            .sort_small_by_key(|turn| (turn.began, turn.epoch, turn.tid));
        self.done
    }
}

/// A turn that a wait began.
fn begun(process: &DeepProcess, wait: &Call, ready: u64) -> LoopTurn {
    LoopTurn {
        epoch: process.epoch,
        pid: process.pid,
        tid: wait.tid,
        from: 0,
        to: 0,
        began: returned(wait),
        ended: returned(wait),
        ready,
        bytes_in: 0,
        bytes_out: 0,
        calls: 0,
        requests: BTreeSet::new(),
        files: Vec::new(),
    }
}

fn returned(call: &Call) -> u64 {
    call.time.saturating_add(call.took)
}
