//! The sessions and transactions that the server's log tells of.
//!
//! In: lines of the log, in order. Out: transactions with their statements. A transaction ends with
//! a line of its session outside of it, or with its commit in the replication stream.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use backstory_database::commit::TransactionNumber;
use backstory_database::definitions::{ChangedDefinitions, SeenDefinition};
use backstory_database::logged_transaction::{ClientSession, ExecutedStatement, LoggedTransaction};
use backstory_database::statement_cache::StatementCache;
use backstory_database::statement_secrets::without_secrets;

use crate::backends::Backends;
use crate::client_lookout::FoundClient;
use crate::end_mark::END;
use crate::log_line::{LogEvent, LogLine, ROUNDING};

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
            port: line.remote_port,
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
        let path = ["pg_catalog", &session.user, "public"].map(Into::into);
        self.place += 1;
        let statement = ExecutedStatement {
            time,
            until: time + ROUNDING,
            place: self.place,
            is_rounded: true,
            parameters,
            ..ExecutedStatement::new(without_secrets(&text), tables, path.into())
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
            ..LoggedTransaction::begin(line.session_id.clone(), line.vxid.clone(), time)
        });
        transaction.add(statement, read);
    }

    fn end_session(&mut self, id: &str, time: i64) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.ended = Some(time);
        }
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
mod tests {
    use super::*;
    use crate::log_line::LogFormat;
    use backstory_database::catalog::Catalog;
    use backstory_database::client_process::{ClientProcess, SessionClient};

    fn line(message: &str, virtual_id: &str, id: u32) -> LogLine {
        let text = serde_json::json!({
            "timestamp": "2026-11-22 12:00:00.000 UTC", "user": "ann", "dbname": "bank",
            "pid": 7, "session_id": "s", "vxid": virtual_id, "txid": id, "message": message,
            "backend_type": "client backend", "error_severity": "LOG",
        });
        LogLine::parse(text.to_string().as_bytes(), LogFormat::Json).unwrap()
    }

    fn take(table: &mut SessionTable, line: &LogLine, time: i64) {
        table.take(line, time, Instant::now());
    }

    fn table() -> SessionTable {
        SessionTable {
            database: "bank".to_owned(),
            ..SessionTable::default()
        }
    }

    #[test]
    fn statements_of_one_virtual_id_are_one_transaction() {
        let mut table = table();
        take(&mut table, &line("statement: BEGIN", "3/1", 0), 10);
        take(
            &mut table,
            &line("statement: UPDATE a SET x = 1", "3/1", 0),
            20,
        );
        take(&mut table, &line("statement: COMMIT", "3/1", 742), 30);
        take(&mut table, &line("statement: SELECT 1", "3/2", 0), 40);
        assert_eq!(table.transactions.len(), 2);
        let first = &table.transactions[&1];
        assert_eq!(
            (&first.id, first.began, first.statements.len()),
            (&Some(TransactionNumber::Plain(742)), 10, 3)
        );
        assert_eq!(first.ended.map(|(time, _)| time), Some(40));
        let may_write = [1, 2].map(|key| table.transactions[&key].may_write(&Catalog::default()));
        assert_eq!(may_write, [true, false]);
    }

    #[test]
    fn a_transaction_that_is_rolled_back_changes_nothing_unless_it_goes_back_to_a_savepoint() {
        let ends_with = |last: &[&str]| {
            let mut table = table();
            for text in ["statement: BEGIN", "statement: DELETE FROM a"]
                .iter()
                .chain(last)
            {
                take(&mut table, &line(text, "3/1", 0), 10);
            }
            table.transactions[&1].may_write(&Catalog::default())
        };
        assert!(ends_with(&["statement: COMMIT"]));
        assert!(!ends_with(&["statement: ROLLBACK;"]));
        assert!(ends_with(&[
            "statement: ROLLBACK TO s",
            "statement: COMMIT"
        ]));
    }

    #[test]
    fn a_transaction_that_its_session_leaves_open_is_undone() {
        let after = |texts: &[&str]| {
            let mut table = table();
            for text in texts {
                take(
                    &mut table,
                    &line(&format!("statement: {text}"), "3/1", 0),
                    10,
                );
            }
            let left = "disconnection: session time: 0:00:01 user=ann database=bank host=[local]";
            take(&mut table, &line(left, "", 0), 20);
            let one = &table.transactions[&1];
            (one.undone, one.has_committed())
        };
        let write = "INSERT INTO a VALUES (1)";
        assert_eq!(after(&["BEGIN", write]), (true, false));
        for committed in [&["BEGIN", write, "END"][..], &[write]] {
            assert_eq!(after(committed), (false, true), "{committed:?}");
        }
        let whole = format!("BEGIN; {write}; COMMIT");
        assert_eq!(after(&[&whole]), (false, true));
        let prepared = ["BEGIN", write, "PREPARE TRANSACTION 'x'"];
        assert_eq!(after(&prepared), (false, false));
    }

