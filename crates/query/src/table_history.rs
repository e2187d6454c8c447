//! The transactions that changed, or read, a table of a watched database, with the columns that
//! their statements used.
//!
//! In: the versions of the table, and perhaps a column. Out: transactions, the newest first.
//!
//! The source recorded the columns as facts: lists of names `SCHEMA.TABLE.COLUMN`. `*` stands for
//! any column of a table.

use std::collections::{BTreeMap, BTreeSet};

use backstory_eventlog::event::Time;
use backstory_graph::model::{Activity, ActivityId, Certainty};
use backstory_ordering::SmallSort;
use backstory_store::{ActivityKey, EntityKey, RunKey, Store};
use serde_json::Value;

use crate::Result;
use crate::resources::qualified_table;
use crate::row_history::clients_of;
use crate::session_clients::{ROW, SessionClients};

/// A question about the transactions of a table.
#[derive(Debug, Clone, Copy)]
pub struct TableQuestion<'q> {
    /// Only those that used this column.
    pub column: Option<&'q str>,
    /// Those that read, and not those that wrote.
    pub reads: bool,
    /// The number of transactions in the answer, the newest first.
    pub most: usize,
}

/// The transactions of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableHistory {
    /// The table, `SCHEMA.TABLE`.
    pub table: String,
    /// The newest transactions.
    pub events: Vec<TableEvent>,
    /// The number of all.
    pub all: usize,
    /// The number of other transactions that possibly used the column: they have names that the
    /// catalog did not explain.
    pub unresolved: usize,
}

/// A transaction that used a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableEvent {
    /// The id of the run.
    pub run: String,
    /// When it ended.
    pub time: Time,
    /// Whether it certainly did.
    pub certainty: Certainty,
    /// The facts about the transaction: `number`, `user`, `application`, `statements`.
    pub transaction: Value,
    /// The statements that used the table, or the column, by their place in `statements`.
    pub statements: Vec<usize>,
    /// The processes that are or can be the client, as the source knows them.
    pub clients: Vec<(Activity, Certainty)>,
}

/// The transactions of a table. `None` if no source recorded which columns they used.
///
/// # Errors
///
/// The store fails.
pub fn table_history(
    store: &dyn Store,
    versions: &[EntityKey],
    question: TableQuestion<'_>,
) -> Result<Option<TableHistory>> {
    let Some(first) = versions.first() else {
        return Ok(None);
    };
    let Some(table) = qualified_table(&store.entity(*first)?.path) else {
        return Ok(None);
    };
    // Those that used the table otherwise have no versions here. Some may know columns, too.
    let mut used: BTreeMap<RunKey, BTreeMap<ActivityId, BTreeSet<EntityKey>>> = BTreeMap::new();
    for key in versions {
        for (activity, generated) in store.touching(*key)? {
            let of_run = used.entry(key.run()).or_default();
            let meant = of_run.entry(activity).or_default();
            // An update reads rows of a table that it changes.
            if generated || question.reads {
                meant.insert(*key);
            }
        }
    }
    let mut newest = Newest::of(question.most);
    let mut knows_columns = false;
    let mut unresolved = 0;
    for (run, activities) in &used {
        for (activity, time, kind, payload) in store.extended(*run)? {
            let is_meant = match activities.get(&activity) {
                Some(versions) if !kind.ends_with(ROW) => !versions.is_empty(),
                _ => continue,
            };
            if !is_meant && knows_columns {
                continue;
            }
            let Ok(fact) = serde_json::from_slice::<Value>(&payload) else {
                continue;
            };
            knows_columns |= has_columns(&fact);
            if !is_meant {
                continue;
            }
            match uses(&fact, &table, question) {
                Some((statements, certainty)) => newest.add(FoundTransaction {
                    time,
                    key: ActivityKey::new(*run, activity),
                    fact,
                    statements,
                    certainty,
                }),
                None => unresolved += usize::from(may_use(&fact, question)),
            }
        }
    }
    if !knows_columns {
        return Ok(None);
    }
    let recorded = SessionClients::new(store);
    let all = newest.all;
    let mut events = Vec::new();
    for found in newest.into_sorted() {
        let key = found.key;
        let keys = used.get(&key.run()).and_then(|all| all.get(&key.local()));
        let edges = store.stream(key)?.edges.into_iter();
        let edges = edges.filter(|edge| {
            let is_of =
                |keys: &BTreeSet<EntityKey>| keys.contains(&EntityKey::new(key.run(), edge.entity));
            keys.is_some_and(is_of) && (question.reads || !edge.relation.is_use())
        });
        let known = edges.map(|edge| edge.certainty).max();
        events.push(TableEvent {
            run: store.run_id(key.run())?.unwrap_or_default(),
            time: found.time,
            certainty: found.certainty.min(known.unwrap_or(Certainty::Possible)),
            transaction: found.fact,
            statements: found.statements,
            clients: clients_of(store, key, &recorded)?,
        });
    }
    Ok(Some(TableHistory {
        table,
        events,
        all,
        unresolved,
    }))
}

/// A transaction that used the table.
struct FoundTransaction {
    time: Time,
    key: ActivityKey,
    fact: Value,
    statements: Vec<usize>,
    certainty: Certainty,
}

/// The newest transactions, and the number of all. Of the older ones, it holds no more at a time
/// than of the newest.
struct Newest {
    most: usize,
    all: usize,
    held: Vec<FoundTransaction>,
}

impl Newest {
    fn of(most: usize) -> Newest {
        Newest {
            most,
            all: 0,
            held: Vec::new(),
        }
    }

    fn add(&mut self, one: FoundTransaction) {
        self.all += 1;
        self.held.push(one);
        if self.held.len() > self.most.saturating_mul(2) {
            self.drop_older();
        }
    }

