//! The differences between the SQL of the databases.

use sqlparser::ast::{Ident, ObjectName};
use sqlparser::dialect::{Dialect, MySqlDialect, PostgreSqlDialect};

/// A name as it is written: `accounts`, or `public`, `accounts`.
pub type WrittenName = Vec<String>;

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
