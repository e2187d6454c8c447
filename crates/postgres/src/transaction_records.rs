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

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::os::unix::ffi::OsStringExt;

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use serde_json::json;

use crate::catalog::{Catalog, TableName};
use crate::client_process::socket_names;
use crate::commit::{Commit, CommitCertainty};
use crate::connection_target::without_password;
use crate::database_records::{DatabaseRecords, ResourceUse};
use crate::percent::encoded;
use crate::routines::RoutineReads;
use crate::row_decoder::{ColumnValue, RowChange, RowImage, RowOperation, StreamTable};
use crate::sessions::{ClientSession, LoggedTransaction};
use crate::statement_tables::StatementTables;
use crate::transaction_facts::{client, position, row_fact, transaction_fact};

/// The kind of the facts about a transaction.
const TRANSACTION: &str = "postgres";
/// The kind of the facts about a changed row.
const ROW: &str = "postgres.row";
/// The log's times are cut to milliseconds, so an event came up to this much later.
const MILLISECOND: i64 = 999_999;
/// Activities of the database have numbers above this.
const FIRST: u32 = backstory_eventlog::event::UNNUMBERED;

/// Writes the records of transactions.
pub(crate) struct TransactionRecorder {
    pub(crate) writer: DatabaseRecords,
    /// `postgres://HOST:PORT/DATABASE`
    database: String,
    /// The names of connections through the server's socket.
    sockets: Vec<String>,
    port: u16,
    next: u32,
    clients: HashSet<(u32, u64)>,
}

impl TransactionRecorder {
    /// A recorder for one database.
    pub(crate) fn new(
        writer: DatabaseRecords,
        database: String,
        socket_directory: &str,
        port: u16,
    ) -> TransactionRecorder {
        TransactionRecorder {
            writer,
            database,
            sockets: socket_names(&format!("{socket_directory}/.s.PGSQL.{port}")),
            port,
            next: FIRST,
            clients: HashSet::new(),
        }
    }

    /// Begins the run's records with this process, its command.
    pub(crate) fn begin_run(&mut self) {
        let arguments: Vec<Vec<u8>> = std::env::args_os()
            .map(|word| without_password(&word.to_string_lossy()).into_bytes())
            .collect();
        let directory = std::env::current_dir().map(|path| path.into_os_string().into_vec());
        let directory = directory.unwrap_or_default();
        let time = backstory_sys::clock::machine();
        self.writer
            .process(std::process::id(), None, &arguments, &directory, time);
    }

    /// The name of a table.
    fn table_name(&self, (schema, table): &TableName) -> String {
        format!(
            "{}/{}.{}",
            self.database,
            encoded(schema, ""),
            encoded(table, "")
        )
    }

    /// The name of a row. `None` if no key is known.
    fn row_name(&self, table: &TableName, key: &[String], image: &RowImage) -> Option<String> {
        let mut parts = Vec::new();
        for column in key {
            let value = image
                .iter()
                .find(|(name, _)| name == column)
                .map(|(_, value)| value);
            let Some(ColumnValue::Text(value)) = value else {
                return None;
            };
            parts.push(format!("{}={}", encoded(column, "."), encoded(value, ".")));
        }
        let name = || format!("{}?{}", self.table_name(table), parts.join("&"));
        (!parts.is_empty()).then(name)
    }

    /// The names that a session's connection can have for its client.
    fn connection(&self, session: &ClientSession) -> Vec<String> {
        match &session.client {
            Some(client) => client.server.clone(),
            None if session.port == 0 => self.sockets.clone(),
            None if session.host.contains(':') => {
                vec![format!("tcp:[{}]:{}", session.host, self.port)]
            }
            None => vec![format!("tcp:{}:{}", session.host, self.port)],
        }
    }

    /// Records that a transaction received its statements through the session's connection.
    fn receive(&mut self, activity: u32, session: &ClientSession, (began, end): (i64, i64)) {
        let client = session.client.as_ref().map(|client| client.pid);
        for to in self.connection(session) {
            let connection = (&*to, session.number);
            if let Some(pid) = client {
                self.writer
                    .used(pid, connection, ResourceUse::Write, true, began);
            }
            for time in [began, end] {
                self.writer
                    .used(activity, connection, ResourceUse::Read, true, time);
            }
        }
    }