    fn drop_older(&mut self) {
        self.held
            .sort_small_by_key(|one| std::cmp::Reverse(one.time));
        self.held.truncate(self.most);
    }

    /// The newest transactions, the newest first.
    fn into_sorted(mut self) -> Vec<FoundTransaction> {
        self.drop_older();
        self.held
    }
}

/// True if a name that the catalog did not explain may be the column in question.
fn may_use(transaction: &Value, question: TableQuestion<'_>) -> bool {
    let Some(wanted) = question.column else {
        return false;
    };
    let statements = transaction["statements"].as_array();
    let parts = statements.into_iter().flatten();
    let mut parts = parts.chain([transaction]).map(|one| &one["columns"]);
    let may_be = |name: &str| {
        let last = name.rsplit('.').next().unwrap_or(name);
        last == "*" || last.eq_ignore_ascii_case(wanted)
    };
    parts.any(|columns| {
        let names = columns["unresolved"].as_array().into_iter().flatten();
        names.filter_map(Value::as_str).any(may_be)
    })
}

fn has_columns(transaction: &Value) -> bool {
    let statements = transaction["statements"].as_array();
    let mut statements = statements.into_iter().flatten();
    statements.any(|one| one["columns"].is_object())
}

/// The statements of a transaction that used the table or the column. `None` if it is not known to
/// have used the column.
fn uses(
    transaction: &Value,
    table: &str,
    question: TableQuestion<'_>,
) -> Option<(Vec<usize>, Certainty)> {
    let of = |columns: &Value| certainty_in(columns, table, question);
    let statements = transaction["statements"].as_array();
    let statements = statements.into_iter().flatten().enumerate();
    let using: Vec<(usize, Certainty)> = statements
        .filter_map(|(at, one)| Some((at, of(&one["columns"])?)))
        .collect();
    // Of a long transaction, not all statements are listed.
    let whole = of(&transaction["columns"]);
    let certainty = using.iter().map(|(_, certainty)| *certainty).max();
    let certainty = certainty.max(whole);
    let at: Vec<usize> = using.into_iter().map(|(at, _)| at).collect();
    match question.column {
        Some(_) => Some((at, certainty?)),
        None => Some((at, Certainty::Seen)),
    }
}

/// Whether columns have one of the table, or the column in question.
fn certainty_in(columns: &Value, table: &str, question: TableQuestion<'_>) -> Option<Certainty> {
    let has = |list: &str| {
        let names = columns[list].as_array().into_iter().flatten();
        names.filter_map(Value::as_str).any(|name| {
            let column = name
                .strip_prefix(table)
                .and_then(|rest| rest.strip_prefix('.'));
            match (column, question.column) {
                (Some(column), Some(wanted)) => column == wanted || column == "*",
                (column, None) => column.is_some(),
                (None, Some(_)) => false,
            }
        })
    };
    let (certain, possible) = match question.reads {
        true => ("read", "possibly_read"),
        false => ("written", "possibly_written"),
    };
    if has(certain) {
        return Some(Certainty::Seen);
    }
    has(possible).then_some(Certainty::Possible)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn question(column: Option<&str>, reads: bool) -> TableQuestion<'_> {
        TableQuestion {
            column,
            reads,
            most: 1,
        }
    }

    #[test]
    fn a_statement_uses_a_column_that_it_names_and_possibly_one_of_any() {
        let transaction = json!({"statements": [
            {"columns": {"read": ["public.a.id"], "written": ["public.a.x"]}},
            {"columns": {"read": ["public.ab.y"], "possibly_written": ["public.a.*"]}},
        ]});
        let of = |column: &str, reads: bool| {
            uses(&transaction, "public.a", question(Some(column), reads))
        };
        assert_eq!(of("x", false), Some((vec![0, 1], Certainty::Seen)));
        assert_eq!(of("y", false), Some((vec![1], Certainty::Possible)));
        assert_eq!(of("id", true), Some((vec![0], Certainty::Seen)));
        assert_eq!(of("y", true), None);
        let any = uses(&transaction, "public.a", question(None, true));
        assert_eq!(any, Some((vec![0], Certainty::Seen)));
    }

    #[test]
    fn a_name_that_the_catalog_did_not_explain_may_be_the_column() {
        let of = |names: Value, column: &str| {
            let transaction = json!({"statements": [{"columns": {"unresolved": names}}]});
            may_use(&transaction, question(Some(column), true))
        };
        assert!(of(json!(["q.X"]), "x") && of(json!(["y", "q.*"]), "x"));
        assert!(!of(json!(["x.y"]), "x") && !of(json!([]), "x"));
    }

    #[test]
    fn the_newest_transactions_are_held_and_the_others_counted() {
        let mut newest = Newest::of(2);
        for time in [3, 9, 1, 7, 8, 2, 4] {
            newest.add(FoundTransaction {
                time,
                key: ActivityKey::new(RunKey(0), ActivityId(0)),
                fact: Value::Null,
                statements: Vec::new(),
                certainty: Certainty::Seen,
            });
            assert!(newest.held.len() <= 4);
        }
        assert_eq!(newest.all, 7);
        let times: Vec<Time> = newest.into_sorted().iter().map(|one| one.time).collect();
        assert_eq!(times, [9, 8]);
    }

    #[test]
    fn a_column_of_a_statement_that_is_not_listed_is_known_from_the_transaction() {
        let transaction = json!({"statements": [{"columns": {}}],
            "columns": {"written": ["public.a.x"]}});
        let found = uses(&transaction, "public.a", question(Some("x"), false));
        assert_eq!(found, Some((vec![], Certainty::Seen)));
    }
}
