//! The sessions and transactions that the server's log tells of.
//!
//! In: lines of the log, in order. Out: transactions with their statements. A transaction ends with
//! a line of its session outside of it, or with its commit in the replication stream.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use backstory_database::commit::TransactionNumber;
use backstory_database::definitions::{ChangedDefinitions, SeenDefinition};
use backstory_database::logged_transaction::{ClientSession, ExecutedStatement, LoggedTransaction};
use backstory_database::sql_dialect::SqlDialect;
use backstory_database::statement_cache::StatementCache;
use backstory_database::statement_secrets::without_secrets;

use crate::backends::Backends;
use crate::client_lookout::FoundClient;
use crate::end_mark::END;
use crate::log_line::{LogEvent, LogLine, ROUNDING};
use crate::search_path::SearchPaths;

/// A client whose session has no line by then is of no session that is kept.
const LINE: Duration = Duration::from_secs(60);

/// All sessions, and the transactions that are not recorded yet.
#[derive(Debug, Default)]
pub(crate) struct SessionTable {
    pub(crate) sessions: HashMap<String, ClientSession>,
    pub(crate) transactions: HashMap<u64, LoggedTransaction>,
    pub(crate) next_session: i32,
    pub(crate) next_transaction: u64,
    /// The place of the last statement.
    pub(crate) place: u64,
    /// Statements that did not parse.
    pub(crate) unparsed: u64,
    /// The server's processes that work for this watch.
    pub(crate) own: Vec<u32>,
    pub(crate) database: String,
    pub(crate) parsed: StatementCache,
    /// The schemas in which sessions look for names.
    pub(crate) paths: SearchPaths,
    /// Clients whose sessions have no line yet.
    pub(crate) clients: HashMap<String, FoundClient>,
    /// Sessions whose processes had ended at the last look.
    pub(crate) gone: HashSet<String>,
    /// The time of the last line, in ns since 1970.
    pub(crate) newest: i64,
    /// The log has all lines up to the end of the watch (`end_mark.rs`).
    pub(crate) has_end: bool,
    /// Statements that changed definitions, until the catalog takes them.
    pub(crate) defined: Vec<SeenDefinition>,
    /// Open transactions that changed definitions.
    pub(crate) defining: HashSet<u64>,
    /// Transactions that changed definitions, and when they ended, in ns since 1970.
    pub(crate) ended_definitions: Vec<(u64, i64)>,
}

impl SessionTable {
    /// Takes a line of the log. `read`: when it was read.
    pub(crate) fn take(&mut self, line: &LogLine, time: i64, read: Instant) {
        self.newest = time;
        let own = self.own.contains(&line.pid);
        self.has_end |= own && line.message == END;
        let other = !line.dbname.is_empty() && line.dbname != self.database;
        let foreign = !["client backend", "not initialized", ""].contains(&&*line.backend_type);
        if line.session_id.is_empty() || other || foreign || own {
            self.sessions.remove(&line.session_id);
            return;
        }
        let event = line.event();
        self.know_session(line, time);
        let id = &line.session_id;
        if event == LogEvent::Disconnected {
            self.undo_open(id);
        }
        self.leave_transaction(line, time);
        match event {
            LogEvent::Statement { text, parameters } => {
                self.begin_statement(line, (time, read), text, parameters);
            }
            LogEvent::Failed(message) => {
                let current = self.sessions.get(id).and_then(|session| session.current);
                let transaction = current.and_then(|key| self.transactions.get_mut(&key));
                let last = transaction.and_then(|transaction| transaction.statements.last_mut());
                if let Some(statement) = last {
                    statement.error = Some(message);
                }
            }
            LogEvent::Disconnected => self.end_session(id, time),
            LogEvent::Connected | LogEvent::Ended | LogEvent::Other => (),
        }
    }

    fn know_session(&mut self, line: &LogLine, time: i64) {
        let known = self.sessions.contains_key(&line.session_id);
        if !known {
            self.next_session += 1;
        }
        let number = self.next_session;
        let session = self.sessions.entry(line.session_id.clone());
        let session = session.or_insert_with(|| ClientSession {
            number,
            // The server has a process for each session.
            activity: line.pid,
            host: line.remote_host.clone(),
            port: Some(line.remote_port),
            began: time,
            seen: time + ROUNDING,
            ..ClientSession::default()
        });
        let set = |field: &mut String, value: &str| {
            if !value.is_empty() {
                value.clone_into(field);
            }
        };
        set(&mut session.user, &line.user);
        set(&mut session.database, &line.dbname);
        set(&mut session.application, &line.application_name);
        if !known && let Some(found) = self.clients.remove(&line.session_id) {
            (session.client, session.looked) = (found.client, Some(found.looked));
        }
    }

    /// Notes the clients that were found. The lines of their sessions may come later. A client that
    /// shares its connection stays one that does.
    pub(crate) fn know_clients(&mut self, clients: Vec<FoundClient>) {
        for found in clients {
            let Some(session) = self.sessions.get_mut(&found.session) else {
                self.clients.insert(found.session.clone(), found);
                continue;
            };
            let is_shared = !session.client.is_unknown() && session.client.certain().is_none();
            let is_newer = session.looked.is_none_or(|looked| looked <= found.looked);
            if is_newer && !is_shared {
                (session.client, session.looked) = (found.client, Some(found.looked));
            }
        }
    }

