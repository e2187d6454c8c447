//! Since when tables have the columns that the catalog shows.
//!
//! In: looks at the catalog, and the statements that change definitions. Out: whether a table
//! certainly had its present columns when a statement ran.
//!
//! A definition changes between the begin of its statement and the end of its transaction. A look
//! covers it if it comes after this end, or shows a change of the table.
//!
//! Invariant: a table is settled for a statement if each definition that began before the statement
//! is covered, and no change was found later. Statements before a look that found a change are
//! settled in two cases only. All lines of the log until that look must be known then:
//!
//! - The table is new, and nothing altered one.
//! - One definition alone can have made the change, and the statement follows it in its session.

use std::collections::{BTreeSet, HashMap, VecDeque};

use crate::hidden_work::HiddenWork;
use crate::statement_tables::StatementTables;

/// Schema and name of a table or view.
type TableName = (String, String);

/// Most statements that changed definitions.
const SEEN: usize = 256;

/// Statements wait no longer than this to be recorded, in ns. A definition without a known end
/// counts as ended after it.
const WAIT: i64 = 60_000_000_000;

/// Words of statements that change definitions.
const WORDS: [&str; 4] = ["alter", "create", "drop", "rename"];

/// The definitions that a statement changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedDefinitions {
    /// It makes tables and alters none.
    pub only_creates: bool,
    /// The tables and views, without their schemas. `None`: any. Empty for other objects, as
    /// functions and triggers.
    pub names: Option<BTreeSet<String>>,
}

impl ChangedDefinitions {
    /// The definitions that a statement changes, or may change if it does not parse.
    pub fn of(text: &str, tables: Result<&StatementTables, &String>) -> Option<ChangedDefinitions> {
        match tables {
            Ok(tables) if tables.defines => {
                let last = |name: &Vec<String>| name.last().cloned();
                Some(ChangedDefinitions {
                    only_creates: !tables.alters,
                    names: Some(tables.defined.iter().filter_map(last).collect()),
                })
            }
            Ok(tables) => {
                let may_define = tables.hidden == HiddenWork::Unknown && has_words(text);
                may_define.then(|| ChangedDefinitions {
                    only_creates: true,
                    names: Some(BTreeSet::new()),
                })
            }
            Err(_) => has_words(text).then_some(ChangedDefinitions {
                only_creates: false,
                names: None,
            }),
        }
    }

    /// True if columns of a table or view may have changed.
    fn has_columns(&self) -> bool {
        self.names.as_ref().is_none_or(|names| !names.is_empty())
    }
}

/// True if a text has words of definitions.
fn has_words(text: &str) -> bool {
    let text = text.to_lowercase();
    let is_within = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut words = text.split(|letter| !is_within(letter));
    words.any(|word| WORDS.contains(&word))
}

/// A statement that changed definitions, or may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenDefinition {
    /// When it began, in ns since 1970.
    pub began: i64,
    /// When its transaction had certainly ended, in ns since 1970. `None`: it goes on.
    pub ended: Option<i64>,
    /// Its session, by its key in the table of sessions.
    pub session: String,
    /// Its transaction, by its key in the table of sessions.
    pub transaction: u64,
    /// Its place in the log.
    pub place: u64,
    /// The definitions that it changed.
    pub changed: ChangedDefinitions,
}

impl SeenDefinition {
    fn names(&self, table: &TableName) -> bool {
        let names = self.changed.names.as_ref();
        names.is_none_or(|names| names.contains(&table.1))
    }

    fn is_covered(&self, read: i64) -> bool {
        self.ended.is_some_and(|ended| ended < read)
    }
}

/// When and where a statement ran.
#[derive(Debug, Clone, Copy)]
pub struct StatementMoment<'m> {
    /// When it began, in ns since 1970.
    pub time: i64,
    /// Its session.
    pub session: &'m str,
    /// Its place in the log. In one session, it tells the order of statements of one time.
    pub place: u64,
    /// No catalog is certainly the one that it saw. It alters definitions itself, or its
    /// transaction did and was undone.
    pub is_between: bool,
}

/// Two looks at the catalog between which a table changed.
#[derive(Debug, Clone, Copy)]
struct TableChange {
    /// ns since 1970.
    between: (i64, i64),
    is_new: bool,
}

/// Since when tables have their columns.
#[derive(Debug)]
pub struct Definitions {
    changes: HashMap<TableName, TableChange>,
    seen: VecDeque<SeenDefinition>,
    /// Definitions until this time may be missing in `seen`.
    forgotten: i64,
    /// Before the catalog was read last, in ns since 1970.
    read: i64,
    /// When a change was found last, in ns since 1970.
    changed: i64,
    /// All lines of the log until this time were read, in ns since 1970.
    known_until: i64,
}

impl Default for Definitions {
    fn default() -> Definitions {
        Definitions {
            changes: HashMap::new(),
            seen: VecDeque::new(),
            forgotten: i64::MIN,
            read: i64::MIN,
            changed: i64::MIN,
            known_until: i64::MIN,
        }
    }
}

impl Definitions {
    /// Notes when the catalog was read for the first time, in ns since 1970.
    pub fn begin(&mut self, read: i64) {
        self.read = read;
    }

