//! Finds the requests of a deep log that are meant.
//!
//! In: a deep log, and a file, an address or a moment. Out: the numbers of requests, the newest
//! first, or the processes that acted without a request.
//!
//! Memory: the requests of the log, and [`MOST`] acts.

use backstory_ordering::SmallSort;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use backstory_deep::{DeepLog, Request, Role};
use backstory_eventlog::event::Time;

use crate::deep_files::DeepFiles;
use crate::model::FileAct;
use crate::question::PeerPattern;
use crate::read_together::ReadTogether;

/// Most acts of one process without a request, and most requests, that are searched further.
const MOST: usize = 1000;

/// A request counts as served at a moment if the moment is at most this far from it, in ns.
const NEAR: Time = 1_000_000_000;

/// An act on the file of the question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundAct {
    /// The id of the request. `None` if the process worked on none.
    pub request: Option<usize>,
    /// The epoch of the process.
    pub epoch: u64,
    /// The process id, as the run's log has it.
    pub pid: u32,
    /// The moment.
    pub time: Time,
    /// The path that was used last.
    pub path: Vec<u8>,
    /// The acts, in order.
    pub acts: Vec<FileAct>,
    /// The ids of other requests that the thread had read by then, in an event loop of a server. It
    /// may have acted for one of them.
    pub others: BTreeSet<usize>,
}

/// The acts on a file that has one of these names: one for each request and process, the newest
/// first. Also all requests. `changes`: only acts that change it.
pub fn acts_on(log: &DeepLog, names: &[Vec<u8>], changes: bool) -> (Vec<FoundAct>, Vec<Request>) {
    let mut files = DeepFiles::default();
    let mut found: VecDeque<FoundAct> = VecDeque::new();
    let mut at: HashMap<(Option<usize>, u64), usize> = HashMap::new();
    let mut dropped = 0;
    let mut read = ReadTogether::default();
    let requests = log.walk_requests(|process, call, belongs| {
        read.take(process.epoch, call, belongs);
        let Some(used) = files.take(process, call) else {
            return;
        };
        let is_it = |path: &Vec<u8>| names.contains(path);
        let named = is_it(&used.path) || used.formerly.as_ref().is_some_and(is_it);
        if !named || changes && !used.act.is_change() {
            return;
        }
        let request = belongs.map(|(id, _)| id);
        let key = (request, process.epoch);
        let others = match request {
            Some(_) => read.others((process.epoch, call.tid), request),
            None => BTreeSet::new(),
        };
        let known = at
            .get(&key)
            .and_then(|index: &usize| index.checked_sub(dropped));
        if let Some(act) = known.and_then(|index| found.get_mut(index)) {
            act.time = log.time_of(call.time);
            act.path = used.path;
            if !act.acts.contains(&used.act) {
                act.acts.push(used.act);
            }
            act.others.extend(others);
            return;
        }
        if found.len() == MOST {
            found.pop_front();
            dropped += 1;
        }
        at.insert(key, found.len() + dropped);
        found.push_back(FoundAct {
            request,
            epoch: process.epoch,
            pid: process.pid,
            time: log.time_of(call.time),
            path: used.path,
            acts: vec![used.act],
            others,
        });
    });
    let served = requests.iter().filter(|one| one.role == Role::Server);
    let served: HashSet<usize> = served.map(|one| one.id).collect();
    let mut found = Vec::from(found);
    for act in &mut found {
        act.acts.sort_small();
        act.others.retain(|id| served.contains(id));
    }
    found.sort_small_by_key(|act| std::cmp::Reverse(act.time));
    (found, requests)
}

/// The requests with a peer, the newest first.
pub fn with_peer<'r>(requests: &'r [Request], peer: &PeerPattern) -> Vec<&'r Request> {
    let newest = requests.iter().rev();
    newest
        .filter(|request| peer.accepts(&request.peer))
        .collect()
}

/// The requests that were served or made at a moment, the nearest first.
pub fn at_moment<'r>(log: &DeepLog, requests: &'r [Request], moment: Time) -> Vec<&'r Request> {
    let distance = |request: &Request| {
        let (began, ended) = (log.time_of(request.began), log.time_of(request.ended));
        match moment {
            _ if moment < began => began - moment,
            _ if moment > ended => moment - ended,
            _ => 0,
        }
    };
    let near = requests.iter().map(|request| (distance(request), request));
    let mut near: Vec<_> = near.filter(|(distance, _)| *distance <= NEAR).collect();
    near.sort_small_by_key(|(distance, request)| (*distance, request.began));
    near.truncate(MOST);
    near.into_iter().map(|(_, request)| request).collect()
}
