//! The sessions and transactions that the log of `server_audit` tells of.
//!
//! In: lines of the log, in order. Out: units. A unit is a transaction, or a statement that commits
//! alone, with the statements of the procedures that it calls.
//!
//! The log has a statement when it has ended, and before it the tables that it opened. So the
//! statements of a procedure or trigger come before the statement that called them, which has a
//! smaller number. Units that ended are held for a while, until such a statement takes them over.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use backstory_database::definitions::{ChangedDefinitions, SeenDefinition};
use backstory_database::logged_transaction::{ClientSession, ExecutedStatement, LoggedTransaction};
use backstory_database::sql_dialect::{SqlDialect, WrittenName};
use backstory_database::statement_cache::StatementCache;
use backstory_database::statement_secrets::without_secrets;
use backstory_sys::clock::machine;

use crate::audit_file::TimedLine;
use crate::audit_line::AuditEvent;
use crate::audit_unit::Unit;
use crate::statement_kind::{
    autocommit_of, begins_transaction, has_no_tables, is_definition, uses_nothing,
};
use crate::statement_text::first_words;

/// The server undid the whole transaction: a deadlock.
const DEADLOCK: u32 = 1213;

/// The server's own tables in which it keeps statistics for its optimizer.
const STATISTICS: [&str; 3] = ["table_stats", "column_stats", "index_stats"];

/// Most statements of a connection that are waited for.
const MOST_OPENED: usize = 1000;

/// A connection, and its state in the server.
#[derive(Debug, Default)]
pub(crate) struct AuditSession {
    session: ClientSession,
    autocommit: bool,
    /// Tables that statements opened, by the number of the statement.
    opened: BTreeMap<u64, OpenedTables>,
}

#[derive(Debug, Default)]
struct OpenedTables {
    names: Vec<WrittenName>,
    reads: Vec<WrittenName>,
    writes: Vec<WrittenName>,
    time: i64,
    after: i64,
}

/// All sessions, and the units that are not recorded yet.
#[derive(Debug, Default)]
pub(crate) struct AuditSessions {
    pub(crate) sessions: HashMap<u64, AuditSession>,
    pub(crate) units: BTreeMap<u64, Unit>,
    pub(crate) next_unit: u64,
    pub(crate) next_session: i32,
    /// Statements that are not known by names or by tables.
    pub(crate) unparsed: u64,
    /// The server's connections that work for this watch.
    pub(crate) own: BTreeSet<u64>,
    pub(crate) database: String,
    /// The names in statements.
    pub(crate) parsed: StatementCache,
    pub(crate) autocommit: bool,
    /// Connections whose clients are not known yet.
    pub(crate) sought: BTreeSet<u64>,
    /// When the last statement of a connection had arrived, if its client was not looked for since.
    pub(crate) due: BTreeMap<u64, i64>,
    /// A definition was changed.
    pub(crate) is_outdated: bool,
    /// Statements that changed definitions, until the catalog takes them.
    pub(crate) defined: Vec<SeenDefinition>,
    /// The place of the last statement.
    pub(crate) place: u64,
}

impl AuditSessions {
    /// Takes a line of the log.
    pub(crate) fn take(&mut self, timed: &TimedLine) {
        let line = &timed.line;
        let id = line.connection;
        if self.own.contains(&id) || id == 0 {
            return;
        }
        self.know_session(timed);
        match &line.event {
            AuditEvent::Disconnect => self.end_session(id, timed.time),
            AuditEvent::Read(table) => self.open_table(timed, table, false),
            AuditEvent::Write(table) => self.open_table(timed, table, true),
            AuditEvent::Define => self.is_outdated = true,
            AuditEvent::Statement { text, error } => self.statement(timed, text, *error),
            AuditEvent::Connect | AuditEvent::Other => (),
        }
    }

    /// The session of a connection.
    pub(crate) fn session(&mut self, connection: u64) -> Option<&mut ClientSession> {
        self.sessions
            .get_mut(&connection)
            .map(|one| &mut one.session)
    }

    /// Looks whether other processes have got the sockets of clients whose statements have arrived.
    pub(crate) fn look_for_sharers(&mut self) {
        let sessions = &mut self.sessions;
        self.due.retain(|id, arrived| {
            let Some(one) = sessions.get_mut(id) else {
                return false;
            };
            let session = &mut one.session;
            session.look_for_sharers(*arrived);
            // It is not known yet, or another look comes later.
            let is_sought = session.client.is_unknown() || session.client.certain().is_some();
            is_sought && !session.client.is_certain_at(*arrived)
        });
    }

    /// The connections whose clients are not known yet, and when each was seen.
    pub(crate) fn sought_since(&self) -> BTreeMap<u64, i64> {
        let seen = |id: &u64| {
            self.sessions
                .get(id)
                .map_or(i64::MIN, |one| one.session.seen)
        };
        self.sought.iter().map(|id| (*id, seen(id))).collect()
    }

