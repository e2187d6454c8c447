//! Rows of SQLite of programs that did not load the extension: they are found in stored versions of
//! the database and its write-ahead log.

use std::path::Path;

use backstory_testkit::need::{needs, skipped};
use serde_json::{Value, json};

use super::Place;

/// A place with the worker. `None`, with a notice, if a tool is missing.
fn place(tools: &[&str]) -> Option<Place> {
    let place = Place::new();
    if !place.has_inspector() {
        skipped("rows in files of SQLite", "backstory-inspect is not built");
        return None;
    }
    needs("rows in files of SQLite", tools).then_some(place)
}

/// The changes of a row, the oldest first. Each has its operation, one column before and after, and
/// the last word of the command of its process.
fn history(place: &Place, table: &str, key: &str, column: &str) -> Vec<Value> {
    let answer = place.json(&["of", "--table", table, "--key", key, "--json"]);
    let all = answer["history"].as_array().unwrap().iter().rev();
    let last = |process: &Value| process["argv"].as_array().unwrap().last().unwrap().clone();
    let told = all.map(|one| {
        let change = &one["change"];
        let possible = one["possible_clients"].as_array().unwrap();
        let by = match &one["client"] {
            Value::Null => possible.iter().map(last).collect(),
            client => last(client),
        };
        json!([
            change["operation"],
            change["before"][column],
            change["after"][column],
            by
        ])
    });
    told.collect()
}

#[test]
fn a_row_leads_to_the_file_that_filled_it_without_the_extension() {
    let Some(place) = place(&["sqlite3"]) else {
        return;
    };
    place.write("rows.csv", "42,420\n7,70\n");
    place.write("fill.sql", "create table accounts (id integer primary key, sum int);\n.import --csv rows.csv accounts\n");
    place.keep("sqlite3 bank.db '.read fill.sql'", &[]);
    let change = "update accounts set sum = sum + 5 where id = 42";
    let other = "update accounts set sum = 0 where id = 7";
    let delete = "delete from accounts where id = 42";
    // Two processes of one run, each with a transaction of its own.
    place.keep(
        &format!("sqlite3 bank.db '{change}'; sqlite3 bank.db '{other}'"),
        &[],
    );
    place.keep(&format!("sqlite3 bank.db '{delete}'"), &[]);
    let wanted = [
        json!(["insert", null, "420", ".read fill.sql"]),
        json!(["update", "420", "425", change]),
        json!(["delete", "425", null, delete]),
    ];
    assert_eq!(history(&place, "accounts", "42", "sum"), wanted);
    assert_eq!(
        history(&place, "bank.db/accounts", "id=7", "sum")[1],
        json!(["update", "70", "0", other])
    );
    let answer = place.json(&["of", "--table", "accounts", "--key", "7", "--json"]);
    let nodes = answer["nodes"].as_array().unwrap().iter();
    let paths: Vec<&str> = nodes.filter_map(|node| node["path"].as_str()).collect();
    assert!(paths.contains(&&*place.path("rows.csv")), "{paths:?}");
    let screen = place.run(&["of", "--table", "accounts", "--key", "42"]).out;
    assert!(
        screen.contains("3 changes, the newest first") && screen.contains("sum: 420 → 425"),
        "{screen}"
    );
    place.keep(
        "sqlite3 -readonly bank.db 'select count(*) from accounts' > report.txt",
        &[],
    );
    let uses = place.json(&["uses", "--table", "accounts", "--key", "7", "--json"]);
    assert!(uses.to_string().contains("report.txt"), "{uses}");
    place.json(&["of", "--table", "accounts", "--json"]);
    place
        .run(&["of", "--table", "accounts", "--key", "9"])
        .is_error(1, &["row 9 of table accounts"]);
}

