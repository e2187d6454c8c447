//! Columns of statements that change rows.

use super::check;

#[test]
fn an_insertion_writes_the_columns_to_which_it_gives_values() {
    check(
        "INSERT INTO accounts (id, note) VALUES (1, 'x')",
        "",
        "accounts.id, accounts.note",
    );
    check(
        "INSERT INTO accounts VALUES (1, 2, 'x')",
        "",
        "accounts.id, accounts.sum, accounts.note",
    );
    check(
        "INSERT INTO accounts VALUES (1, DEFAULT)",
        "",
        "accounts.id, accounts.sum",
    );
    check(
        "INSERT INTO accounts SELECT id, factor FROM rates",
        "rates.id, rates.factor",
        "accounts.id, accounts.sum",
    );
    check(
        "INSERT INTO accounts (id) SELECT account FROM notes RETURNING sum",
        "notes.account, accounts.sum",
        "accounts.id",
    );
    check("INSERT INTO accounts DEFAULT VALUES", "", "");
    check(
        "INSERT INTO accounts AS a (id, sum) VALUES (1, 2) ON CONFLICT (id) DO UPDATE \
        SET sum = a.sum + excluded.sum, note = excluded.note WHERE a.note IS NULL",
        "accounts.id, accounts.sum, accounts.note",
        "accounts.id, accounts.sum, accounts.note",
    );
    check(
        "INSERT INTO rates VALUES (1, 2) ON CONFLICT DO NOTHING",
        "",
        "rates.id, rates.factor",
    );
    check(
        "INSERT INTO nothing VALUES (1)",
        "",
        "unresolved nothing.*?",
    );
}

#[test]
fn an_update_writes_what_it_sets_and_reads_the_rest() {
    check(
        "UPDATE accounts SET sum = 5 WHERE id = 1",
        "accounts.id",
        "accounts.sum",
    );
    check(
        "UPDATE accounts SET sum = sum + 1",
        "accounts.sum",
        "accounts.sum",
    );
    check(
        "UPDATE accounts a SET sum = r.factor FROM rates r WHERE r.id = a.id RETURNING a.note",
        "rates.factor, rates.id, accounts.id, accounts.note",
        "accounts.sum",
    );
    check(
        "UPDATE accounts SET (sum, note) = (SELECT factor, 'x' FROM rates WHERE rates.id = accounts.id)",
        "rates.factor, rates.id, accounts.id",
        "accounts.sum, accounts.note",
    );
    check(
        "WITH r AS (SELECT factor FROM rates) UPDATE accounts SET sum = factor FROM r",
        "rates.factor",
        "accounts.sum",
    );
}

#[test]
fn a_deletion_writes_no_column_and_reads_its_condition() {
    check("DELETE FROM accounts WHERE note = 'x'", "accounts.note", "");
    check(
        "DELETE FROM accounts a USING rates r WHERE r.id = a.id RETURNING *",
        "accounts.id, accounts.sum, accounts.note, rates.id, rates.factor",
        "",
    );
    check(
        "WITH gone AS (DELETE FROM rates WHERE factor = 0 RETURNING id) INSERT INTO notes (account) SELECT id FROM gone",
        "rates.factor, rates.id",
        "notes.account",
    );
    check("TRUNCATE accounts", "", "");
}

#[test]
fn a_merge_writes_the_columns_of_its_clauses() {
    check(
        "MERGE INTO accounts a USING rates r ON a.id = r.id \
        WHEN MATCHED AND r.factor > 1 THEN UPDATE SET sum = a.sum * r.factor \
        WHEN NOT MATCHED THEN INSERT (id, sum) VALUES (r.id, 0)",
        "accounts.id, accounts.sum, rates.id, rates.factor",
        "accounts.id, accounts.sum",
    );
    check(
        "MERGE INTO rates USING accounts a ON rates.id = a.id WHEN NOT MATCHED THEN INSERT VALUES (a.id, a.sum)",
        "rates.id, accounts.id, accounts.sum",
        "rates.id, rates.factor",
    );
}

#[test]
fn a_copy_uses_its_columns_or_all() {
    check(
        "COPY accounts (id, sum) FROM STDIN",
        "",
        "accounts.id, accounts.sum",
    );
    check("COPY rates FROM STDIN", "", "rates.id, rates.factor");
    check("COPY rates TO STDOUT", "rates.id, rates.factor", "");
    check("COPY accounts (note) TO STDOUT", "accounts.note", "");
    check(
        "COPY (SELECT sum FROM accounts) TO STDOUT",
        "accounts.sum",
        "",
    );
    check(
        "CREATE TABLE rates AS SELECT id, sum AS factor FROM accounts",
        "accounts.id, accounts.sum",
        "rates.id, rates.factor",
    );
}
