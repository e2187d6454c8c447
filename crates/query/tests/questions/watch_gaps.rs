//! The gaps of the watches of a database.

use backstory_eventlog::Reason;
use backstory_eventlog::run::{RunEnd, RunHeader};
use backstory_graph::model::*;
use backstory_query::watch_gaps_of;
use backstory_query::{
    TableGaps, WatchGap, gap_lines, gap_summary, row_history, table_versions, watch_gaps,
};
use backstory_store::Store;
use backstory_vocabulary::RowsMode;

use crate::graph::*;

const BANK: &str = "postgres://localhost:5432/bank";
const TABLE: &str = "postgres://localhost:5432/bank/public.accounts";
const ROW: &str = "postgres://localhost:5432/bank/public.accounts?id=42";
const SECOND: i64 = 1_000_000_000;

/// A transaction that changed the row, or nothing.
fn watch(changes: bool) -> Graph {
    let mut graph = Graph::default();
    let transaction = graph.activity(None, 7, "transaction", 0);
    for name in [TABLE, ROW].iter().filter(|_| changes) {
        let version = graph.entity(EntityKind::Resource, name, 1, None);
        graph.edge(transaction, version, Relation::Write, 0, SECOND);
    }
    let fact = format!(r#"{{"row":"{ROW}","operation":"update"}}"#).into_bytes();
    if changes {
        graph.extended.push((transaction, 0, "postgres.row", fact));
    }
    graph
}

fn header_of(id: &str, began: i64, database: Option<&str>) -> RunHeader {
    RunHeader {
        source: Some("postgres".to_owned()),
        database: database.map(str::to_owned),
        ..header(id, began * SECOND)
    }
}

fn ended(second: i64, what: &[&str]) -> RunEnd {
    let because = |what: &&str| {
        let what = (*what).to_owned();
        Reason::DatabaseGap { what }.to_string()
    };
    RunEnd {
        ended: second * SECOND,
        incomplete_because: what.iter().map(because).collect(),
        ..end()
    }
}

const LOST: &str = "row changes from 1970-01-01 00:00:12 UTC on are unknown, because of a limit";

fn runs(gaps: &[WatchGap]) -> Vec<&str> {
    gaps.iter().map(|gap| &*gap.run).collect()
}

#[test]
fn a_watch_of_the_database_that_lost_the_row_is_told() {
    every_store(|store| {
        let of = |began, database| header_of(&format!("r{began}"), began, database);
        watch(true).append_until(store, &of(0, Some(BANK)), &ended(5, &[]));
        // It lost all of the table.
        watch(false).append_until(store, &of(10, Some(BANK)), &ended(20, &[LOST]));
        watch(false).append_until(
            store,
            &of(30, Some("postgres://h:1/x")),
            &ended(40, &[LOST]),
        );
        watch(false).append_until(store, &of(50, None), &ended(60, &[LOST]));
        let asked = |asked| watch_gaps(store, "accounts", None, asked).unwrap();
        for asked in [asked(TableGaps::Changes), asked(TableGaps::Transactions)] {
            assert_eq!(runs(&asked), ["r10"]);
            assert_eq!(
                gap_summary(&asked),
                format!(
                    "run r10, from 1970-01-01 00:00:10 UTC to 1970-01-01 00:00:20 UTC, is not \
                     complete: the record of the database has a gap: {LOST}"
                )
            );
        }
        let error = table_versions(store, "accounts", Some("43"), None).unwrap_err();
        let words = "row 43 of table accounts is unknown: run r10, from";
        assert!(error.to_string().starts_with(words), "{error}");
        let first = store.run("r0").unwrap().unwrap().key;
        let of_first = watch_gaps(store, "accounts", Some(first), TableGaps::Changes);
        assert_eq!(of_first.unwrap(), []);
    });
}

#[test]
fn an_unknown_table_or_row_is_told_with_what_is_recorded() {
    every_store(|store| {
        let asked = |store: &dyn Store, table, key| {
            let error = table_versions(store, table, key, None).unwrap_err();
            error.to_string()
        };
        assert_eq!(
            asked(store, "acounts", None),
            "no recorded run has seen table acounts; `backstory watch` records a database"
        );
        let header = header_of("r1", 1, Some(BANK));
        watch(true).append_until(store, &header, &ended(5, &[]));
        for (key, unknown) in [
            (None, "table acounts"),
            (Some("42"), "row 42 of table acounts"),
        ] {
            assert_eq!(
                asked(store, "acounts", key),
                format!("no recorded run has seen {unknown}; recorded tables: {TABLE}")
            );
        }
        assert_eq!(
            asked(store, "accounts", Some("43")),
            "no recorded run has seen row 43 of table accounts: it has no recorded change with \
             this key; `backstory of --table accounts` shows what changed the table"
        );
    });
}

#[test]
fn a_name_without_quotes_means_the_folded_table_unless_one_is_named_as_it_is_written() {
    every_store(|store| {
        let found = |store: &dyn Store, name, key| {
            let versions = table_versions(store, name, key, None)?;
            Ok::<_, backstory_query::Error>(store.entity(versions[0])?.path)
        };
        let header = header_of("r1", 1, Some(BANK));
        watch(true).append_until(store, &header, &ended(5, &[]));
        for name in ["Accounts", "bank.accounts", "Bank.Public.Accounts"] {
            assert_eq!(found(store, name, None).unwrap(), bytes(TABLE), "{name}");
            assert_eq!(
                found(store, name, Some("42")).unwrap(),
                bytes(ROW),
                "{name}"
            );
        }
        let quoted = "postgres://localhost:5432/bank/public.Accounts";
        let mut graph = Graph::default();
        let transaction = graph.activity(None, 7, "transaction", 0);
        let version = graph.entity(EntityKind::Resource, quoted, 1, None);
        graph.edge(transaction, version, Relation::Write, 0, SECOND);
        let header = header_of("r2", 10, Some(BANK));
        graph.append_until(store, &header, &ended(15, &[]));
        assert_eq!(found(store, "Accounts", None).unwrap(), bytes(quoted));
        // This row is of the other table.
        assert!(found(store, "Accounts", Some("42")).is_err());
        assert_eq!(found(store, "ACCOUNTS", None).unwrap(), bytes(TABLE));
    });
}

#[test]
fn a_gap_of_one_table_is_told_for_this_table_alone() {
    every_store(|store| {
        let lost = |table: &str| {
            format!("updates of rows of public.{table} soon after it was created are unknown")
        };
        for (id, began, table) in [("r1", 1, "accounts"), ("r2", 10, "rates")] {
            let header = header_of(id, began, Some(BANK));
            watch(true).append_until(store, &header, &ended(began + 5, &[&lost(table)]));
        }
        let gaps = watch_gaps(store, "accounts", None, TableGaps::Changes);
        assert_eq!(runs(&gaps.unwrap()), ["r1"]);
        let gaps = watch_gaps(store, "accounts", None, TableGaps::Transactions);
        assert_eq!(runs(&gaps.unwrap()), ["r1"]);
    });
}

#[test]
fn a_statement_that_does_not_parse_hides_a_transaction_and_no_change_of_a_row() {
    every_store(|store| {
        let header = header_of("r1", 1, Some(BANK));
        let ended = RunEnd {
            incomplete_because: vec![Reason::unparsed(1).to_string()],
            ..ended(5, &[])
        };
        watch(true).append_until(store, &header, &ended);
        let asked = |asked| watch_gaps(store, "accounts", None, asked).unwrap().len();
        assert_eq!(asked(TableGaps::Transactions), 1);
        assert_eq!(asked(TableGaps::Changes), 0);
    });
}

#[test]
fn a_run_without_rows_is_told_by_the_same_words() {
    every_store(|store| {
        let mut without = header_of("r1", 1, Some(BANK));
        without.modes.rows = Some(RowsMode::Off);
        let mut graph = Graph::default();
        let transaction = graph.activity(None, 7, "transaction", 0);
        let table = graph.entity(EntityKind::Resource, TABLE, 0, None);
        graph.edge(transaction, table, Relation::Read, 0, SECOND);
        graph.append_until(store, &without, &ended(5, &[]));
        let asked = |asked| watch_gaps(store, "accounts", None, asked).unwrap();
        // It read the table only.
        assert_eq!(asked(TableGaps::Changes), []);
        assert_eq!(asked(TableGaps::Transactions), []);
        let told = gap_summary(&asked(TableGaps::Rows));
        assert!(
            told.starts_with("run r1 did not record rows (--rows off"),
            "{told}"
        );
    });
}

#[test]
fn each_gap_has_a_line_and_many_gaps_are_counted() {
    every_store(|store| {
        watch(true).append_until(store, &header_of("r0", 0, Some(BANK)), &ended(1, &[]));
        for at in 1..6 {
            let header = header_of(&format!("r{at}"), at, Some(BANK));
            watch(false).append_until(store, &header, &ended(at, &[LOST]));
        }
        let gaps = watch_gaps(store, "accounts", None, TableGaps::Changes).unwrap();
        let told = gap_lines(&gaps);
        let runs = ["run r5, from", "run r4, from", "run r3, from"];
        let begins = runs.iter().chain(&["2 older runs have gaps, too"]);
        assert_eq!(told.len(), 4, "{told:?}");
        for (line, begin) in told.iter().zip(begins) {
            assert!(line.starts_with(begin), "{line}");
        }
        let summary = gap_summary(&gaps);
        assert!(
            summary.ends_with("; 2 older runs have gaps, too"),
            "{summary}"
        );
    });
}

#[test]
fn a_watch_with_other_options_also_watched_the_database() {
    every_store(|store| {
        for (id, began, command) in [("r0", 0, "a"), ("r1", 5, "b"), ("r2", 20, "a")] {
            let mut header = header_of(id, began, Some(BANK));
            header.command = vec![command.as_bytes().to_vec()];
            watch(id != "r1").append_until(store, &header, &ended(began + 5, &[]));
        }
        let versions = table_versions(store, "accounts", Some("42"), None).unwrap();
        let history = row_history(store, &versions).unwrap();
        let unwatched: Vec<_> = history.iter().map(|event| &event.unwatched[..]).collect();
        assert_eq!(unwatched[0], [(10 * SECOND, 20 * SECOND)]);
    });
}

#[test]
fn a_name_that_several_tables_have_needs_the_database() {
    every_store(|store| {
        watch(true).append_until(store, &header_of("r0", 0, Some(BANK)), &ended(5, &[]));
        watch(false).append_until(store, &header_of("r1", 10, Some(BANK)), &ended(20, &[LOST]));
        let mut shop = Graph::default();
        let transaction = shop.activity(None, 7, "transaction", 0);
        let name = "postgres://h:1/shop/public.accounts";
        let table = shop.entity(EntityKind::Resource, name, 0, None);
        shop.edge(transaction, table, Relation::Read, 0, SECOND);
        let header = header_of("r2", 30, Some("postgres://h:1/shop"));
        shop.append_until(store, &header, &ended(40, &[]));
        let asked = |name| watch_gaps(store, name, None, TableGaps::Changes).unwrap();
        assert_eq!(asked("accounts"), []);
        assert_eq!(runs(&asked(TABLE)), ["r1"]);
        let first = store.run("r0").unwrap().unwrap().key;
        let row = table_versions(store, "accounts", Some("42"), Some(first)).unwrap();
        let gaps = watch_gaps_of(store, &row, None, TableGaps::Changes).unwrap();
        assert_eq!(runs(&gaps), ["r1"]);
    });
}

#[test]
fn a_watch_without_rows_that_lost_its_log_may_lack_changes() {
    every_store(|store| {
        watch(true).append_until(store, &header_of("r0", 0, Some(BANK)), &ended(5, &[]));
        let mut header = header_of("r1", 10, Some(BANK));
        header.modes.rows = Some(RowsMode::Off);
        watch(false).append_until(store, &header, &ended(20, &[LOST]));
        let gaps = watch_gaps(store, "accounts", None, TableGaps::Changes).unwrap();
        assert_eq!(runs(&gaps), ["r1"]);
    });
}