    /// Records that a transaction sent its results through the session's connection.
    fn reply(&mut self, activity: u32, session: &ClientSession, (began, end): (i64, i64)) {
        let client = session.client.as_ref().map(|client| client.pid);
        for to in self.connection(session) {
            let from = format!("{to} (reply)");
            let connection = (&*from, session.number);
            for time in [began, end] {
                self.writer
                    .used(activity, connection, ResourceUse::Write, true, time);
            }
            if let Some(pid) = client {
                self.writer
                    .used(pid, connection, ResourceUse::Read, true, end);
            }
        }
    }

    /// Begins the records of a session, unless they are begun.
    fn begin_session(&mut self, session: &mut ClientSession) {
        if std::mem::replace(&mut session.is_recorded, true) {
            return;
        }
        let time = session.began;
        if let Some(client) = &session.client
            && self.clients.insert((client.pid, client.born))
        {
            let directory = client.directory.as_deref().unwrap_or_default();
            let program = client.program.as_deref();
            self.writer
                .process(client.pid, program, &client.arguments, directory, time);
        }
        let text = format!(
            "{}@{} {}",
            session.user, session.database, session.application
        );
        self.writer
            .work(session.server_pid, 0, "postgres session", &text, time);
        let fact = json!({
            "user": session.user, "database": session.database,
            "application": session.application, "client": client(session),
        });
        self.writer
            .fact(session.server_pid, TRANSACTION, &fact, time);
    }

    /// Ends the records of a session.
    pub(crate) fn end_session(&mut self, session: &ClientSession, time: i64) {
        if session.is_recorded {
            self.writer.gone(session.server_pid, time);
        }
    }

    /// Records a transaction of the log, with its commit if it has one.
    pub(crate) fn record(
        &mut self,
        logged: &LoggedTransaction,
        session: &mut ClientSession,
        commit: Option<&Commit<'_>>,
        certainty: CommitCertainty,
        catalog: &Catalog,
    ) {
        self.begin_session(session);
        self.next += 1;
        let activity = self.next;
        let (began, end) = span(logged, commit, session.last_end);
        session.last_end = end;
        let what = match (commit, logged.id) {
            (Some(commit), _) => format!("transaction {}", commit.transaction.id),
            (None, Some(id)) => format!("transaction {id}"),
            (None, None) => format!("transaction {}", logged.virtual_id),
        };
        let texts: Vec<&str> = logged
            .statements
            .iter()
            .map(|one| one.text.trim().trim_end_matches(';'))
            .collect();
        self.writer.work(
            activity,
            session.server_pid,
            &what,
            &texts.join("; "),
            began,
        );
        self.receive(activity, session, (began, end));
        self.use_tables(activity, logged, session, commit, catalog, (began, end));
        let sure = certainty != CommitCertainty::Possible;
        if let Some(commit) = commit {
            self.use_triggers(activity, session, commit, catalog, began);
            self.change_rows(activity, commit, sure, catalog);
        }
        self.reply(activity, session, (began, end));
        let fact = transaction_fact(logged, session, commit, certainty);
        self.writer.fact(activity, TRANSACTION, &fact, end);
        self.writer.gone(activity, end);
    }

    /// Records a commit that belongs to none or one of several transactions of the log.
    pub(crate) fn record_alone(
        &mut self,
        commit: &Commit<'_>,
        candidates: &mut [(&LoggedTransaction, ClientSession)],
        catalog: &Catalog,
    ) {
        self.next += 1;
        let (activity, time) = (self.next, commit.transaction.time);
        let what = format!("transaction {}", commit.transaction.id);
        let mut virtual_ids = Vec::new();
        let mut uses = Vec::new();
        for (logged, session) in candidates {
            self.begin_session(session);
            virtual_ids.push(logged.virtual_id.clone());
            let connection = self.connection(session).into_iter();
            uses.extend(connection.map(|name| (name, session.number)));
            for statement in &logged.statements {
                let tables = self.read_tables(statement.tables.as_ref().ok(), session, catalog);
                uses.extend(tables.into_keys().map(|name| (name, 0)));
            }
        }
        self.writer.work(activity, 0, &what, "", time);
        for (name, number) in uses {
            self.writer
                .used(activity, (&name, number), ResourceUse::Read, false, time);
        }
        self.change_rows(activity, commit, true, catalog);
        let fact = json!({
            "number": commit.transaction.id, "position": position(commit.transaction.position),
            "possibly": virtual_ids,
        });
        self.writer.fact(activity, TRANSACTION, &fact, time);
        self.writer.gone(activity, time);
    }