    /// Begins a session, unless it is known. It began after the first time, and it existed at the
    /// second.
    pub(crate) fn begin(
        &mut self,
        connection: u64,
        user: &str,
        host: &str,
        (began, seen): (i64, i64),
    ) {
        if self.own.contains(&connection) || self.sessions.contains_key(&connection) {
            return;
        }
        self.next_session += 1;
        let session = ClientSession {
            number: self.next_session,
            user: user.to_owned(),
            host: host.to_owned(),
            began,
            seen,
            ..ClientSession::default()
        };
        let session = AuditSession {
            session,
            autocommit: self.autocommit,
            ..AuditSession::default()
        };
        self.sessions.insert(connection, session);
        self.sought.insert(connection);
    }

    fn know_session(&mut self, timed: &TimedLine) {
        let line = &timed.line;
        // The time of a line is known to the second, and the line was read a moment ago.
        let times = (timed.after, machine());
        self.begin(line.connection, &line.user, &line.host, times);
        if let Some(session) = self.session(line.connection)
            && !line.database.is_empty()
            && matches!(
                line.event,
                AuditEvent::Connect | AuditEvent::Statement { .. }
            )
        {
            session.database.clone_from(&line.database);
        }
    }

    fn open_table(&mut self, timed: &TimedLine, table: &str, writes: bool) {
        let line = &timed.line;
        // The server reads its statistics at any time, also under `LOCK TABLES`, where a statement
        // opens no table of its own. So they say nothing about what the statement used.
        if line.database == "mysql" && STATISTICS.contains(&table) {
            return;
        }
        let Some(session) = self.sessions.get_mut(&line.connection) else {
            return;
        };
        let opened = session.opened.entry(line.query);
        let opened = opened.or_insert_with(|| OpenedTables {
            time: timed.time,
            after: timed.after,
            ..OpenedTables::default()
        });
        let name = vec![line.database.clone(), table.to_owned()];
        opened.names.push(name.clone());
        match writes {
            true => opened.writes.push(name),
            false => opened.reads.push(name),
        }
    }

    fn statement(&mut self, timed: &TimedLine, text: &str, error: u32) {
        let (id, query) = (timed.line.connection, timed.line.query);
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let mut opened = session.opened.remove(&query);
        while session.opened.len() > MOST_OPENED {
            session.opened.pop_first();
        }
        let (first, second) = first_words(text);
        if first == "SET" && error == 0 {
            self.set_autocommit(id, text, timed.time);
        }
        self.is_outdated |= is_definition(&first);
        let began = opened.as_ref().map_or(timed.time, |opened| opened.time);
        let after = opened.as_ref().map_or(timed.after, |opened| opened.after);
        let database = timed.line.database.clone();
        let names = opened.iter().flat_map(|opened| &opened.names);
        let is_ours =
            database == self.database || names.clone().any(|name| name[0] == self.database);
        let opens_none = names.clone().next().is_none();
        let tables = match opens_none && has_no_tables(&first) {
            true => Ok(Arc::default()),
            false => self.parsed.names_of(text),
        };
        self.place += 1;
        if error == 0
            && let Some(changed) = ChangedDefinitions::of(text, tables.as_deref())
        {
            self.defined.push(SeenDefinition {
                began,
                ended: Some(timed.time),
                session: id.to_string(),
                transaction: 0,
                place: self.place,
                changed,
            });
        }
        let is_idle = opens_none && first != "CALL" && tables.as_deref().is_ok_and(uses_nothing);
        // The opened tables say what an unknown statement used.
        self.unparsed += u64::from(tables.is_err() && error == 0 && is_ours && opened.is_none());
        let statement = ExecutedStatement {
            time: began,
            since: after,
            until: timed.time,
            place: self.place,
            opened_to_write: opened
                .as_mut()
                .map(|opened| std::mem::take(&mut opened.writes))
                .unwrap_or_default(),
            opened: opened.map(|opened| opened.reads),
            error: (error != 0).then(|| format!("error {error}")),
            ..ExecutedStatement::new(without_secrets(text), tables, vec![database])
        };
        let unit = self.unit_of(id, query, (&first, &second), is_idle, (after, timed.time));
        let Some(unit) = unit.and_then(|key| self.units.get_mut(&key)) else {
            return;
        };
        unit.logged.add(statement, Instant::now());
        self.due.insert(id, timed.time);
        unit.texts.push(text.to_owned());
        unit.queries.insert(query);
        unit.is_ours |= is_ours;
        unit.logged.undone |= error == DEADLOCK;
        let is_undone = error == DEADLOCK;
        self.track(id, text, (&first, &second), is_undone, timed.time);
    }

