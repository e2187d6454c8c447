use super::*;

fn table() -> TableName {
    ("public".to_owned(), "a".to_owned())
}

fn seen(began: i64, session: &str, only_creates: bool) -> SeenDefinition {
    SeenDefinition {
        began,
        ended: Some(began),
        session: session.to_owned(),
        transaction: 1,
        place: began.unsigned_abs(),
        changed: ChangedDefinitions {
            only_creates,
            names: Some(["a".to_owned()].into()),
        },
    }
}

/// A table that changed between the times 10 and 20, after these statements.
fn changed(is_new: bool, all: &[SeenDefinition]) -> Definitions {
    let mut definitions = Definitions::default();
    definitions.begin(10);
    all.iter().cloned().for_each(|one| definitions.add(one));
    definitions.read_again(vec![(table(), is_new)], (20, 20));
    definitions
}

fn at(time: i64, session: &str) -> StatementMoment<'_> {
    StatementMoment {
        time,
        session,
        place: time.unsigned_abs(),
        is_between: false,
    }
}

#[test]
fn a_text_that_does_not_parse_may_change_definitions_if_it_has_their_words() {
    let error = String::new();
    let of = |text: &str| ChangedDefinitions::of(text, Err(&error)).is_some();
    assert!(of("CREATE?") && of("DO $$BEGIN alter TABLE"));
    assert!(!of("SELECT created_at, t.dropped, \"no_create\" ?? FROM t"));
}

#[test]
fn a_changed_table_is_settled_after_the_look_that_found_the_change() {
    let definitions = changed(false, &[]);
    assert!(!definitions.is_settled(&table(), at(15, "s")));
    assert!(definitions.is_settled(&table(), at(20, "s")));
    let other = ("public".to_owned(), "b".to_owned());
    assert!(definitions.is_settled(&other, at(15, "s")));
}

#[test]
fn after_the_only_statement_that_changed_it_a_table_is_settled_for_its_session() {
    let mut definitions = changed(false, &[seen(14, "s", false)]);
    assert!(!definitions.is_settled(&table(), at(15, "s")));
    let waits = |began: i64, ended: i64| definitions.will_be_settled((began, ended));
    assert!(waits(15, 16) && waits(15, 25) && !waits(20, 25));
    definitions.know_log_until(20);
    assert!(definitions.is_settled(&table(), at(15, "s")));
    assert!(!definitions.is_settled(&table(), at(13, "s")));
    assert!(!definitions.is_settled(&table(), at(15, "t")));
    let mut twice = changed(false, &[seen(14, "s", false), seen(16, "s", false)]);
    twice.know_log_until(20);
    assert!(!twice.is_settled(&table(), at(15, "s")));
    assert!(!twice.is_settled(&table(), at(17, "s")));
}

#[test]
fn of_two_statements_of_one_time_the_place_in_the_log_says_which_one_came_first() {
    let mut definitions = changed(false, &[seen(14, "s", false)]);
    definitions.know_log_until(20);
    let before = StatementMoment {
        place: 13,
        ..at(14, "s")
    };
    assert!(!definitions.is_settled(&table(), before));
    let after = StatementMoment {
        place: 15,
        ..before
    };
    assert!(definitions.is_settled(&table(), after));
}

#[test]
fn a_new_table_is_settled_unless_a_statement_altered_one() {
    let mut definitions = changed(true, &[seen(14, "s", true), seen(16, "s", true)]);
    definitions.know_log_until(20);
    assert!(definitions.is_settled(&table(), at(15, "t")));
    let mut altered = changed(true, &[seen(14, "s", true), seen(16, "s", false)]);
    altered.know_log_until(20);
    assert!(!altered.is_settled(&table(), at(15, "s")));
}

#[test]
fn a_statement_waits_a_minute_for_lines_of_the_log_and_no_longer() {
    let mut definitions = Definitions::default();
    definitions.begin(10);
    definitions.read_again(vec![(table(), false)], (2 * WAIT, 2 * WAIT));
    let waits = |began: i64, ended: i64| definitions.will_be_settled((began, ended));
    assert!(waits(0, WAIT) && !waits(0, WAIT - 1));
}

#[test]
fn after_a_definition_that_no_look_covers_its_table_is_not_settled() {
    let mut definitions = Definitions::default();
    definitions.begin(10);
    definitions.add(SeenDefinition {
        ended: None,
        ..seen(14, "s", false)
    });
    assert!(definitions.is_settled(&table(), at(13, "s")));
    assert!(!definitions.is_settled(&table(), at(15, "s")));
    // It waits for a lock: this look is too early.
    definitions.read_again(Vec::new(), (20, 20));
    assert!(!definitions.is_settled(&table(), at(25, "s")) && !definitions.is_outdated());
    definitions.end(1, 30);
    assert!(definitions.is_outdated());
    definitions.read_again(vec![(table(), false)], (40, 40));
    assert!(!definitions.is_settled(&table(), at(25, "t")));
    assert!(definitions.is_settled(&table(), at(40, "t")));
}

#[test]
fn a_trigger_that_changes_leaves_columns_as_they_are() {
    let text = "CREATE TRIGGER t BEFORE INSERT ON a EXECUTE FUNCTION f()";
    let tables = StatementTables {
        hidden: HiddenWork::Unknown,
        ..StatementTables::default()
    };
    let changed = ChangedDefinitions::of(text, Ok(&tables)).unwrap();
    let mut definitions = Definitions::default();
    definitions.begin(10);
    definitions.add(SeenDefinition {
        changed,
        ..seen(14, "s", true)
    });
    assert!(definitions.is_covered() && !definitions.is_outdated());
    assert!(definitions.is_settled(&table(), at(15, "s")));
    assert!(!definitions.is_steady((15, 16), (10, 11)));
    assert_eq!(ChangedDefinitions::of("LOCK TABLE a", Ok(&tables)), None);
}

#[test]
fn the_catalog_is_steady_for_transactions_between_definitions() {
    const SECOND: i64 = WAIT / 60;
    let mut definitions = Definitions::default();
    let one = |began: i64, ended: Option<i64>| SeenDefinition {
        ended: ended.map(|ended| ended * SECOND),
        ..seen(began * SECOND, "s", false)
    };
    definitions.add(one(20, Some(22)));
    let is_steady = |definitions: &Definitions, (began, committed): (i64, i64), read: i64| {
        let read = (read * SECOND, (read + 1) * SECOND);
        definitions.is_steady((began * SECOND, committed * SECOND), read)
    };
    // The catalog is older than the definition.
    assert!(is_steady(&definitions, (11, 12), 10));
    assert!(!is_steady(&definitions, (21, 30), 10));
    assert!(!is_steady(&definitions, (25, 30), 10));
    assert!(is_steady(&definitions, (25, 30), 24));
    assert!(!is_steady(&definitions, (11, 12), 24));
    // It changed while the catalog was read.
    assert!(!is_steady(&definitions, (11, 12), 19));
    // Its end is unknown.
    definitions.add(one(40, None));
    assert!(!is_steady(&definitions, (50, 51), 110));
    assert!(is_steady(&definitions, (105, 106), 110));
}

#[test]
fn a_transaction_that_undid_its_definitions_is_never_settled() {
    let undone = StatementMoment {
        is_between: true,
        ..at(30, "s")
    };
    assert!(!changed(false, &[]).is_settled(&table(), undone));
}