/// The record of the extension is the truth.
#[test]
fn the_rows_in_the_files_are_those_that_the_extension_records() {
    let Some(place) = place(&["sqlite3", "cc"]) else {
        return;
    };
    let Some(extension) = super::disclosed_sqlite::extension(&place) else {
        return;
    };
    let statements = [
        "create table rates (day text, currency text, rate real, note text, primary key (currency, day)) without rowid;
         create table loose (a, b); insert into loose values (1, x''00ff''), (null, 2.5);",
        "begin; insert into rates values (''mo'', ''EUR'', 1.10, null), (''tu'', ''EUR'', 100.5, ''é''); commit;",
        "update rates set rate = 2.0 where day = ''mo''; update loose set a = 1e300 where rowid = 2;",
        "begin; delete from rates; rollback;",
        "replace into rates values (''mo'', ''EUR'', 3.5, ''n''); delete from loose where rowid = 1;",
        "delete from rates where day = ''tu'';",
    ];
    // The extension is one place's, the files are the other's.
    let plain = Place::new();
    assert!(plain.has_inspector());
    for (at, sql) in statements.iter().enumerate() {
        let sql = sql.replace("''", "'");
        place.write(format!("{at}.sql"), &format!(".load {extension}\n{sql}\n"));
        plain.write(format!("{at}.sql"), &sql);
        for one in [&place, &plain] {
            one.keep(&format!("sqlite3 bank.db < {at}.sql"), &[]);
        }
    }
    for (table, key) in [
        ("rates", "day=mo,currency=EUR"),
        ("rates", "day=tu,currency=EUR"),
        ("loose", "1"),
        ("loose", "rowid=2"),
    ] {
        let changes = |place: &Place| -> Vec<Value> {
            let answer = place.json(&["of", "--table", table, "--key", key, "--json"]);
            let all = answer["history"].as_array().unwrap().iter();
            all.map(|one| {
                let mut change = one["change"].clone();
                let row = change["row"].as_str().unwrap();
                change["row"] = row.rsplit('/').next().unwrap().into();
                change
            })
            .collect()
        };
        let truth = changes(&place);
        assert!(!truth.is_empty());
        // REPLACE deletes a row and inserts it in one transaction. The files have the result.
        let told: Vec<Value> = changes(&plain);
        let result = |all: &[Value]| -> Vec<Value> {
            let kept = all
                .iter()
                .filter(|one| one["after"] != Value::Null || all.len() == 1);
            kept.map(|one| one["after"].clone()).collect()
        };
        assert_eq!(result(&told), result(&truth), "{table} {key}");
        assert_eq!(told[0]["row"], truth[0]["row"]);
    }
}

const PYTHON: &str = "import os, sqlite3, sys, time
def wait(name):
    while not os.path.exists(name): time.sleep(0.01)
def done(name): open(name, 'w').close()
";

#[test]
fn each_transaction_in_the_log_of_a_program_that_did_not_end_cleanly_is_told() {
    let Some(place) = place(&["sqlite3", "python3"]) else {
        return;
    };
    place.write(
        "crash.py",
        &format!(
            "{PYTHON}
bank = sqlite3.connect('bank.db', isolation_level=None)
bank.execute('pragma journal_mode = wal')
bank.execute('create table accounts (id integer primary key, sum int)')
bank.execute('insert into accounts values (42, 420)')
bank.execute('update accounts set sum = 425')
bank.execute('begin'); bank.execute('update accounts set sum = 0'); bank.execute('rollback')
os._exit(0)
"
        ),
    );
    place.keep("python3 crash.py", &[]);
    let crashed = [
        json!(["insert", null, "420", "crash.py"]),
        json!(["update", "420", "425", "crash.py"]),
    ];
    assert_eq!(history(&place, "accounts", "42", "sum"), crashed);
    let answer = place.json(&["of", "--table", "accounts", "--key", "42", "--json"]);
    let numbers = answer["history"].as_array().unwrap().iter();
    let numbers: Vec<&Value> = numbers.map(|one| &one["transaction"]["number"]).collect();
    assert_eq!(numbers, [3, 2]);
    let text = place.run(&["inspect", "bank.db-wal"]).out;
    assert!(text.contains("2  `accounts`: 1 row added"), "{text}");
    for name in ["bank.db", "bank.db-wal"] {
        let told = place.json(&["inspect", name, "--json"]);
        let steps = told["rows"]["steps"].as_array().unwrap();
        assert_eq!(steps.len(), 3, "{told}");
        assert_eq!(
            steps[2]["tables"][0]["sentences"][1],
            "`accounts.sum` of row 42: 420 → 425"
        );
    }
    // The next program copies the log into the database, and adds a change.
    let change = "update accounts set sum = 426";
    place.keep(&format!("sqlite3 bank.db '{change}'"), &[]);
    let all = [&crashed[..], &[json!(["update", "425", "426", change])]].concat();
    assert_eq!(history(&place, "accounts", "42", "sum"), all);
}

