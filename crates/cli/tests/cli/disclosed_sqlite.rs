//! The extension of SQLite: rows and transactions of a recorded program.

use std::path::Path;
use std::process::Command;

use backstory_testkit::need::{needs, skipped};

use super::Place;

/// Builds the extension. `None`, with a notice, if that is not possible here.
pub(super) fn extension(place: &Place) -> Option<String> {
    if !needs("the extension of SQLite", &["cc", "sqlite3"]) {
        return None;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let out = place.stage.path().join("libbackstory");
    let built = Command::new(root.join("scripts/libbackstory"))
        .arg(&out)
        .output()
        .unwrap();
    assert!(built.status.success(), "{built:?}");
    let file = out.join("lib/backstory/backstory_sqlite.so");
    if !file.exists() {
        skipped("the extension of SQLite", "no sqlite3ext.h here");
        return None;
    }
    let name = file.with_extension("");
    Some(name.into_os_string().into_string().unwrap())
}

fn names(place: &Place, question: &[&str]) -> Vec<String> {
    let answer = place.json(&[question, &["--json"]].concat());
    let nodes = answer["nodes"].as_array().unwrap().iter();
    nodes
        .filter_map(|node| Some(node["path"].as_str()?.to_owned()))
        .collect()
}

#[test]
fn a_row_of_sqlite_leads_to_the_files_that_filled_it_and_to_the_report_that_read_it() {
    let place = Place::new();
    let Some(extension) = extension(&place) else {
        return;
    };
    let load = format!(".load {extension}");
    place.write("rows.csv", "42,420\n7,70\n");
    let sql = |lines: &str| format!("printf '%s\\n' '{load}' {lines} | sqlite3 bank.db");
    place.keep(
        &sql("'create table accounts (id integer primary key, sum int);' '.import --csv rows.csv accounts'"),
        &["--name", "fill"],
    );
    place.keep(
        &sql(
            "'begin;' 'update accounts set sum = sum + 5 where id = 42;' 'commit;' \
             'begin;' 'update accounts set sum = 0;' 'rollback;' \
             'begin;' 'insert into accounts values (8, 1);' 'savepoint s;' \
             'insert into accounts values (9, 1);' 'rollback to s;' 'commit;'",
        ),
        &["--name", "move"],
    );
    place.keep(
        &sql("'create view rich as select * from accounts where sum > 100;' '.once report.txt' 'select * from rich;'"),
        &["--name", "report"],
    );
    let row = names(&place, &["of", "--table", "accounts", "--key", "42"]);
    assert!(
        row.iter().any(|name| name.ends_with("/rows.csv")),
        "{row:?}"
    );
    let report = names(&place, &["of", "report.txt"]);
    assert!(
        report.iter().any(|name| name.ends_with("/rows.csv")),
        "{report:?}"
    );
    let screen = place.run(&["of", "report.txt"]).out;
    assert!(
        screen.contains("transaction 'select * from rich;'"),
        "{screen}"
    );
    assert!(
        screen.contains("transaction 'update accounts set"),
        "{screen}"
    );
    for unwanted in ["memory:", "transaction 'begin"] {
        assert!(!screen.contains(unwanted), "{screen}");
    }
    let history = place.json(&["of", "--table", "bank.db/accounts", "--key", "42", "--json"]);
    let changes: Vec<String> = history["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let change = &one["change"];
            format!(
                "{} {} {}",
                change["operation"], change["before"]["sum"], change["after"]["sum"]
            )
        })
        .collect();
    assert_eq!(
        changes,
        [r#""update" "420" "425""#, r#""insert" null "420""#]
    );
    place.json(&["of", "--table", "accounts", "--key", "8", "--json"]);
    place
        .run(&["of", "--table", "accounts", "--key", "9"])
        .is_error(1, &["row 9 of table accounts"]);
}