    /// The tables that a statement reads, by name, and whether it certainly does. The rows that an
    /// update reads are recorded with the row.
    fn read_tables(
        &self,
        tables: Option<&StatementTables>,
        session: &ClientSession,
        catalog: &Catalog,
    ) -> BTreeMap<String, bool> {
        let Some(tables) = tables else {
            return BTreeMap::new();
        };
        let mut reads = catalog.routines.reads_of_calls(&tables.functions);
        reads.extend(tables.scanned.iter().map(|name| (name.clone(), true)));
        self.resolved(reads, session, catalog)
    }

    /// The names in the run of the tables behind names in statements.
    fn resolved(
        &self,
        reads: RoutineReads,
        session: &ClientSession,
        catalog: &Catalog,
    ) -> BTreeMap<String, bool> {
        let mut names = BTreeMap::new();
        for (name, sure) in reads {
            let Some(table) = catalog.resolve(&name, &session.user) else {
                continue;
            };
            // A function in a view reads, too, but its name is not in the catalog's rules.
            let behind = catalog.behind(&table).into_iter();
            for table in behind.filter(|table| !is_system(table)) {
                *names.entry(self.table_name(&table)).or_default() |= sure;
            }
        }
        names
    }

    /// Records the tables and files that the statements name.
    fn use_tables(
        &mut self,
        activity: u32,
        logged: &LoggedTransaction,
        session: &ClientSession,
        commit: Option<&Commit<'_>>,
        catalog: &Catalog,
        (began, end): (i64, i64),
    ) {
        let changed = commit.map(Commit::changed).unwrap_or_default();
        let undone = commit.is_none() && logged.is_rolled_back();
        for statement in &logged.statements {
            let Ok(tables) = &statement.tables else {
                continue;
            };
            // The client may have the rows before the end of the millisecond.
            let first = statement.time.clamp(began, end);
            let last = (statement.time + MILLISECOND).clamp(began, end);
            for (name, sure) in self.read_tables(Some(tables), session, catalog) {
                for read in [first, last] {
                    self.writer
                        .used(activity, (&name, 0), ResourceUse::Read, sure, read);
                }
            }
            let failed = statement.error.is_some();
            for name in tables.writes.iter().filter(|_| !failed && !undone) {
                let Some(table) = catalog.resolve(name, &session.user) else {
                    continue;
                };
                if tables.created.contains(name) {
                    let name = self.table_name(&table);
                    self.writer
                        .used(activity, (&name, 0), ResourceUse::Write, true, first);
                    continue;
                }
                // The commit has the changed rows. A change that it lacks may have had no effect,
                // or the rows of the table are not streamed.
                if !changed.contains(&table) {
                    let name = self.table_name(&table);
                    let sure = tables.defines;
                    self.writer
                        .used(activity, (&name, 0), ResourceUse::Change, sure, end);
                }
            }
            if let Some(file) = tables.file.as_ref().filter(|_| !failed) {
                let ident = ident_of(&file.path);
                // A file that was changed since is not the one that the statement used.
                let ident = ident.filter(|ident| {
                    !file.written || (statement.time..=end + 1_000_000_000).contains(&ident.mtime)
                });
                let time = if file.written { end } else { statement.time };
                self.writer
                    .file(activity, &file.path, file.written, ident.as_ref(), time);
            }
        }
    }

