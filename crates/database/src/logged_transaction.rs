//! Sessions and transactions, as the server's log tells of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::catalog::Catalog;
use crate::client_process::SessionClient;
use crate::commit::TransactionNumber;
use crate::first_words::words;
use crate::sql_dialect::{SqlDialect, WrittenName};
use crate::statement_tables::StatementTables;

/// Interval between two looks at the processes that have a client's socket, while statements
/// arrive.
pub const SHARERS: Duration = Duration::from_millis(250);

/// A statement that was executed.
#[derive(Debug, Clone)]
pub struct ExecutedStatement {
    /// When it began, in ns since 1970.
    pub time: i64,
    /// The earliest time at which it can have begun, in ns since 1970. The client may have its
    /// results before the line of the log is read.
    pub since: i64,
    /// The latest time at which it read, in ns since 1970.
    pub until: i64,
    /// Its place in the log, among the statements of all sessions.
    pub place: u64,
    /// Times are rounded, so it certainly read at `until`, too.
    pub is_rounded: bool,
    /// Its text, without secrets.
    pub text: String,
    /// The values of its parameters.
    pub parameters: Option<String>,
    /// The schemas in which names without a schema are looked for, in this order.
    pub path: Vec<String>,
    /// The tables, or the parser's message.
    pub tables: Result<Arc<StatementTables>, String>,
    /// The tables that the server opened for it to read, if the log tells.
    pub opened: Option<Vec<WrittenName>>,
    /// The tables that the server opened for it to change, if the log tells.
    pub opened_to_write: Vec<WrittenName>,
    /// The server's message, if it failed.
    pub error: Option<String>,
}

impl ExecutedStatement {
    /// A statement of which no more is known than its text. Its time is 0.
    pub fn new(
        text: String,
        tables: Result<impl Into<Arc<StatementTables>>, String>,
        path: Vec<String>,
    ) -> ExecutedStatement {
        ExecutedStatement {
            time: 0,
            since: 0,
            until: 0,
            place: 0,
            is_rounded: false,
            text,
            parameters: None,
            path,
            tables: tables.map(Into::into),
            opened: None,
            opened_to_write: Vec::new(),
            error: None,
        }
    }
}

/// A transaction, as the log tells of it.
#[derive(Debug)]
pub struct LoggedTransaction {
    /// The session, by its key in the table of sessions.
    pub session: String,
    /// The name that it has from its start.
    pub virtual_id: String,
    /// The number that it has from its first change, if the log tells it.
    pub id: Option<TransactionNumber>,
    /// When it began, in ns since 1970.
    pub began: i64,
    /// When it ended, and when that became known here.
    pub ended: Option<(i64, Instant)>,
    /// The statements, in order.
    pub statements: Vec<ExecutedStatement>,
    /// Their SQL.
    pub dialect: SqlDialect,
    /// When its last statement was read here.
    pub read: Instant,
    /// An error undoes all statements, and not the failed one alone.
    pub error_undoes_all: bool,
    /// The server undid it, because of a deadlock or the end of the connection.
    pub undone: bool,
}

impl LoggedTransaction {
    /// When it began and ended, in ns since 1970. `i64::MAX`: it has not ended.
    pub fn times(&self) -> (i64, i64) {
        (self.began, self.ended.map_or(i64::MAX, |(time, _)| time))
    }

    /// A transaction of a session, without statements.
    pub fn begin(
        session: String,
        virtual_id: String,
        began: i64,
        dialect: SqlDialect,
    ) -> LoggedTransaction {
        LoggedTransaction {
            session,
            virtual_id,
            id: None,
            began,
            ended: None,
            statements: Vec::new(),
            dialect,
            read: Instant::now(),
            error_undoes_all: false,
            undone: false,
        }
    }

    /// When the server certainly had its last statement, in ns since 1970.
    pub fn arrived(&self) -> i64 {
        let last = self.statements.iter().map(|one| one.until).max();
        last.unwrap_or(self.began)
    }

    /// Adds a statement that was read at this moment.
    pub fn add(&mut self, statement: ExecutedStatement, read: Instant) {
        self.statements.push(statement);
        self.read = read;
    }