    /// Forgets the clients of sessions that are not kept, such as those of this watch.
    pub(crate) fn forget_clients(&mut self) {
        self.clients
            .retain(|_, found| found.looked.elapsed() < LINE);
    }

    /// Ends the session's transaction if the line is not in it, and learns its number if it is.
    fn leave_transaction(&mut self, line: &LogLine, time: i64) {
        let Some(session) = self.sessions.get_mut(&line.session_id) else {
            return;
        };
        let Some(key) = session.current else { return };
        let Some(transaction) = self.transactions.get_mut(&key) else {
            session.current = None;
            return;
        };
        if transaction.virtual_id == line.vxid {
            transaction.id = transaction.id.take().or_else(|| number(line));
        } else {
            transaction.ended = Some((time, Instant::now()));
            session.current = None;
            let is_undone = transaction.is_rolled_back();
            self.paths.end_transaction(&line.session_id, is_undone);
            self.end_definitions(key, time);
        }
    }

    /// Notes the end of a transaction that changed definitions. A time of the log is rounded down.
    fn end_definitions(&mut self, key: u64, time: i64) {
        if self.defining.remove(&key) {
            self.ended_definitions.push((key, time + ROUNDING));
        }
    }

    /// The server undoes the open transaction of a session that ends.
    fn undo_open(&mut self, id: &str) {
        let current = self.sessions.get(id).and_then(|session| session.current);
        if let Some(open) = current.and_then(|key| self.transactions.get_mut(&key)) {
            open.undone |= open.is_left_open();
        }
    }

    fn begin_statement(
        &mut self,
        line: &LogLine,
        (time, read): (i64, Instant),
        text: String,
        parameters: Option<String>,
    ) {
        if !line.is_in_transaction() {
            return;
        }
        let Some(session) = self.sessions.get_mut(&line.session_id) else {
            return;
        };
        let tables = self.parsed.names_of(&text);
        self.unparsed += u64::from(tables.is_err());
        let changed = ChangedDefinitions::of(&text, tables.as_deref());
        let path = self
            .paths
            .of_statement(&line.session_id, &session.user, &text);
        self.place += 1;
        let statement = ExecutedStatement {
            time,
            since: time,
            until: time + ROUNDING,
            place: self.place,
            is_rounded: true,
            parameters,
            ..ExecutedStatement::new(without_secrets(&text), tables, path)
        };
        let key = *session.current.get_or_insert_with(|| {
            self.next_transaction += 1;
            self.next_transaction
        });
        if let Some(changed) = changed {
            self.defining.insert(key);
            self.defined.push(SeenDefinition {
                began: time,
                ended: None,
                session: line.session_id.clone(),
                transaction: key,
                place: self.place,
                changed,
            });
        }
        let transaction = self.transactions.entry(key);
        let transaction = transaction.or_insert_with(|| LoggedTransaction {
            id: number(line),
            error_undoes_all: true,
            ..LoggedTransaction::begin(
                line.session_id.clone(),
                line.vxid.clone(),
                time,
                SqlDialect::Postgres,
            )
        });
        transaction.add(statement, read);
    }

    fn end_session(&mut self, id: &str, time: i64) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.ended = Some(time);
        }
        self.paths.forget(id);
    }

    /// Ends the sessions whose processes are gone, and of whose end the log may not tell. Lines of
    /// a process may be read after its end. So its session ends at the second look that finds it
    /// gone.
    pub(crate) fn end_gone(&mut self, backends: Backends, time: i64) {
        let open = self
            .sessions
            .iter()
            .filter(|(_, session)| session.ended.is_none());
        let gone: HashSet<String> = open
            .map(|(id, _)| id.clone())
            .filter(|id| backends.has_ended(id))
            .collect();
        let before = std::mem::take(&mut self.gone);
        for id in gone.intersection(&before) {
            self.undo_open(id);
            let current = self.sessions.get_mut(id).and_then(|one| one.current.take());
            if let Some(open) = current.and_then(|key| self.transactions.get_mut(&key)) {
                open.ended = Some((time, Instant::now()));
            }
            current
                .into_iter()
                .for_each(|key| self.end_definitions(key, time));
            self.end_session(id, time);
        }
        self.gone = gone;
    }

    /// Takes a transaction out, to be recorded.
    pub(crate) fn remove(&mut self, key: u64) -> Option<LoggedTransaction> {
        let transaction = self.transactions.remove(&key)?;
        if let Some(session) = self.sessions.get_mut(&transaction.session)
            && session.current == Some(key)
        {
            session.current = None;
            let is_undone = transaction.is_rolled_back();
            self.paths.end_transaction(&transaction.session, is_undone);
        }
        Some(transaction)
    }

    /// Sessions that have ended and have no transaction left.
    pub(crate) fn ended(&self) -> Vec<String> {
        let is_over = |id: &String, session: &ClientSession| {
            let has_work = self.transactions.values().any(|one| one.session == *id);
            session.ended.is_some() && !has_work
        };
        let over = self
            .sessions
            .iter()
            .filter(|(id, session)| is_over(id, session));
        over.map(|(id, _)| id.clone()).collect()
    }
}

/// The number that a line shows for its transaction.
fn number(line: &LogLine) -> Option<TransactionNumber> {
    (line.txid != 0).then(|| TransactionNumber::Plain(u64::from(line.txid)))
}

#[cfg(test)]
mod tests;