    #[test]
    fn a_session_whose_process_is_gone_ends_although_the_log_does_not_tell() {
        let mut server = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let backends = Backends::with_session(server.id());
        let mut table = table();
        let mut take_text = |text: &str| {
            let mut line = line(text, "3/1", 0);
            line.session_id = format!("6925a1b0.{:x}", server.id());
            take(&mut table, &line, 10);
        };
        take_text("statement: BEGIN");
        take_text("statement: INSERT INTO a VALUES (1)");
        table.end_gone(backends, 20);
        table.end_gone(backends, 20);
        assert!(table.transactions[&1].ended.is_none());
        server.kill().unwrap();
        server.wait().unwrap();
        // Lines of the process may come after the first look.
        table.end_gone(backends, 30);
        assert!(table.transactions[&1].ended.is_none());
        table.end_gone(backends, 40);
        let open = &table.transactions[&1];
        let ended = open.ended.map(|(time, _)| time);
        assert_eq!((ended, open.undone), (Some(40), true));
        table.remove(1);
        assert_eq!(table.ended().len(), 1);
    }

    #[test]
    fn statements_have_places_in_the_order_of_the_log() {
        let mut table = table();
        for text in [
            "BEGIN",
            "INSERT INTO a VALUES (1)",
            "ALTER TABLE a ADD x int",
        ] {
            take(
                &mut table,
                &line(&format!("statement: {text}"), "3/1", 0),
                10,
            );
        }
        let places = table.transactions[&1].statements.iter();
        let places: Vec<u64> = places.map(|one| one.place).collect();
        assert_eq!((places, table.defined[0].place), (vec![1, 2, 3], 3));
    }

    #[test]
    fn a_statement_alone_ends_with_its_duration() {
        let mut table = table();
        take(&mut table, &line("statement: SELECT 1", "3/2", 0), 40);
        take(&mut table, &line("duration: 0.1 ms", "3/0", 0), 50);
        assert_eq!(table.transactions[&1].ended.map(|(time, _)| time), Some(50));
    }

    #[test]
    fn another_database_and_the_watch_itself_are_left_out() {
        let mut table = table();
        let mut other = line("statement: SELECT 1", "3/2", 0);
        other.dbname = "other".to_owned();
        take(&mut table, &other, 1);
        table.own = vec![7];
        take(&mut table, &line("statement: SELECT 1", "3/2", 0), 1);
        assert!(table.transactions.is_empty());
    }

    #[test]
    fn the_end_is_a_message_of_the_watch_itself() {
        let mut table = table();
        take(&mut table, &line(END, "3/2", 0), 1);
        assert!(!table.has_end);
        table.own = vec![7];
        take(&mut table, &line("statement: SELECT 1", "3/2", 0), 2);
        assert!(!table.has_end);
        take(&mut table, &line(END, "3/2", 0), 3);
        assert!(table.has_end);
    }

    #[test]
    fn a_statement_that_does_not_parse_is_kept_and_counted() {
        let mut table = table();
        take(&mut table, &line("statement: SELEC 1", "3/2", 0), 1);
        assert_eq!(table.unparsed, 1);
        assert!(table.transactions[&1].statements[0].tables.is_err());
    }

    #[test]
    fn a_client_that_is_found_before_its_session_has_a_line_is_the_sessions_client() {
        let pid = |table: &SessionTable| table.sessions["s"].client.processes[0].pid;
        let (mut table, now) = (table(), Instant::now());
        table.know_clients(vec![found(1, now)]);
        take(&mut table, &line("statement: SELECT 1", "3/2", 0), 1);
        assert_eq!((pid(&table), table.clients.len()), (1, 0));
        let later = now + Duration::from_millis(1);
        table.know_clients(vec![found(2, later)]);
        assert_eq!(pid(&table), 2);
        // The session's client was looked for since.
        table.know_clients(vec![found(1, now)]);
        assert_eq!(pid(&table), 2);
    }

    #[test]
    fn a_client_that_shares_its_connection_stays_one_that_does() {
        let (mut table, now) = (table(), Instant::now());
        take(&mut table, &line("statement: SELECT 1", "3/2", 0), 1);
        let mut shared = found(1, now);
        shared.client.is_certain = false;
        table.know_clients(vec![shared]);
        let later = now + Duration::from_millis(1);
        table.know_clients(vec![found(1, later)]);
        assert!(!table.sessions["s"].client.is_certain);
    }

    fn found(pid: u32, looked: Instant) -> FoundClient {
        let mut client = SessionClient::default();
        client.processes.push(process(pid));
        client.is_certain = true;
        FoundClient {
            session: "s".to_owned(),
            client,
            looked,
        }
    }

    fn process(pid: u32) -> ClientProcess {
        ClientProcess {
            pid,
            born: 0,
            program: None,
            arguments: Vec::new(),
            directory: None,
        }
    }
}
