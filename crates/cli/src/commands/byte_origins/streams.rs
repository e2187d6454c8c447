//! The bytes that entered through connections and pipes, as the deep log of a run has them.

use std::collections::HashMap;
use std::net::SocketAddr;

use backstory_deep::DeepLog;
use backstory_reconstruct::RecordedRun;
use backstory_scene::redacted;

use crate::current_store::CurrentStore;

/// The most bytes of a stream that are shown.
const MOST: usize = 1 << 26;

/// The streams of the runs of a store. Each log is read once.
pub struct RecordedStreams<'c> {
    current: &'c CurrentStore,
    runs: HashMap<String, RecordedRun>,
}

/// True for the name of a connection: the address of its other end.
pub fn is_address(name: &[u8]) -> bool {
    let text = std::str::from_utf8(name);
    text.is_ok_and(|text| text.parse::<SocketAddr>().is_ok())
}

impl<'c> RecordedStreams<'c> {
    /// Nothing has been read yet.
    pub fn of(current: &'c CurrentStore) -> RecordedStreams<'c> {
        RecordedStreams {
            current,
            runs: HashMap::new(),
        }
    }

    /// The bytes that the processes of a run read from a stream with this name. `None`: the run has
    /// no deep log, or the bytes have a secret.
    pub fn entered(&mut self, run: &str, name: &[u8]) -> Option<Vec<u8>> {
        if !self.runs.contains_key(run) {
            let log = DeepLog::open(self.current.home.deep_log_path(run)).ok()?;
            self.runs.insert(run.to_owned(), RecordedRun::load(&log));
        }
        let run = self.runs.get(run)?;
        let mut named = run.resources.iter().enumerate().filter(|(_, resource)| {
            let peer = resource.peer.as_ref().map(|peer| peer.as_bytes());
            peer == Some(name)
                || peer.is_none() && [&resource.link, &resource.name].contains(&&name.to_vec())
        });
        // Of two streams with one name, it is not known which one is meant.
        let (Some((id, _)), None) = (named.next(), named.next()) else {
            return None;
        };
        let mut all: Vec<u8> = Vec::new();
        let streams = run
            .processes
            .iter()
            .filter_map(|process| process.streams.get(&id));
        for (start, bytes) in streams.flat_map(|streams| streams.input.pieces()) {
            let start = usize::try_from(start).ok()?;
            let end = start.checked_add(bytes.len()).filter(|end| *end <= MOST)?;
            all.resize(all.len().max(end), 0);
            all[start..end].copy_from_slice(bytes);
        }
        (redacted(&all) == all).then_some(all)
    }
}