    /// True if it was undone as a whole. Where an error undoes all, a transaction cannot commit
    /// after it unless it goes back to a savepoint.
    pub fn is_rolled_back(&self) -> bool {
        // This is asked often, so it makes no copy of a text.
        let undoes = |statement: &ExecutedStatement| {
            let mut words = words(&statement.text, self.dialect);
            let is_undo = is_one_of(words.next()?, &["rollback", "abort"]);
            is_undo.then(|| words.any(|word| is_one_of(word, &["to"])))
        };
        let goes_back = self.statements.iter().any(|one| undoes(one) == Some(true));
        let last = self.statements.last().and_then(undoes);
        let failed = self.statements.iter().any(|one| one.error.is_some());
        self.undone || last == Some(false) || self.error_undoes_all && failed && !goes_back
    }

    /// True if the log shows that it committed. One that is still open at the end of the watch may
    /// be undone, and another server may decide about a prepared one.
    pub fn has_committed(&self) -> bool {
        let has = |wanted: &[&str]| self.first_words().any(|word| is_one_of(word, wanted));
        let is_over = self.ended.is_some() || has(&["commit", "end"]);
        is_over && !self.is_rolled_back() && !has(&["rollback", "abort", "prepare", "xa"])
    }

    /// True if it began with `BEGIN` and has no end. The server undoes it with its session.
    pub fn is_left_open(&self) -> bool {
        let begins = ["begin", "start"];
        let ends = ["commit", "end", "rollback", "abort", "prepare"];
        let first = self.first_words().next();
        first.is_some_and(|word| is_one_of(word, &begins))
            && !self.first_words().any(|word| is_one_of(word, &ends))
    }

    /// The first words of all statements, also of several that are sent as one text.
    fn first_words(&self) -> impl Iterator<Item = &str> {
        let parts = self.statements.iter().flat_map(|one| one.text.split(';'));
        parts.filter_map(move |part| words(part, self.dialect).next())
    }

    /// True if it may have changed rows. A function may change some, unless the catalog knows that
    /// it does not.
    pub fn may_write(&self, catalog: &Catalog) -> bool {
        if self.is_rolled_back() {
            return false;
        }
        self.statements
            .iter()
            .any(|statement| match &statement.tables {
                Ok(tables) => {
                    let calls = || catalog.routines.tables_of_calls(&tables.functions);
                    !tables.writes.is_empty() || tables.defines || calls().may_write()
                }
                Err(_) => true,
            })
    }
}

/// True if a word of a statement is one of these, in any case.
fn is_one_of(word: &str, wanted: &[&str]) -> bool {
    wanted.iter().any(|one| one.eq_ignore_ascii_case(word))
}

/// A connection of a client.
#[derive(Debug, Clone, Default)]
pub struct ClientSession {
    /// Counts the sessions of the run, from 1.
    pub number: i32,
    /// The number of its activity. 0: none yet.
    pub activity: u32,
    /// The user of the database.
    pub user: String,
    /// The database.
    pub database: String,
    /// The name that the client gives itself.
    pub application: String,
    /// The client's address.
    pub host: String,
    /// The client's TCP port. 0: a Unix socket. `None`: the server has not told which of both.
    pub port: Option<u16>,
    /// The client's process.
    pub client: SessionClient,
    /// When it was looked for last.
    pub looked: Option<Instant>,
    /// When it began, in ns since 1970.
    pub began: i64,
    /// It certainly existed at this time, in ns since 1970.
    pub seen: i64,
    /// When it ended, in ns since 1970.
    pub ended: Option<i64>,
    /// How often its client was looked for.
    pub looks: u8,
    /// The earliest time at which the last of its recorded transactions can have ended.
    pub last_end: i64,
    /// The place in the log at which that transaction began.
    pub last_place: u64,
    /// Its records have been begun.
    pub is_recorded: bool,
    /// The key of its open transaction.
    pub current: Option<u64>,
}

impl ClientSession {
    /// Looks whether other processes have inherited the client's socket, unless that was done after
    /// a statement had arrived or a moment ago. `arrived` is in ns since 1970. A client may end
    /// before its transactions are recorded.
    pub fn look_for_sharers(&mut self, arrived: i64) {
        let is_due = || self.looked.is_none_or(|looked| looked.elapsed() >= SHARERS);
        if self.client.certain().is_some() && !self.client.is_certain_at(arrived) && is_due() {
            self.look();
        }
    }

    /// Looks for them unless that was done after this moment. The transactions of a session are
    /// recorded some time after they were read, so one look is after many of them.
    pub fn look_for_sharers_after(&mut self, moment: Instant) {
        if self.looked.is_none_or(|looked| looked < moment) {
            self.look();
        }
    }

    fn look(&mut self) {
        self.looked = Some(Instant::now());
        self.client.look_for_sharers();
    }
}
