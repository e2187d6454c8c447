//! Follows the server's log, and looks for the clients of its sessions while they live.
//!
//! In: records of the log as soon as they are written. Out: the same records, and the clients that
//! were found. This runs in the thread of a [`LogReader`](backstory_database::log_reader), so of a
//! line it reads no more than its session.
//!
//! Invariant: a client that is found was looked for after its session's line was read. It is looked
//! for again after each of the session's statements, at most once in `SHARERS`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use backstory_database::client_process::{SessionClient, find, find_local};
use backstory_database::error::Error;
use backstory_database::log_reader::LogSource;
use backstory_database::logged_transaction::SHARERS;

use crate::backends::Backends;
use crate::log_file::LogFollower;
use crate::log_line::{LineHead, LogLine, ROUNDING};

/// A client that is not found at so many lines is of another machine, or not visible.
const LOOKS: u8 = 4;
/// Interval between two looks for sessions whose processes are gone.
const BACKENDS: Duration = Duration::from_secs(10);
/// Most sessions that are kept of a server whose processes are not visible.
const MOST: usize = 10_000;

/// The client of a session, as it was found last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundClient {
    /// The session.
    pub(crate) session: String,
    pub(crate) client: SessionClient,
    /// When it was looked for.
    pub(crate) looked: Instant,
}

/// The records of one look, and the clients.
#[derive(Debug, Default)]
pub(crate) struct LogPortion {
    pub(crate) records: Vec<Vec<u8>>,
    pub(crate) clients: Vec<FoundClient>,
}

/// Follows the log, and looks for clients.
#[derive(Debug)]
pub(crate) struct ClientLookout {
    pub(crate) log: LogFollower,
    /// The watched database. Sessions of others are left out.
    pub(crate) database: String,
    pub(crate) server_port: u16,
    /// Offset of the log's local times in seconds east of UTC.
    pub(crate) offset: Arc<AtomicI64>,
    pub(crate) backends: Backends,
    pub(crate) sought: SoughtClients,
}

/// The sessions whose clients are looked for.
#[derive(Debug, Default)]
pub(crate) struct SoughtClients {
    sessions: HashMap<String, SoughtClient>,
    /// The sessions with a statement since their clients were looked for.
    due: HashSet<String>,
    looked_for_backends: Option<Instant>,
}

/// The client of a session, as far as it was looked for.
#[derive(Debug)]
struct SoughtClient {
    client: SessionClient,
    /// The server's process.
    server: u32,
    host: String,
    port: u16,
    /// The session certainly existed at this time, in ns since 1970.
    seen: i64,
    looks: u8,
    looked: Instant,
    /// It was looked for after a statement.
    was_looked_at: bool,
}

impl LogSource for ClientLookout {
    type Portion = LogPortion;

    fn look(&mut self) -> Result<Option<LogPortion>, Error> {
        let mut portion = LogPortion {
            records: self.log.records()?,
            clients: Vec::new(),
        };
        for record in &portion.records {
            self.see(record, &mut portion.clients);
        }
        self.sought.look_for_sharers(&mut portion.clients);
        self.sought.forget_ended(self.backends);
        let is_empty = portion.records.is_empty() && portion.clients.is_empty();
        Ok((!is_empty).then_some(portion))
    }

    fn size(portion: &LogPortion) -> usize {
        let each = size_of::<Vec<u8>>();
        portion.records.iter().map(|one| one.len() + each).sum()
    }

    fn is_behind(&self) -> bool {
        self.log.is_behind()
    }
}

impl ClientLookout {
    /// Looks for the client of a line's session, unless it is known.
    fn see(&mut self, record: &[u8], found: &mut Vec<FoundClient>) {
        let Some(head) = LineHead::parse(record, self.log.format) else {
            return;
        };
        let is_other = !head.database.is_empty() && head.database != self.database;
        if head.session.is_empty() || head.host.is_empty() || is_other {
            return;
        }
        let session = &*head.session;
        if !self.sought.sessions.contains_key(session) {
            self.begin(record);
        }
        let Some(sought) = self.sought.sessions.get_mut(session) else {
            return;
        };
        if sought.client.is_unknown() {
            found.extend(sought.look(session, self.server_port));
        }
        let is_due = !sought.client.is_unknown() && head.is_statement();
        if is_due && !self.sought.due.contains(session) {
            self.sought.due.insert(session.to_owned());
        }
    }

    /// Begins to look for the client of the session that a line is of.
    fn begin(&mut self, record: &[u8]) {
        let Some(line) = LogLine::parse(record, self.log.format) else {
            return;
        };
        let Some(time) = line.time(self.offset.load(Ordering::Relaxed)) else {
            return;
        };
        let sought = SoughtClient {
            client: SessionClient::default(),
            server: line.pid,
            host: line.remote_host,
            port: line.remote_port,
            seen: time + ROUNDING,
            looks: 0,
            looked: Instant::now(),
            was_looked_at: false,
        };
        self.sought.sessions.insert(line.session_id, sought);
    }
}

impl SoughtClient {
    /// Looks for the client, unless that was done often enough.
    fn look(&mut self, session: &str, server_port: u16) -> Option<FoundClient> {
        if self.looks >= LOOKS {
            return None;
        }
        self.looks += 1;
        let (server, seen) = (self.server, self.seen);
        self.client = match self.port {
            0 => find_local(server, &format!(".s.PGSQL.{server_port}"), seen),
            port => find((&self.host, port), server_port, Some(server), seen),
        }
        .or_server_of(&self.client);
        // Of a client on another machine, the server's address is known.
        let is_found = !self.client.is_unknown() || !self.client.server.is_empty();
        is_found.then(|| self.found(session))
    }

    fn found(&mut self, session: &str) -> FoundClient {
        self.looked = Instant::now();
        FoundClient {
            session: session.to_owned(),
            client: self.client.clone(),
            looked: self.looked,
        }
    }
}

impl SoughtClients {
    /// Looks whether other processes have got the sockets of clients whose statements have arrived,
    /// unless that was done a moment ago.
    fn look_for_sharers(&mut self, found: &mut Vec<FoundClient>) {
        let sessions = &mut self.sessions;
        self.due.retain(|id| {
            let Some(sought) = sessions.get_mut(id) else {
                return false;
            };
            if sought.client.certain().is_none() {
                return false;
            }
            if sought.was_looked_at && sought.looked.elapsed() < SHARERS {
                return true;
            }
            sought.was_looked_at = true;
            sought.client.look_for_sharers();
            found.push(sought.found(id));
            false
        });
    }

    /// Forgets the sessions whose processes are gone.
    fn forget_ended(&mut self, backends: Backends) {
        let is_due = |looked: Instant| looked.elapsed() >= BACKENDS;
        if !self.looked_for_backends.is_none_or(is_due) {
            return;
        }
        self.looked_for_backends = Some(Instant::now());
        self.sessions.retain(|id, _| !backends.has_ended(id));
        if self.sessions.len() > MOST {
            self.sessions.clear();
        }
    }
}
