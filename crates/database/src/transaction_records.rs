//! The records of one transaction: what it is, who ran it, what it used.
//!
//! | in the database | in the run |
//! | --- | --- |
//! | session | an activity; it has the server's process id |
//! | transaction | an activity inside the session's |
//! | table | a thing with a version for each transaction that changed it |
//! | row | a thing with a version for each change |
//! | connection | two things, one for each direction, named as those of recorded programs |
//! | client | a process |

mod row_changes;
mod spans;
mod table_uses;

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

use backstory_session::SourceRun;
use backstory_vocabulary::RowsMode;
use rustix::net::{AddressFamily, SocketType, socket};
use serde_json::json;

use self::spans::span;
use crate::catalog::Catalog;
use crate::columns::StatementColumns;
use crate::columns::cache::ColumnCache;
use crate::commit::{Commit, CommitCertainty};
use crate::connection_uri::without_password;
use crate::database_names::{ConnectionNames, DatabaseNames};
use crate::database_records::{DatabaseRecords, ResourceUse};
use crate::definitions::StatementMoment;
use crate::logged_transaction::{ClientSession, ExecutedStatement, LoggedTransaction};
use crate::read_tables::{read_tables, unknown_functions};
use crate::recorded_clients::RecordedClients;
use crate::sql_dialect::WrittenName;
use crate::transaction_facts::{client, transaction_fact};

/// Activities of the database have numbers above this.
const FIRST: u32 = backstory_eventlog::event::UNNUMBERED;

/// Writes the records of transactions.
pub struct TransactionRecorder {
    writer: DatabaseRecords,
    names: DatabaseNames,
    /// Without rows, the changed tables are those of the statements.
    rows: RowsMode,
    next: u32,
    clients: RecordedClients,
    columns: ColumnCache,
    /// The cookie of this process's network namespace.
    network: Option<u64>,
}

impl TransactionRecorder {
    /// Begins the records of one database with this process, its command. Its connection is
    /// recorded without the password.
    pub fn begin(run: &SourceRun, names: DatabaseNames, rows: RowsMode) -> TransactionRecorder {
        let mut writer = DatabaseRecords::new(run.supply());
        let arguments: Vec<Vec<u8>> = std::env::args_os()
            .map(|word| without_password(&word.to_string_lossy()).into_bytes())
            .collect();
        let directory = std::env::current_dir().map(|path| path.into_os_string().into_vec());
        let directory = directory.unwrap_or_default();
        let time = backstory_sys::clock::machine();
        writer.process(std::process::id(), None, &arguments, &directory, time);
        TransactionRecorder {
            writer,
            names,
            rows,
            next: FIRST,
            clients: RecordedClients::default(),
            columns: ColumnCache::default(),
            network: network(),
        }
    }

    /// No more commits follow. The changed tables are those of the statements from now on.
    pub fn end_rows(&mut self) {
        self.rows = RowsMode::Off;
    }

