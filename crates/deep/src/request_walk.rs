//! The requests that the processes of a run served or made: units of work on a connection.
//!
//! In: deep streams. Out: one [`Request`] for each read-write pair on an accepted connection, and
//! for each write-read pair on a connection that the process itself made.
//!
//! - A request of a server begins with the first bytes that it reads after it last wrote. It ends
//!   with its last write before the next such read, or with the close.
//! - A request of a client begins with the first bytes that it writes after it last read. It ends
//!   with its last read before the next such write.
//! - A call belongs to the request on which its thread worked last.
//! - A child by `fork`, and a program that it executes, goes on with the connections of its parent.
//!   Calls of a child that works on no connection belong to the request that it was made for.
//!
//! Memory: the open connections, and at most [`DeepLog::most_requests`] requests. Calls of further
//! ones belong to none.

use crate::call::Call;
use crate::call_numbers as nr;
use crate::connections::ProcessConnections;
use crate::log::{DeepLog, DeepProcess};
use crate::requests::{Part, Request};
use backstory_ordering::SmallSort;
use std::collections::HashMap;

/// Most files that are named in one list.
const MOST_FILES: usize = 1000;
/// Most files that are named in all lists.
pub(crate) const MOST_FILES_OF_ALL: usize = 1 << 20;
/// Requests that a log of any size may have.
const MOST_OF_ANY: usize = 1 << 20;
/// Bytes of a larger log for each of its requests. The two calls of a request take more. Of a
/// hostile log, one byte can claim many requests, because zstd stores equal records in a few bytes.
const BYTES_OF_REQUEST: usize = 4;

impl DeepLog {
    /// Most requests that are read of this log. A log that a recorder wrote has fewer.
    pub fn most_requests(&self) -> usize {
        MOST_OF_ANY.max(self.len() / BYTES_OF_REQUEST)
    }

    /// The requests of all processes, in the order of their beginning.
    pub fn requests(&self) -> Vec<Request> {
        self.walk_requests(|_, _, _| {})
    }

    /// The same. `visit` gets each call with the request that it was made for, if any: its
    /// [`Request::id`]. Processes come one after the other; each walk gives the same ids.
    pub fn walk_requests(
        &self,
        visit: impl FnMut(&DeepProcess, &Call, Option<(usize, Part)>),
    ) -> Vec<Request> {
        self.walk_requests_up_to(self.most_requests(), visit)
    }

    /// The same for the first `most` requests that are found, process by process.
    pub fn walk_requests_up_to(
        &self,
        most: usize,
        mut visit: impl FnMut(&DeepProcess, &Call, Option<(usize, Part)>),
    ) -> Vec<Request> {
        self.begin_pass();
        let mut all = Vec::new();
        let mut files = MOST_FILES_OF_ALL;
        let mut accepted = 0;
        // The state that a new process or program finds, by its process id.
        let mut inherited: HashMap<u32, ProcessConnections> = HashMap::new();
        for process in self.processes() {
            let mut state = inherited.remove(&process.own_pid).unwrap_or_default();
            for call in self.process_calls(process.epoch) {
                let belongs = state.take(process, &call, &mut accepted, (&mut all, most));
                if let Some(child) = state.child(&call) {
                    let request = belongs.map(|(id, _)| id);
                    inherited.insert(child, state.passed_on(request));
                }
                if let Some(request) = belongs.and_then(|(id, _)| all.get_mut(id)) {
                    count(request, (process.epoch, &call), &mut files);
                }
                visit(process, &call, belongs);
            }
            let origin = state.origin();
            inherited.insert(process.own_pid, state.passed_on(origin));
        }
        all.sort_small_by_key(|request| request.began);
        all
    }
}

/// Counts a call of a request, and the file that it opened. `epoch`: the process that made it.
fn count(request: &mut Request, (epoch, call): (u64, &Call), rest: &mut usize) {
    if call.is_fact() {
        return;
    }
    request.calls += 1;
    if request.epoch == epoch {
        let returned = call.time.saturating_add(call.took);
        request.worked_until = request.worked_until.max(returned);
    }
    if let Some((path, writes)) = opened(call) {
        add_file(&mut request.files, path, rest);
        if writes {
            request.wrote_more |= !add_file(&mut request.written, path, rest);
        }
    }
}

/// The path that a call opened, and whether for writing.
pub(crate) fn opened(call: &Call) -> Option<(&[u8], bool)> {
    const ACCESS_MODE: u64 = 3;
    let creates = call.number == nr::CREAT;
    let opens = (creates || nr::OPENS.contains(&call.number)) && call.result >= 0;
    let path = call.path().filter(|path| opens && !path.is_empty())?;
    Some((path, creates || call.a & ACCESS_MODE != 0))
}

/// Adds a path to a list of files, once. `rest`: how many more are named in all lists. False: there
/// is no room for it.
pub(crate) fn add_file(files: &mut Vec<Vec<u8>>, path: &[u8], rest: &mut usize) -> bool {
    if files.iter().any(|known| known == path) {
        return true;
    }
    let has_room = files.len() < MOST_FILES && *rest > 0;
    if has_room {
        *rest -= 1;
        files.push(path.to_vec());
    }
    has_room
}