    /// The unit that a statement belongs to. `None` if it uses nothing and is in no transaction.
    fn unit_of(
        &mut self,
        id: u64,
        query: u64,
        (first, second): (&str, &str),
        is_idle: bool,
        (began, time): (i64, i64),
    ) -> Option<u64> {
        let begins = begins_transaction(first, second);
        let commits_before = begins || is_definition(first) || first == "LOCK";
        let session = self.sessions.get(&id)?;
        let open = session.session.current;
        // A statement that was called by this one cannot end its transaction.
        let is_caller = open
            .and_then(|key| self.units.get(&key))
            .is_some_and(|unit| unit.queries.first().is_some_and(|first| *first > query));
        if let Some(key) = open {
            if !commits_before || is_caller {
                return Some(key);
            }
            self.end_unit(id, time);
        }
        let autocommit = self.sessions.get(&id)?.autocommit;
        let called = self.called_by(id, query);
        if is_idle && !begins && called.is_empty() {
            return None;
        }
        self.next_unit += 1;
        let key = self.next_unit;
        let name = format!("{id}/{query}");
        let dialect = SqlDialect::MariaDb { lower_case: false };
        let mut unit = Unit {
            logged: LoggedTransaction::begin(id.to_string(), name, began, dialect),
            connection: id,
            queries: BTreeSet::new(),
            is_ours: false,
            commits: Vec::new(),
            by_statement: false,
            texts: Vec::new(),
        };
        for other in called {
            unit.take_over(other);
        }
        self.units.insert(key, unit);
        let session = self.sessions.get_mut(&id)?;
        session.session.current = Some(key);
        let stays_open = begins || !autocommit && !commits_before;
        if !stays_open {
            self.end_unit(id, time);
        }
        Some(key)
    }

    /// Takes out the units of statements that a statement called.
    fn called_by(&mut self, id: u64, query: u64) -> Vec<Unit> {
        let is_called = |unit: &Unit| {
            let first = unit.queries.first();
            unit.connection == id && first.is_some_and(|first| *first > query)
        };
        let of_session = self.units.iter().filter(|(_, unit)| is_called(unit));
        let keys: Vec<u64> = of_session.map(|(key, _)| *key).collect();
        keys.iter()
            .filter_map(|key| self.units.remove(key))
            .collect()
    }

    /// Follows the state of the connection after a statement.
    fn track(
        &mut self,
        id: u64,
        text: &str,
        (first, second): (&str, &str),
        is_undone: bool,
        time: i64,
    ) {
        let is_end = match first {
            "COMMIT" => true,
            "ROLLBACK" => !text
                .to_ascii_lowercase()
                .split_whitespace()
                .any(|word| word == "to"),
            "XA" => ["PREPARE", "COMMIT", "ROLLBACK"].contains(&second),
            _ => is_undone,
        };
        if is_end {
            self.end_unit(id, time);
        }
    }

    /// Follows the setting `autocommit`, which a statement outside of units changes, too.
    fn set_autocommit(&mut self, id: u64, text: &str, time: i64) {
        let Some(value) = autocommit_of(text) else {
            return;
        };
        if let Some(session) = self.sessions.get_mut(&id) {
            session.autocommit = value;
        }
        if value {
            self.end_unit(id, time);
        }
    }

    fn end_unit(&mut self, id: u64, time: i64) {
        let session = self.sessions.get_mut(&id);
        let current = session.and_then(|session| session.session.current.take());
        if let Some(unit) = current.and_then(|key| self.units.get_mut(&key)) {
            unit.logged.ended = Some((time, Instant::now()));
        }
    }

    /// Ends a session. The server undoes its open transaction.
    pub(crate) fn end_session(&mut self, id: u64, time: i64) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        session.session.ended = Some(time);
        if let Some(unit) = session
            .session
            .current
            .and_then(|key| self.units.get_mut(&key))
        {
            unit.logged.undone = true;
        }
        self.end_unit(id, time);
        self.sought.remove(&id);
    }

    /// The connections of all sessions.
    pub(crate) fn connections(&self) -> Vec<u64> {
        self.sessions.keys().copied().collect()
    }

    /// Removes the sessions that have ended and have no unit left.
    pub(crate) fn remove_ended(&mut self) -> Vec<ClientSession> {
        let units = &self.units;
        let is_over = |id: &u64, one: &AuditSession| {
            one.session.ended.is_some() && !units.values().any(|unit| unit.connection == *id)
        };
        let over: Vec<u64> = self
            .sessions
            .iter()
            .filter(|(id, one)| is_over(id, one))
            .map(|(id, _)| *id)
            .collect();
        let removed = over.iter().filter_map(|id| self.sessions.remove(id));
        removed.map(|one| one.session).collect()
    }
}

#[cfg(test)]
mod tests;