    /// Whether the commits of a transaction tell what it changed. Some can be left after the end of
    /// the rows.
    fn rows_of(&self, commits: &[Commit<'_>]) -> RowsMode {
        match commits.is_empty() {
            true => self.rows,
            false => RowsMode::On,
        }
    }

    /// The names of connections through the server's socket file.
    pub fn sockets(&mut self) -> &mut Vec<String> {
        &mut self.names.sockets
    }

    /// Records that a transaction received its statements through the session's connection.
    fn receive(
        &mut self,
        activity: u32,
        (session, sure): (&ClientSession, bool),
        (began, end): (i64, i64),
    ) {
        let ConnectionNames { names, is_certain } = self.names.connection(session);
        for to in names {
            let connection = (&*to, connection_number(session, sure));
            self.use_by_client((session, sure), connection, ResourceUse::Write, began);
            for time in [began, end] {
                self.writer
                    .used(activity, connection, ResourceUse::Read, is_certain, time);
            }
        }
    }

    /// Records that a transaction sent its results through the session's connection.
    fn reply(
        &mut self,
        activity: u32,
        (session, sure): (&ClientSession, bool),
        (began, end): (i64, i64),
    ) {
        let ConnectionNames { names, is_certain } = self.names.connection(session);
        for to in names {
            let from = format!("{to} (reply)");
            let connection = (&*from, connection_number(session, sure));
            for time in [began, end] {
                self.writer
                    .used(activity, connection, ResourceUse::Write, is_certain, time);
            }
            self.use_by_client((session, sure), connection, ResourceUse::Read, end);
        }
    }

    /// Records that the client of a session used its connection. It possibly did if it is one of
    /// several processes, or was not seen with its socket since.
    fn use_by_client(
        &mut self,
        (session, sure): (&ClientSession, bool),
        connection: (&str, i32),
        how: ResourceUse,
        time: i64,
    ) {
        for process in &session.client.processes {
            self.writer.used(process.pid, connection, how, sure, time);
        }
    }

    /// Begins the records of a session, unless they are begun. Another process can have inherited
    /// the client's socket until the last statement was read.
    fn begin_session(&mut self, session: &mut ClientSession, logged: &LoggedTransaction) {
        session.look_for_sharers_after(logged.read);
        // The log's times are rounded, so that look may seem to be before the statement.
        session.look_for_sharers(logged.arrived());
        self.clients.begin(session, &mut self.writer);
        if std::mem::replace(&mut session.is_recorded, true) {
            return;
        }
        let time = session.began;
        if session.activity == 0 {
            self.next += 1;
            session.activity = self.next;
        }
        let text = format!(
            "{}@{} {}",
            session.user, session.database, session.application
        );
        let what = format!("{} session", self.names.kind);
        let activity = session.activity;
        self.writer.work(activity, 0, &what, text.trim_end(), time);
        let fact = json!({
            "user": session.user, "database": session.database,
            "application": session.application, "client": client(session, self.network, time),
        });
        self.writer.fact(activity, self.names.kind, &fact, time);
    }

    /// Ends the records of a session.
    pub fn end_session(&mut self, session: &ClientSession, time: i64) {
        if session.is_recorded {
            self.clients.end_session(session, time);
            self.writer.gone(session.activity, time);
        }
    }

    /// Ends the records of clients that are gone. `now`: their processes are looked at although
    /// that was done a moment ago.
    pub fn end_clients(&mut self, now: bool) {
        self.clients.end_gone(&mut self.writer, now);
    }

    /// Records a transaction of the log, with its commits. It has none if it changed nothing, and
    /// several if a part of it commits alone.
    pub fn record(
        &mut self,
        logged: &LoggedTransaction,
        session: &mut ClientSession,
        commits: &[Commit<'_>],
        certainty: CommitCertainty,
        catalog: &Catalog,
    ) {
        self.begin_session(session, logged);
        self.next += 1;
        let activity = self.next;
        let (began, end) = span(session, logged, commits, self.names.rounding);
        let what = match (commits.first(), &logged.id) {
            (Some(commit), _) => format!("transaction {}", commit.number),
            (None, Some(id)) => format!("transaction {id}"),
            (None, None) => format!("transaction {}", logged.virtual_id),
        };
        let texts: Vec<&str> = logged
            .statements
            .iter()
            .map(|one| one.text.trim().trim_end_matches(';'))
            .collect();
        self.writer
            .work(activity, session.activity, &what, &texts.join("; "), began);
        let is_certain = session.client.is_certain_at(logged.arrived());
        self.receive(activity, (session, is_certain), (began, end));
        self.use_tables(activity, logged, commits, catalog, (began, end));
        if self.rows_of(commits) == RowsMode::Off && !logged.is_rolled_back() {
            self.change_tables(activity, logged, catalog, (began, end));
        }
        let sure = certainty != CommitCertainty::Possible;
        for commit in commits {
            let times = (began, commit.time);
            self.use_triggers(activity, logged, commit.changed(), catalog, times);
            self.change_rows(activity, commit, sure, catalog);
        }
        self.reply(activity, (session, is_certain), (began, end));
        let statements = logged.statements.iter();
        let unknown = statements.flat_map(|one| unknown_functions(one, catalog));
        let unknown: BTreeSet<WrittenName> = unknown.collect();
        let columns = self.columns_of(logged, catalog);
        let fact = transaction_fact(
            logged,
            (session, self.network),
            commits,
            certainty,
            (&columns, &unknown),
        );
        self.writer.fact(activity, self.names.kind, &fact, end);
        self.writer.gone(activity, end);
    }

    /// The columns that the statements of a transaction use.
    fn columns_of(
        &mut self,
        logged: &LoggedTransaction,
        catalog: &Catalog,
    ) -> Vec<Arc<StatementColumns>> {
        let defines = |one: &ExecutedStatement| one.tables.as_ref().is_ok_and(|all| all.defines);
        let is_between = logged.is_rolled_back() && logged.statements.iter().any(defines);
        let alters = |one: &ExecutedStatement| one.tables.as_ref().is_ok_and(|all| all.alters);
        let of = |statement: &ExecutedStatement| {
            let is_between = is_between || alters(statement);
            let moment = StatementMoment {
                time: statement.time,
                session: &logged.session,
                place: statement.place,
                is_between,
            };
            self.columns.columns_of(statement, catalog, moment)
        };
        logged.statements.iter().map(of).collect()
    }

    /// Records a commit that belongs to none or one of several transactions of the log.
    pub fn record_alone(
        &mut self,
        commit: &Commit<'_>,
        candidates: &mut [(&LoggedTransaction, ClientSession)],
        catalog: &Catalog,
    ) {
        self.next += 1;
        let (activity, time) = (self.next, commit.time);
        let what = format!("transaction {}", commit.number);
        let mut virtual_ids = Vec::new();
        let mut uses = Vec::new();
        for (logged, session) in candidates {
            self.begin_session(session, logged);
            virtual_ids.push(logged.virtual_id.clone());
            let connection = self.names.connection(session).names.into_iter();
            let sure = session.client.is_certain_at(logged.arrived());
            uses.extend(connection.map(|name| (name, connection_number(session, sure))));
            for statement in &logged.statements {
                let tables = read_tables(statement, catalog, RowsMode::On).into_keys();
                uses.extend(tables.map(|table| (self.names.table(&table), 0)));
            }
        }
        self.writer.work(activity, 0, &what, "", time);
        for (name, number) in uses {
            self.writer
                .used(activity, (&name, number), ResourceUse::Read, false, time);
        }
        self.change_rows(activity, commit, true, catalog);
        let fact = json!({
            "number": commit.number, "position": commit.position,
            "possibly": virtual_ids,
        });
        self.writer.fact(activity, self.names.kind, &fact, time);
        self.writer.gone(activity, time);
    }
}

/// The number of a session's connection. Transactions whose client is certain have another one than
/// those whose client is not. A process that certainly used a thing is a source of all its data.
fn connection_number(session: &ClientSession, is_certain: bool) -> i32 {
    2 * session.number + i32::from(is_certain)
}

/// The cookie of this process's network namespace.
fn network() -> Option<u64> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).ok()?;
    backstory_sys::network_cookie(socket.as_fd())
}