    /// Records the tables that the triggers of the changed tables possibly read.
    fn use_triggers(
        &mut self,
        activity: u32,
        session: &ClientSession,
        commit: &Commit<'_>,
        catalog: &Catalog,
        began: i64,
    ) {
        for table in commit.changed() {
            let reads = catalog.routines.reads_of_triggers(&table);
            for name in self.resolved(reads, session, catalog).keys() {
                for time in [began, commit.transaction.time] {
                    self.writer
                        .used(activity, (name, 0), ResourceUse::Read, false, time);
                }
            }
        }
    }

    /// Records the rows that a commit changed, and their tables.
    fn change_rows(&mut self, activity: u32, commit: &Commit<'_>, sure: bool, catalog: &Catalog) {
        let time = commit.transaction.time;
        let mut changed = BTreeSet::new();
        for change in &commit.transaction.changes {
            let Some(table) = commit.tables.get(&change.table) else {
                continue;
            };
            let name = (table.schema.clone(), table.name.clone());
            self.change_row(activity, &name, table, change, (sure, time), catalog);
            let whole = change.operation == RowOperation::Truncate;
            if changed.insert(name.clone()) || whole {
                let how = if whole {
                    ResourceUse::Write
                } else {
                    ResourceUse::Change
                };
                let name = self.table_name(&name);
                self.writer.used(activity, (&name, 0), how, sure, time);
            }
        }
    }

    fn change_row(
        &mut self,
        activity: u32,
        name: &TableName,
        table: &StreamTable,
        change: &RowChange,
        (sure, time): (bool, i64),
        catalog: &Catalog,
    ) {
        let key = key_of(catalog, name, table);
        let former = change
            .before
            .as_ref()
            .and_then(|image| self.row_name(name, &key, image));
        let latter = change
            .after
            .as_ref()
            .and_then(|image| self.row_name(name, &key, image));
        let former = match change.operation {
            RowOperation::Update => former.or_else(|| latter.clone()),
            _ => former,
        };
        if let Some(row) = &former {
            let moved = latter.as_ref() != Some(row);
            if change.operation == RowOperation::Update {
                self.writer
                    .used(activity, (row, 0), ResourceUse::Read, sure, time);
            }
            if moved {
                self.writer
                    .used(activity, (row, 0), ResourceUse::Delete, sure, time);
            }
        }
        if let Some(row) = &latter {
            self.writer
                .used(activity, (row, 0), ResourceUse::Write, sure, time);
        }
        let moved = former.clone().filter(|_| latter != former);
        let moved = moved.filter(|_| latter.is_some());
        let Some(row) = latter.or(former) else { return };
        let fact = row_fact(&row, moved.as_deref(), table, change);
        self.writer.fact(activity, ROW, &fact, time);
    }
}

fn is_system((schema, _): &TableName) -> bool {
    ["pg_catalog", "information_schema"].contains(&&**schema)
}

/// The key of a table: its primary key, else its replica identity.
fn key_of(catalog: &Catalog, name: &TableName, table: &StreamTable) -> Vec<String> {
    let key = catalog
        .table(name)
        .map(|table| table.key.clone())
        .unwrap_or_default();
    let identity = || {
        let keys = table.columns.iter().filter(|(_, key)| *key);
        keys.map(|(name, _)| name.clone()).collect()
    };
    match (key.is_empty(), table.identity) {
        (false, _) => key,
        (true, b'f' | b'n') => Vec::new(),
        (true, _) => identity(),
    }
}

/// From the first statement to the commit, or to the end that the log shows. It begins after the
/// session's transaction before it.
fn span(logged: &LoggedTransaction, commit: Option<&Commit<'_>>, before: i64) -> (i64, i64) {
    let last = logged
        .statements
        .last()
        .map_or(logged.began, |one| one.time);
    let ended = logged.ended.map_or(last, |(time, _)| time) + MILLISECOND;
    let end = commit.map_or(ended, |commit| commit.transaction.time);
    let began = logged.began.max(before);
    (began.min(end), end.max(began))
}

/// The file as it is now.
fn ident_of(path: &str) -> Option<backstory_files::Ident> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let found = statx(CWD, path, AtFlags::empty(), wanted).ok()?;
    Some(backstory_files::Ident::from(&found))
}