    /// Adds a statement that changed definitions, or may have.
    pub fn add(&mut self, definition: SeenDefinition) {
        self.seen.push_back(definition);
        if self.seen.len() > SEEN
            && let Some(oldest) = self.seen.pop_front()
        {
            let end = oldest.ended.unwrap_or(oldest.began);
            self.forgotten = self.forgotten.max(end);
        }
    }

    /// Notes the end of a transaction that changed definitions, in ns since 1970.
    pub fn end(&mut self, transaction: u64, time: i64) {
        let mut seen = self.seen.iter_mut();
        let of = |one: &&mut SeenDefinition| one.transaction == transaction && one.ended.is_none();
        seen.by_ref()
            .filter(of)
            .for_each(|one| one.ended = Some(time));
    }

    /// Notes that all lines of the log until a time were read, in ns since 1970.
    pub fn know_log_until(&mut self, time: i64) {
        self.known_until = self.known_until.max(time);
    }

    /// True if it will be better known soon what a transaction used that began and ended at these
    /// times, in ns since 1970.
    pub fn will_be_settled(&self, (began, ended): (i64, i64)) -> bool {
        let is_old = ended < self.changed.saturating_sub(WAIT);
        began < self.changed && self.known_until < self.changed && !is_old
    }

    /// True if columns may have changed since they were read, and the end of that is known.
    pub fn is_outdated(&self) -> bool {
        let is_newer = |one: &SeenDefinition| {
            one.changed.has_columns() && one.ended.is_some_and(|ended| ended >= self.read)
        };
        self.seen.iter().any(is_newer)
    }

    /// Notes the tables that changed until another look, and whether each is new. The catalog was
    /// read between two times, in ns since 1970.
    pub(crate) fn read_again(
        &mut self,
        changed: Vec<(TableName, bool)>,
        (began, read): (i64, i64),
    ) {
        // A temporary table is seen by its session alone.
        let lasts = |name: &TableName| !name.0.starts_with("pg_temp_");
        if changed.iter().any(|(name, _)| lasts(name)) {
            self.changed = read;
        }
        let between = (self.read, read);
        for (name, is_new) in changed {
            let made = |one: &&mut SeenDefinition| {
                let names = one.changed.names.as_ref();
                one.ended.is_none() && names.is_some_and(|names| names.contains(&name.1))
            };
            for one in self.seen.iter_mut().filter(made) {
                one.ended = Some(began - 1);
            }
            self.changes.insert(name, TableChange { between, is_new });
        }
        self.read = began;
        // Statements of that time are recorded.
        let old = began.saturating_sub(WAIT);
        let forgotten = &mut self.forgotten;
        self.seen.retain(|one| {
            let is_old = one.ended.is_some_and(|ended| ended < old);
            if let Some(ended) = one.ended.filter(|_| is_old) {
                *forgotten = (*forgotten).max(ended);
            }
            !is_old
        });
    }

    /// Forgets tables that are gone.
    pub(crate) fn keep(&mut self, is_there: impl Fn(&TableName) -> bool) {
        self.changes.retain(|name, _| is_there(name));
    }

    /// From when on the table certainly has its columns, for all sessions, in ns since 1970.
    pub(crate) fn since(&self, name: &TableName) -> i64 {
        let change = self.changes.get(name);
        change.map_or(i64::MIN, |change| change.between.1)
    }

    /// True if each definition of columns is covered.
    pub fn is_covered(&self) -> bool {
        let mut columns = self.seen.iter().filter(|one| one.changed.has_columns());
        columns.all(|one| one.is_covered(self.read))
    }

    /// True if no definition changed between a transaction and a catalog, so that the catalog has
    /// its functions and triggers. Times are in ns since 1970: of the begin and the commit of the
    /// transaction, and before and after the catalog was read.
    pub(crate) fn is_steady(&self, (began, committed): (i64, i64), read: (i64, i64)) -> bool {
        let from = began.min(read.0);
        let to = committed.max(read.1);
        let matters = |one: &SeenDefinition| {
            let ended = one.ended.unwrap_or(one.began.saturating_add(WAIT));
            one.began <= to && ended >= from
        };
        self.forgotten < from && !self.seen.iter().any(matters)
    }

    /// True if a table certainly had its present columns when a statement ran.
    pub(crate) fn is_settled(&self, name: &TableName, moment: StatementMoment<'_>) -> bool {
        let open = |one: &SeenDefinition| {
            one.names(name) && one.began <= moment.time && !one.is_covered(self.read)
        };
        if moment.is_between || self.seen.iter().any(open) {
            return false;
        }
        let Some(change) = self.changes.get(name) else {
            return true;
        };
        let (from, to) = change.between;
        if moment.time >= to {
            return true;
        }
        if self.known_until < to || self.forgotten > from {
            return false;
        }
        let is_between = |one: &&SeenDefinition| {
            one.began <= to && one.ended.is_none_or(|ended| ended > from) && one.names(name)
        };
        let mut between = self.seen.iter().filter(is_between);
        if change.is_new {
            return between.all(|one| one.changed.only_creates);
        }
        let is_before = |one: &SeenDefinition| {
            one.session == moment.session && one.place < moment.place && one.began <= moment.time
        };
        between.next().is_some_and(is_before) && between.next().is_none()
    }
}

#[cfg(test)]
mod tests;
