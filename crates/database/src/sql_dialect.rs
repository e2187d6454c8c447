//! The differences between the SQL of the databases.

use sqlparser::ast::{Ident, ObjectName, Statement};
use sqlparser::dialect::{Dialect, MySqlDialect, PostgreSqlDialect};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, Tokenizer};

use crate::statement_depth::is_too_deep;

/// A name as it is written: `accounts`, or `public`, `accounts`.
pub type WrittenName = Vec<String>;

/// The longest text that is parsed, in bytes. Its tokens take up to a hundred times as much memory.
/// A client may send a gibibyte.
pub const LONGEST_STATEMENT: usize = 16 << 20;

/// Words of other databases' grammars alone. Here they may name tables, columns and functions.
const FOREIGN: [Keyword; 16] = [
    Keyword::ANTI,
    Keyword::ASOF,
    Keyword::DISTRIBUTE,
    Keyword::GLOB,
    Keyword::MATCH_CONDITION,
    Keyword::MATCH_RECOGNIZE,
    Keyword::MEMBER,
    Keyword::OUTPUT,
    Keyword::PIVOT,
    Keyword::PREWHERE,
    Keyword::QUALIFY,
    Keyword::SEMI,
    Keyword::SETTINGS,
    Keyword::SORT,
    Keyword::TOP,
    Keyword::UNPIVOT,
];

/// The SQL of a database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SqlDialect {
    /// An unquoted name is in lower case in the catalog.
    #[default]
    Postgres,
    /// A name is in the catalog as it is written.
    MariaDb {
        /// Names of tables are in lower case (`lower_case_table_names`).
        lower_case: bool,
    },
}

impl SqlDialect {
    /// The parser's dialect.
    pub fn parser(self) -> &'static dyn Dialect {
        match self {
            SqlDialect::Postgres => &PostgreSqlDialect {},
            SqlDialect::MariaDb { .. } => &MySqlDialect {},
        }
    }

    /// Parses a statement, or several.
    ///
    /// # Errors
    ///
    /// The parser's message, also if the statement is too deep or too long.
    pub fn parse(self, text: &str) -> Result<Vec<Statement>, ParserError> {
        if text.len() > LONGEST_STATEMENT {
            let why = format!("the statement has more than {LONGEST_STATEMENT} bytes");
            return Err(ParserError::TokenizerError(why));
        }
        let dialect = self.parser();
        let mut tokens = Tokenizer::new(dialect, text).tokenize_with_location()?;
        if is_too_deep(&tokens) {
            return Err(ParserError::RecursionLimitExceeded);
        }
        for token in &mut tokens {
            // The parser has one list of words for the grammars of all databases.
            if let Token::Word(word) = &mut token.token
                && FOREIGN.contains(&word.keyword)
            {
                word.keyword = Keyword::NoKeyword;
            }
        }
        let parser = Parser::new(dialect).with_tokens_with_locations(tokens);
        { parser }.parse_statements()
    }

    /// A part of a name as the catalog has it.
    pub fn folded(self, part: &str, is_quoted: bool) -> String {
        match self {
            SqlDialect::Postgres if is_quoted => part.to_owned(),
            SqlDialect::MariaDb { lower_case: false } => part.to_owned(),
            SqlDialect::Postgres | SqlDialect::MariaDb { .. } => part.to_lowercase(),
        }
    }

    /// A part of a name in a parsed statement, as the catalog has it.
    pub fn ident(self, part: &Ident) -> String {
        self.folded(&part.value, part.quote_style.is_some())
    }

    /// A name in a parsed statement, as the catalog has it. `None` if a part of it is no name.
    pub fn written(self, name: &ObjectName) -> Option<WrittenName> {
        let parts = name.0.iter().map(|part| part.as_ident());
        parts.map(|part| Some(self.ident(part?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement_tables::StatementTables;
    use sqlparser::keywords::{ALL_KEYWORDS, ALL_KEYWORDS_INDEX};

    #[test]
    fn a_statement_that_would_take_gigabytes_of_memory_is_refused() {
        let text = format!("SELECT '{}' FROM t", "x".repeat(LONGEST_STATEMENT));
        assert!(StatementTables::of(&text, SqlDialect::Postgres).is_err());
    }

    #[test]
    fn words_of_other_databases_name_functions_tables_and_columns() {
        for keyword in FOREIGN {
            let at = ALL_KEYWORDS_INDEX.iter().position(|one| *one == keyword);
            let word = ALL_KEYWORDS[at.unwrap()].to_lowercase();
            let text = format!("SELECT {word} (5) x, a {word} FROM t {word} WHERE {word}.a = 1");
            for dialect in [
                SqlDialect::Postgres,
                SqlDialect::MariaDb { lower_case: false },
            ] {
                let found = StatementTables::of(&text, dialect).expect(&text);
                assert!(found.functions.contains(&vec![word.clone()]), "{text}");
                assert_eq!(Vec::from_iter(found.reads), [["t"]], "{text}");
                let call = StatementTables::of(&format!("SELECT {word}()"), dialect);
                assert!(call.is_ok(), "{call:?}");
            }
        }
    }
}