#[test]
fn a_transaction_that_was_killed_changed_no_row() {
    let Some(place) = place(&["sqlite3", "python3"]) else {
        return;
    };
    place.keep("sqlite3 bank.db 'create table t (id integer primary key, v, pad); with recursive n(i) as (values (1) union all select i + 1 from n where i < 3000) insert into t select i, 1, zeroblob(500) from n'", &[]);
    place.write("killed.py", &format!("{PYTHON}
bank = sqlite3.connect('bank.db', isolation_level=None)
bank.execute('pragma cache_size = 5')
bank.execute('begin'); bank.execute('update t set v = 2'); bank.execute('delete from t where id > 2000')
os.kill(os.getpid(), 9)
"));
    place.keep("exec 2>/dev/null; python3 killed.py; true", &[]);
    assert!(
        Path::new(&place.path("bank.db-journal"))
            .metadata()
            .unwrap()
            .len()
            > 512
    );
    for _ in 0..2 {
        let answer = place.run(&["of", "--table", "t", "--key", "5", "--json"]);
        let found: Value = serde_json::from_str(&answer.out).unwrap();
        assert_eq!(found["history"].as_array().unwrap().len(), 1, "{found}");
        assert!(
            answer.err.contains("a transaction was not finished"),
            "{answer:?}"
        );
        // The next program undoes it.
        place.keep("sqlite3 bank.db 'select count(*) from t'", &[]);
    }
}

#[test]
fn of_several_programs_at_once_each_is_possible() {
    let Some(place) = place(&["python3"]) else {
        return;
    };
    let script = |own: &str, before: &str, after: &str| {
        format!(
            "{PYTHON}
wait('{before}')
bank = sqlite3.connect('bank.db', isolation_level=None)
bank.execute('create table if not exists t (id integer primary key, v)')
bank.execute('insert into t values ({own}, {own})')
done('{after}')
wait('end')
bank.execute('update t set v = v + 1 where id = {own}')
"
        )
    };
    place.write("one.py", &script("1", ".", "one.done"));
    place.write("two.py", &script("2", "one.done", "end"));
    place.keep("python3 one.py & python3 two.py; wait", &[]);
    let found = history(&place, "t", "1", "v");
    let mut by: Vec<Value> = found[0][3].as_array().unwrap().clone();
    by.sort_by_key(Value::to_string);
    assert_eq!(
        (found.len(), by),
        (1, vec![json!("one.py"), json!("two.py")])
    );
}

#[test]
fn what_is_not_stored_or_not_readable_is_said() {
    let Some(place) = place(&["sqlite3"]) else {
        return;
    };
    let make = "create table t (id integer primary key, v); insert into t values (1, 1)";
    for sql in [make, "update t set v = 2"] {
        place.keep(&format!("sqlite3 off.db '{sql}'"), &["--contents=off"]);
    }
    let asked = ["of", "--table", "off.db/t", "--key", "1"];
    place.run(&asked).is_error(
        1,
        &["off.db: a version of it, or of its log, is not stored"],
    );
    place.keep("printf no > odd.db; printf x > odd.db-wal", &[]);
    let asked = ["of", "--table", "odd.db/t", "--key", "1"];
    place
        .run(&asked)
        .is_error(1, &["it is no database of SQLite, or it is encrypted"]);
    for name in ["a.db", "b.db"] {
        place.keep(&format!("sqlite3 {name} '{make}'"), &[]);
    }
    let asked = ["of", "--table", "t", "--key", "1"];
    place
        .run(&asked)
        .is_error(1, &["a.db, ", "b.db; write DATABASE/TABLE"]);
    place.keep(
        "sqlite3 a.db \"attach 'b.db' as b; update b.t set v = 2\"",
        &[],
    );
    assert_eq!(history(&place, "b.db/t", "1", "v").len(), 2);
    assert_eq!(history(&place, "a.db/t", "1", "v").len(), 1);
}

#[test]
fn a_transaction_of_a_log_that_an_earlier_run_did_not_store_has_no_certain_process() {
    let Some(place) = place(&["python3"]) else {
        return;
    };
    let write = |name: &str, statements: &[&str]| {
        let quoted = statements
            .iter()
            .map(|one| format!("bank.execute('{one}')\n"));
        let script = format!(
            "{PYTHON}\nbank = sqlite3.connect('bank.db', isolation_level=None)\n{}os._exit(0)\n",
            quoted.collect::<String>()
        );
        place.write(name, &script);
    };
    write(
        "first.py",
        &[
            "pragma journal_mode = wal",
            "create table t (id integer primary key, v)",
            "insert into t values (1, 1)",
        ],
    );
    write("second.py", &["update t set v = 2"]);
    place.keep("python3 first.py", &["--contents=off"]);
    place.keep("python3 second.py", &["--contents=off"]);
    let asked = ["of", "--table", "t", "--key", "1", "--json"];
    let answer = place.run(&asked);
    assert!(answer.err.contains("is not stored"), "{answer:?}");
    let answer: Value = serde_json::from_str(&answer.out).unwrap();
    let all = answer["history"].as_array().unwrap();
    assert_eq!(all.len(), 2, "{answer}");
    for one in all {
        assert_eq!(one["client"], Value::Null, "{one}");
        assert_eq!(
            one["possible_clients"].as_array().unwrap().len(),
            1,
            "{one}"
        );
    }
}

#[test]
fn without_the_worker_the_answer_says_where_it_belongs() {
    if !needs("rows in files of SQLite", &["sqlite3"]) {
        return;
    }
    let place = Place::new();
    place.keep(
        "sqlite3 bank.db 'create table t (id integer primary key)'",
        &[],
    );
    let asked = ["of", "--table", "t", "--key", "1"];
    place.run(&asked).is_error(
        1,
        &["row 1 of table t", "backstory-inspect is not installed"],
    );
}

#[test]
fn a_question_about_one_run_has_the_changes_of_that_run_alone() {
    let Some(place) = place(&["sqlite3"]) else {
        return;
    };
    let make = "create table t (id integer primary key, v); insert into t values (1, 1)";
    let run = place.keep(&format!("sqlite3 bank.db \"{make}\""), &[]);
    place.keep("sqlite3 bank.db 'update t set v = 2'", &[]);
    let of_run = |run: &str| {
        let asked = ["of", "--table", "t", "--key", "1", "--run", run, "--json"];
        let history = place.json(&asked)["history"].clone();
        let all = history.as_array().unwrap().iter();
        all.map(|one| one["change"]["operation"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(of_run(&run), ["insert"]);
    assert_eq!(of_run(&place.runs()[0]), ["update"]);
}

/// A program that leaves its last transactions in the write-ahead log.
const LOGGED: &str = "
import os, sqlite3, sys
bank = sqlite3.connect('bank.db', isolation_level=None)
bank.execute('pragma journal_mode = wal')
bank.execute('create table if not exists accounts (id integer primary key, sum int)')
for statement in sys.argv[1:]: bank.execute(statement)
os._exit(0)
";

#[test]
fn diff_and_of_tell_the_rows_of_a_database_whose_changes_are_in_its_log() {
    let Some(place) = place(&["python3"]) else {
        return;
    };
    place.write("logged.py", LOGGED);
    let insert = "insert into accounts values (42, 420), (7, 70)";
    let a = place.keep(
        &format!("python3 logged.py '{insert}'"),
        &["--contents=all"],
    );
    let change = "update accounts set sum = 425 where id = 42";
    let delete = "delete from accounts where id = 7";
    let script = format!("python3 logged.py '{change}' '{delete}'");
    let b = place.keep(&script, &["--contents=all"]);
    let told = "`accounts`: 1 row removed, 1 row changed, `accounts.sum` of row 42: 420 → 425";
    // Two runs, two versions of the log, and two of the database, whose own bytes are the same.
    let versions = |name: &str| [&a, &b].map(|run| format!("{name}@{run}"));
    let log = versions("bank.db-wal");
    let database = versions("bank.db");
    for sides in [[&a, &b], [&log[0], &log[1]], [&database[0], &database[1]]] {
        let answer = place.run(&["diff", sides[0], sides[1]]);
        assert!(answer.out.contains(told), "{sides:?}: {answer:?}");
        assert_eq!(answer.status, 1, "{sides:?}");
    }
    let json = place.run(&["diff", "--json", &database[0], &database[1]]);
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["same"], false, "{json}");
    assert_eq!(json["content"]["inside"]["inspector"], "sqlite", "{json}");
    let of = place.run(&["of", "bank.db-wal"]);
    assert!(of.out.contains(told), "{of:?}");
    // A copy of the log into the database changes no row.
    let c = place.keep(
        "python3 logged.py 'pragma wal_checkpoint'",
        &["--contents=all"],
    );
    let answer = place.run(&["diff", &database[1], &format!("bank.db@{c}")]);
    assert!(answer.out.contains("no row changed"), "{answer:?}");
    // The log has changes that no row shows.
    let d = place.keep(
        "python3 logged.py 'create index sums on accounts (sum)'",
        &["--contents=all"],
    );
    let answer = place.run(&["diff", &format!("bank.db@{c}"), &format!("bank.db@{d}")]);
    assert!(answer.out.contains("index added: `sums`"), "{answer:?}");
    assert_eq!(answer.status, 1, "{answer:?}");
}
