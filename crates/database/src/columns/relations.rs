//! The relations that a name in a statement can mean a column of.

use super::{ANY, ColumnUses, UsedColumn, add};
use crate::catalog::TableName;
use crate::sql_dialect::{SqlDialect, WrittenName};

/// The columns of PostgreSQL's own in each table.
const OWN: [&str; 6] = ["ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"];

/// A column of a relation.
#[derive(Debug, Clone, Default)]
pub(super) struct Column {
    pub(super) name: String,
    /// The columns of tables that it is made of.
    pub(super) uses: ColumnUses,
    /// It is a column of a table and nothing else.
    pub(super) is_plain: bool,
}

/// The columns of a table, a view or a query.
#[derive(Debug, Clone, Default)]
pub(super) struct Rows {
    pub(super) columns: Vec<Column>,
    /// The columns that decide which rows there are.
    pub(super) common: ColumnUses,
    /// There may be more columns, of tables that are not known.
    pub(super) lacks_columns: bool,
    /// There may be more columns, which are of no table of a user: those of a function.
    pub(super) is_foreign: bool,
    /// The table.
    pub(super) table: Option<TableName>,
    /// It may have had other columns.
    pub(super) is_unsettled: bool,
}

impl Rows {
    pub(super) fn column(&self, name: &str, dialect: SqlDialect) -> Option<&Column> {
        let is = |column: &&Column| is_same(&column.name, name, dialect);
        self.columns.iter().find(is)
    }

    /// All uses of all columns.
    pub(super) fn all(&self) -> ColumnUses {
        let mut uses = ColumnUses::new();
        for column in &self.columns {
            add(&mut uses, &column.uses, !self.is_unsettled);
        }
        uses
    }

    /// Gives the first columns other names.
    pub(super) fn rename(&mut self, names: &[String]) {
        for (at, name) in names.iter().enumerate() {
            match self.columns.get_mut(at) {
                Some(column) => column.name.clone_from(name),
                // A function makes it, or a table that is not known.
                None => self.columns.push(Column {
                    name: name.clone(),
                    ..Column::default()
                }),
            }
        }
    }
}

/// A relation in a statement.
#[derive(Debug, Clone)]
pub(super) struct BoundRelation {
    /// The name by which it is called, with its schema if it has no other.
    pub(super) name: WrittenName,
    pub(super) rows: Rows,
    /// Columns that it shares with a relation before it, by `USING` and `NATURAL`.
    pub(super) shared: Vec<String>,
}

impl BoundRelation {
    /// True if a name before a column means this relation.
    pub(super) fn is_called(&self, name: &[String], dialect: SqlDialect) -> bool {
        let pairs = self.name.iter().rev().zip(name.iter().rev());
        let own = pairs.clone().count();
        let fits = |(own, name): (&String, &String)| is_same(own, name, dialect);
        own > 0 && pairs.into_iter().all(fits)
    }

    pub(super) fn shares(&self, column: &str, dialect: SqlDialect) -> bool {
        self.shared.iter().any(|one| is_same(one, column, dialect))
    }

    /// The use of all columns that are not known by name.
    pub(super) fn unknown(&self) -> Option<UsedColumn> {
        let name = || format!("{}.{ANY}", self.name.join("."));
        self.rows
            .lacks_columns
            .then(|| UsedColumn::Unresolved(name()))
    }
}

/// The relations around a name. Those of the query around it come after its own.
#[derive(Clone, Copy)]
pub(super) struct Scope<'s> {
    pub(super) relations: &'s [BoundRelation],
    pub(super) outer: Option<&'s Scope<'s>>,
}

impl<'s> Scope<'s> {
    /// This scope, and those around it.
    pub(super) fn levels(&'s self) -> impl Iterator<Item = &'s Scope<'s>> {
        std::iter::successors(Some(self), |scope| scope.outer)
    }
}

/// True for two names of one column or alias. MariaDB does not tell cases apart.
pub(super) fn is_same(one: &str, other: &str, dialect: SqlDialect) -> bool {
    match dialect {
        SqlDialect::Postgres => one == other,
        SqlDialect::MariaDb { .. } => one.to_lowercase() == other.to_lowercase(),
    }
}

/// True for a name that is no column of a table: a variable, the word `DEFAULT`, or a column of the
/// server's own.
pub(super) fn is_no_column(name: &str, dialect: SqlDialect) -> bool {
    let is_own = dialect == SqlDialect::Postgres && OWN.contains(&name);
    is_own || name.starts_with('@') || name.eq_ignore_ascii_case("default")
}
