//! The query of a view.

use std::sync::{Arc, OnceLock};

use crate::columns::shape::StatementShape;
use crate::sql_dialect::SqlDialect;
use crate::statement_tables::StatementTables;

/// The query of a view, as the catalog shows it. It is parsed once it is needed.
#[derive(Debug)]
pub struct ViewQuery {
    text: String,
    shape: OnceLock<Option<StatementShape>>,
}

impl ViewQuery {
    /// A query by its text.
    pub fn new(text: String) -> Arc<ViewQuery> {
        let shape = OnceLock::new();
        Arc::new(ViewQuery { text, shape })
    }

    /// The shape of the query. `None` if it cannot be parsed.
    pub(crate) fn shape(&self, dialect: SqlDialect) -> Option<&StatementShape> {
        let parsed = || {
            let parsed = StatementTables::of(&self.text, dialect).ok()?;
            Some(parsed.shape)
        };
        self.shape.get_or_init(parsed).as_ref()
    }
}

impl PartialEq for ViewQuery {
    fn eq(&self, other: &ViewQuery) -> bool {
        self.text == other.text
    }
}
