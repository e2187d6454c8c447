//! Which unit a committed group belongs to.
//!
//! A group of an engine with transactions has the number of the statement that began its
//! transaction. The log of statements has that number, too. Another group has its
//! connection and the texts of its statements.

use std::collections::BTreeMap;

use backstory_database::sql_dialect::SqlDialect;
use backstory_database::statement_secrets::without_secrets;

use crate::audit_unit::Unit;
use crate::row_groups::CommittedGroup;
use crate::statement_text::names_of;

/// The log may cut statements that are as long as this, in bytes.
const CUT: usize = 512;

/// Gives a group to its unit. Returns the group if the log has none yet.
pub(crate) fn give(
    units: &mut BTreeMap<u64, Unit>,
    group: CommittedGroup,
    arrived: i64,
    dialect: SqlDialect,
) -> Option<CommittedGroup> {
    let unit = match (group.query, group.thread) {
        (Some(query), _) => units
            .values_mut()
            .find(|unit| unit.queries.contains(&query)),
        (None, Some(thread)) => {
            let own = units.values_mut().filter(|unit| unit.connection == thread);
            own.filter_map(|unit| unit.uses(&group.statements).then_some(unit))
                .next()
        }
        (None, None) => None,
    };
    let Some(unit) = unit else { return Some(group) };
    unit.by_statement |= group.query.is_none();
    for text in &group.statements {
        unit.complete(text, dialect);
    }
    unit.commits.push((group, arrived));
    None
}

/// True for the text of a statement, or its beginning in the log.
pub(crate) fn is_same(logged: &str, whole: &str) -> bool {
    logged == whole || logged.len() >= CUT && whole.starts_with(logged)
}

impl Unit {
    /// Uses up the texts of a group. False if the unit does not have all of them.
    fn uses(&mut self, statements: &[String]) -> bool {
        // A group without texts follows one of the same statement.
        if statements.is_empty() {
            return self.by_statement;
        }
        let mut left = self.texts.clone();
        for text in statements {
            match left.iter().position(|one| is_same(one, text)) {
                Some(at) => drop(left.remove(at)),
                None => return false,
            }
        }
        self.texts = left;
        true
    }

    /// Completes a statement that the log cut.
    fn complete(&mut self, whole: &str, dialect: SqlDialect) {
        for statement in &mut self.logged.statements {
            let is_cut = statement.text.len() >= CUT && statement.text.len() < whole.len();
            if is_cut && whole.starts_with(&statement.text) {
                statement.text = without_secrets(whole);
                statement.tables = names_of(whole, dialect).map(Into::into);
            }
        }
    }
}
