//! The parts of a statement that decide which columns it uses.
//!
//! In: a parsed statement, by `shape_reader`. Out: its queries and changes, with the names in them.
//! All else, as operators and values, is left out. So a shape is small, and is kept with the names
//! of a statement that a client repeats.
//!
//! Absent: the catalog. The meaning of names depends on the moment at which the statement ran.

use crate::sql_dialect::WrittenName;

/// The parts of a statement, or several, that concern columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatementShape {
    /// In their order.
    pub(crate) parts: Vec<Query>,
}

impl StatementShape {
    /// Adds the parts of another statement.
    pub(crate) fn add(&mut self, other: StatementShape) {
        self.parts.extend(other.parts);
    }
}

/// A query, or a change, with its common table expressions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) common: Vec<CommonTable>,
    pub(crate) body: Body,
    /// The expressions of its order.
    pub(crate) order: Vec<Names>,
    /// Those of its limit.
    pub(crate) rest: Names,
}

/// A common table expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommonTable {
    pub(crate) alias: Alias,
    pub(crate) query: Query,
    /// It may name itself.
    pub(crate) is_recursive: bool,
}

/// The body of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Body {
    Select(Box<Select>),
    Query(Box<Query>),
    /// `UNION` and others.
    Both {
        left: Box<Body>,
        right: Box<Body>,
        /// Equal rows are kept, so no row is compared.
        keeps_all: bool,
    },
    /// Rows of expressions.
    Values {
        width: usize,
        names: Names,
    },
    Change(Box<Change>),
}

/// A selection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Select {
    pub(crate) from: Vec<Joined>,
    pub(crate) items: Vec<Item>,
    /// The expressions that decide about rows: `WHERE`, `GROUP BY` and others.
    pub(crate) rest: Names,
    /// Rows are compared by all items.
    pub(crate) is_distinct: bool,
}

/// An item that a query or a change returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    /// An expression, and its name.
    Value { name: Option<String>, names: Names },
    /// `*`
    All,
    /// `t.*`
    AllOf(WrittenName),
}

/// A table or query that is joined to those before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Joined {
    pub(crate) relation: Relation,
    pub(crate) by: JoinedBy,
}

/// How two relations are joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JoinedBy {
    Nothing,
    On(Names),
    Using(Vec<String>),
    Natural,
}

/// A relation after `FROM`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Relation {
    Table {
        name: WrittenName,
        alias: Option<Alias>,
    },
    Query {
        query: Box<Query>,
        alias: Option<Alias>,
        is_lateral: bool,
    },
    Function {
        name: WrittenName,
        arguments: Names,
        alias: Option<Alias>,
    },
    Nested(Vec<Joined>),
}

/// The name of a relation in a statement, and those of its first columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Alias {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
}

/// The names in an expression, or several.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// Names of columns, or of whole rows.
    pub(crate) columns: Vec<WrittenName>,
    /// The relations of `t.*`.
    pub(crate) rows: Vec<WrittenName>,
    pub(crate) queries: Vec<NestedQuery>,
    /// The expression is one name and nothing else.
    pub(crate) is_plain: bool,
}

impl Names {
    /// Adds the names of another expression.
    pub(crate) fn add(&mut self, other: Names) {
        self.columns.extend(other.columns);
        self.rows.extend(other.rows);
        self.queries.extend(other.queries);
    }
}

/// A query in an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NestedQuery {
    pub(crate) query: Query,
    /// Only whether it has rows matters.
    pub(crate) is_test: bool,
}

/// A change of tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// The relations that its expressions name. The target of an insertion is the first one.
    pub(crate) from: Vec<Joined>,
    /// The rows that it inserts.
    pub(crate) insertions: Vec<Insertion>,
    /// `excluded` means the inserted row.
    pub(crate) has_excluded: bool,
    /// The columns that it sets.
    pub(crate) assigned: Vec<WrittenName>,
    /// Its expressions.
    pub(crate) names: Names,
    pub(crate) returning: Vec<Item>,
    /// It makes its target.
    pub(crate) is_definition: bool,
}

/// Rows that a change inserts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Insertion {
    /// The columns that it names. None: all, in the order of the table.
    pub(crate) columns: Vec<String>,
    /// The number of values, if it is known without the catalog.
    pub(crate) width: Option<usize>,
    /// The query that makes the rows. It does not see the target.
    pub(crate) source: Option<Query>,
}
