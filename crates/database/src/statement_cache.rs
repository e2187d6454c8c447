//! The names in statements that a client repeats.
//!
//! In: the texts of statements. Out: their tables and columns. A client that prepares statements
//! repeats their texts, and each text is parsed once. The server's crate says how.
//!
//! Invariant: the memory is bounded: long texts are not kept, and a full cache is emptied.

use std::collections::HashMap;
use std::sync::Arc;

use crate::sql_dialect::SqlDialect;
use crate::statement_tables::StatementTables;

/// The most texts that are kept.
const TEXTS: usize = 1024;

/// The longest text that is kept, in bytes.
const LONGEST: usize = 4096;

/// The names in a statement of a dialect, or the parser's message.
pub type ParsesStatement = fn(&str, SqlDialect) -> Result<StatementTables, String>;

/// The names in the statements of one dialect.
#[derive(Debug)]
pub struct StatementCache {
    dialect: SqlDialect,
    parse: ParsesStatement,
    known: HashMap<String, Result<Arc<StatementTables>, String>>,
}

impl Default for StatementCache {
    fn default() -> StatementCache {
        StatementCache::new(SqlDialect::default(), StatementTables::of)
    }
}

impl StatementCache {
    /// An empty cache for the statements of a dialect, which `parse` parses.
    pub fn new(dialect: SqlDialect, parse: ParsesStatement) -> StatementCache {
        StatementCache {
            dialect,
            parse,
            known: HashMap::new(),
        }
    }

    /// The names in a statement.
    ///
    /// # Errors
    ///
    /// The parser's message.
    pub fn names_of(&mut self, text: &str) -> Result<Arc<StatementTables>, String> {
        if let Some(known) = self.known.get(text) {
            return known.clone();
        }
        let names = (self.parse)(text, self.dialect).map(Arc::new);
        if text.len() <= LONGEST {
            if self.known.len() >= TEXTS {
                self.known.clear();
            }
            self.known.insert(text.to_owned(), names.clone());
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_statement_has_the_names_of_the_first_one() {
        let mut cache = StatementCache::default();
        for text in ["SELECT a FROM t", "no statement", "UPDATE t SET a = $1"] {
            let first = StatementTables::of(text, SqlDialect::Postgres).map(Arc::new);
            assert_eq!(
                [cache.names_of(text), cache.names_of(text)],
                [first.clone(), first]
            );
        }
        assert_eq!(cache.known.len(), 3);
    }

    #[test]
    fn endless_new_and_long_statements_take_a_bounded_space() {
        let mut cache = StatementCache::default();
        for number in 0..=TEXTS {
            let found = cache.names_of(&format!("SELECT {number} FROM t")).unwrap();
            assert_eq!(found.reads.len(), 1);
        }
        assert_eq!(cache.known.len(), 1);
        let long = format!("SELECT '{}' FROM t", "x".repeat(LONGEST));
        assert_eq!(cache.names_of(&long).unwrap().reads.len(), 1);
        assert_eq!(cache.known.len(), 1);
    }
}
