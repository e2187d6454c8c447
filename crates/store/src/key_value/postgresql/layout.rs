//! The tables in the database, and their changes from one version of the program to the next.
//!
//! Invariant: two processes that open a new database at once make its tables once.

use postgres::Client;

use super::answers::Failing;
use crate::{Error, Result};

/// The statements that lead from each layout to the next.
const MIGRATIONS: [&str; 1] = [include_str!("1.sql")];

/// Brings the tables of the first schema in the search path to the newest layout.
///
/// Errors: [`Error::NewerSchema`], and [`Error::NotPermitted`] if the user may not make tables.
pub fn bring_up_to_date(client: &mut Client, failing: &Failing) -> Result<()> {
    if number(client, failing)? == MIGRATIONS.len() {
        return Ok(());
    }
    let fail = |error| failing.error("make the tables", &error);
    let mut transaction = client.transaction().map_err(fail)?;
    let alone = "SELECT pg_advisory_xact_lock(hashtext('backstory'), hashtext(current_schema()))";
    transaction.execute(alone, &[]).map_err(fail)?;
    // Another process may have made them meanwhile.
    let found = number(&mut transaction, failing)?;
    for statements in MIGRATIONS.iter().skip(found) {
        transaction.batch_execute(statements).map_err(fail)?;
    }
    let write = format!(
        "DELETE FROM backstory_layout; INSERT INTO backstory_layout VALUES ({})",
        MIGRATIONS.len()
    );
    if found < MIGRATIONS.len() {
        transaction.batch_execute(&write).map_err(fail)?;
    }
    transaction.commit().map_err(fail)
}

/// The number of the layout of the tables. 0: the database does not have them.
fn number(client: &mut impl postgres::GenericClient, failing: &Failing) -> Result<usize> {
    let fail = |error| failing.error("look for the tables", &error);
    // Not `to_regclass`: a transaction may remember that there was no such table.
    let there = "SELECT EXISTS (SELECT FROM pg_tables \
        WHERE schemaname = current_schema() AND tablename = 'backstory_layout')";
    let there: bool = client.query_one(there, &[]).map_err(fail)?.get(0);
    if !there {
        return Ok(0);
    }
    let found = "SELECT coalesce(max(number), 0) FROM backstory_layout";
    let found: i32 = client.query_one(found, &[]).map_err(fail)?.get(0);
    match usize::try_from(found) {
        Ok(found) if found <= MIGRATIONS.len() => Ok(found),
        _ => Err(Error::NewerSchema {
            path: failing.server.clone(),
            found: i64::from(found),
            known: MIGRATIONS.len() as i64,
        }),
    }
}
