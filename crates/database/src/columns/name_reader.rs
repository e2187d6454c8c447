//! Collects the names in expressions.

use std::ops::ControlFlow;

use sqlparser::ast::{
    self, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Visit, Visitor,
};

use super::shape::{Names, NestedQuery, Query};
use crate::sql_dialect::SqlDialect;

/// The names in a part of a statement. `query` reads a query in it.
pub(super) fn names_in(
    part: &impl Visit,
    dialect: SqlDialect,
    query: &dyn Fn(&ast::Query) -> Query,
) -> Names {
    let mut reader = NameReader {
        dialect,
        query,
        names: Names::default(),
        depth: 0,
        is_test: false,
        hidden: 0,
        arguments: Vec::new(),
    };
    let _: ControlFlow<()> = part.visit(&mut reader);
    reader.names
}

/// Collects the names of expressions, and leaves those in nested queries to these.
struct NameReader<'q> {
    dialect: SqlDialect,
    query: &'q dyn Fn(&ast::Query) -> Query,
    names: Names,
    /// How many queries are around the present place.
    depth: usize,
    /// Only whether the next query has rows matters.
    is_test: bool,
    /// How many calls of `VALUES` are around the present place: the values to be inserted.
    hidden: usize,
    /// Names of arguments, which are no columns.
    arguments: Vec<Ident>,
}

impl NameReader<'_> {
    fn call(&mut self, function: &ast::Function) {
        self.hidden += usize::from(is_inserted_value(function, self.dialect));
        let FunctionArguments::List(list) = &function.args else {
            return;
        };
        for argument in &list.args {
            let value = match argument {
                FunctionArg::ExprNamed { name, arg, .. } => {
                    if let Expr::Identifier(name) = name {
                        self.arguments.push(name.clone());
                    }
                    arg
                }
                FunctionArg::Named { arg, .. } | FunctionArg::Unnamed(arg) => arg,
            };
            if let FunctionArgExpr::QualifiedWildcard(name) = value {
                let name = self.dialect.written(name).unwrap_or_default();
                self.names.rows.push(name);
            }
        }
    }
}

/// `VALUES(column)` of MariaDB.
fn is_inserted_value(function: &ast::Function, dialect: SqlDialect) -> bool {
    dialect != SqlDialect::Postgres && function.name.to_string().eq_ignore_ascii_case("values")
}

impl Visitor for NameReader<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
        if self.depth == 0 {
            let is_test = std::mem::take(&mut self.is_test);
            let query = (self.query)(query);
            self.names.queries.push(NestedQuery { query, is_test });
        }
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        match expression {
            Expr::Identifier(name) => {
                let argument = self.arguments.iter().position(|one| one == name);
                match argument {
                    Some(at) => drop(self.arguments.remove(at)),
                    None if self.hidden == 0 => {
                        let name = vec![self.dialect.ident(name)];
                        self.names.columns.push(name);
                    }
                    None => (),
                }
            }
            Expr::CompoundIdentifier(parts) if self.hidden == 0 => {
                let parts = parts.iter().map(|part| self.dialect.ident(part));
                self.names.columns.push(parts.collect());
            }
            Expr::Exists { .. } => self.is_test = true,
            Expr::Function(function) => self.call(function),
            _ => (),
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expression
            && self.depth == 0
        {
            self.hidden -= usize::from(is_inserted_value(function, self.dialect));
        }
        ControlFlow::Continue(())
    }
}
