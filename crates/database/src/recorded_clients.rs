//! The processes of clients in the records of a run.
//!
//! In: sessions that begin and end. Out: the records of their clients. A process begins once, with
//! the first of its sessions. When it is gone, it ends with its last session, so that another
//! process with its number is not taken for it.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use crate::client_process::ClientProcess;
use crate::database_records::DatabaseRecords;
use crate::logged_transaction::ClientSession;

/// Interval between two looks at the processes without a session.
const LOOK: Duration = Duration::from_secs(1);

/// The processes that are clients.
#[derive(Debug, Default)]
pub(crate) struct RecordedClients {
    known: HashMap<u32, RecordedClient>,
    looked: Option<Instant>,
}

#[derive(Debug)]
struct RecordedClient {
    process: ClientProcess,
    /// The numbers of its open sessions.
    sessions: BTreeSet<i32>,
    /// When the last of its sessions ended, in ns since 1970.
    last: i64,
}

impl RecordedClients {
    /// Begins the processes of a session, unless they are begun.
    pub(crate) fn begin(&mut self, session: &ClientSession, writer: &mut DatabaseRecords) {
        let time = session.began;
        for process in &session.client.processes {
            let (pid, directory) = (process.pid, process.directory.as_deref());
            let is_known = |known: &RecordedClient| known.process.born == process.born;
            if !self.known.get(&pid).is_some_and(is_known) {
                if let Some(former) = self.known.remove(&pid) {
                    writer.gone(pid, former.last);
                }
                let program = process.program.as_deref();
                let directory = directory.unwrap_or_default();
                writer.process(pid, program, &process.arguments, directory, time);
            }
            let client = self.known.entry(pid).or_insert_with(|| RecordedClient {
                process: process.clone(),
                sessions: BTreeSet::new(),
                last: time,
            });
            client.sessions.insert(session.number);
        }
    }

    /// Notes that a session has ended.
    pub(crate) fn end_session(&mut self, session: &ClientSession, time: i64) {
        for process in &session.client.processes {
            if let Some(client) = self.known.get_mut(&process.pid)
                && client.sessions.remove(&session.number)
            {
                client.last = client.last.max(time);
            }
        }
    }

    /// Ends the processes that are gone. `now`: they are looked at although that was done a moment
    /// ago.
    pub(crate) fn end_gone(&mut self, writer: &mut DatabaseRecords, now: bool) {
        if !now && self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return;
        }
        self.looked = Some(Instant::now());
        self.known.retain(|pid, client| {
            let stays = !client.sessions.is_empty() || client.process.is_alive();
            if !stays {
                writer.gone(*pid, client.last);
            }
            stays
        });
    }
}
