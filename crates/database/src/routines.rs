//! The functions, procedures and triggers of the database, and the tables that they read.
//!
//! In: the catalog's texts of routines. Out: the names of tables that a call reads. The statements
//! of a plain routine are all executed, so its reads are sure. Another one, as in PL/pgSQL, has
//! branches, and its text is a language of its own: each name after `FROM` and `JOIN` is possibly
//! read.
//!
//! Absent: routines in other languages, and statements that a routine builds as text.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sqlparser::tokenizer::{Token, Tokenizer};

use crate::sql_dialect::{SqlDialect, WrittenName};
use crate::statement_tables::StatementTables;

/// Schema and name of a routine or table.
type QualifiedName = (String, String);

/// A function or procedure. Several may share a name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Routine {
    /// All statements of its body are executed.
    is_plain: bool,
    body: String,
}

/// All functions, procedures and triggers.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Routines {
    dialect: SqlDialect,
    /// By schema and name.
    by_name: HashMap<QualifiedName, Vec<Routine>>,
    /// The functions that changes of a table call.
    triggers: HashMap<QualifiedName, BTreeSet<QualifiedName>>,
    /// Tables whose foreign keys change their rows when other rows change.
    cascades: BTreeSet<QualifiedName>,
}

/// Names of tables, and whether they are certainly read.
pub type RoutineReads = BTreeMap<WrittenName, bool>;

impl Routines {
    /// No routines.
    pub fn new(dialect: SqlDialect) -> Routines {
        Routines {
            dialect,
            ..Routines::default()
        }
    }

    /// Adds a routine. All statements of a plain one are executed.
    pub fn add(&mut self, name: QualifiedName, is_plain: bool, body: String) {
        let same_name = self.by_name.entry(name).or_default();
        same_name.push(Routine { is_plain, body });
    }

    /// Adds a function that changes of a table call.
    pub fn add_trigger(&mut self, table: QualifiedName, function: QualifiedName) {
        self.triggers.entry(table).or_default().insert(function);
    }

    /// Adds a table whose foreign keys change its rows when other rows change.
    pub fn add_cascade(&mut self, table: QualifiedName) {
        self.cascades.insert(table);
    }

    /// True if there are no routines.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// True if a name is that of a routine.
    pub fn has(&self, name: &WrittenName) -> bool {
        !self.named(name).is_empty()
    }

    /// The tables that calls of these routines read.
    pub fn reads_of_calls<'n>(
        &self,
        names: impl IntoIterator<Item = &'n WrittenName>,
    ) -> RoutineReads {
        let called = names.into_iter().flat_map(|name| self.named(name));
        self.reads(called.map(|name| (name, true)).collect())
    }

    /// The tables that the triggers of a table read when its rows change. A trigger is for some
    /// kinds of changes, and may have a condition.
    pub fn reads_of_triggers(&self, table: &QualifiedName) -> RoutineReads {
        let called = self.triggers.get(table).into_iter().flatten();
        self.reads(called.map(|name| (name.clone(), false)).collect())
    }

    /// True if rows of a table can change otherwise than a statement says: by a trigger or a key.
    pub fn may_change(&self, table: &QualifiedName) -> bool {
        self.triggers.contains_key(table) || self.cascades.contains(table)
    }

    /// The routines that a name means. Without a schema, those of any schema.
    fn named(&self, name: &WrittenName) -> Vec<QualifiedName> {
        match &name[..] {
            [name] => {
                let all = self.by_name.keys();
                all.filter(|known| known.1 == *name).cloned().collect()
            }
            [.., schema, name] => {
                let name = (schema.clone(), name.clone());
                let known = self.by_name.contains_key(&name);
                known.then_some(name).into_iter().collect()
            }
            [] => Vec::new(),
        }
    }

    /// Follows calls from routine to routine. A routine that is possibly called reads possibly.
    fn reads(&self, mut open: Vec<(QualifiedName, bool)>) -> RoutineReads {
        let mut reads = RoutineReads::new();
        let mut seen = BTreeSet::new();
        while let Some((name, sure)) = open.pop() {
            if !seen.insert((name.clone(), sure)) {
                continue;
            }
            let routines = self.by_name.get(&name).into_iter().flatten();
            for (routine, sure) in routines.map(|one| (one, sure && one.is_plain)) {
                let (tables, calls) = routine.names(self.dialect);
                for table in tables {
                    let known = reads.entry(table).or_default();
                    *known |= sure;
                }
                let called = calls.iter().flat_map(|name| self.named(name));
                open.extend(called.map(|name| (name, sure)));
            }
        }
        reads
    }
}

impl Routine {
    /// The names of tables that it reads, and of the routines that it calls.
    fn names(&self, dialect: SqlDialect) -> (BTreeSet<WrittenName>, BTreeSet<WrittenName>) {
        // The catalog shows a body of the standard's form as BEGIN ATOMIC ... END.
        let body = self.body.trim();
        let atomic = body.strip_prefix("BEGIN ATOMIC");
        let body = atomic.map_or(body, |body| body.trim_end().trim_end_matches("END"));
        match StatementTables::of(body, dialect) {
            Ok(tables) if self.is_plain => (tables.scanned, tables.functions),
            _ => names_in_text(body, dialect),
        }
    }
}

/// The names after `FROM` and `JOIN`, and those before `(`.
fn names_in_text(
    body: &str,
    dialect: SqlDialect,
) -> (BTreeSet<WrittenName>, BTreeSet<WrittenName>) {
    let (mut tables, mut calls) = (BTreeSet::new(), BTreeSet::new());
    let tokens = Tokenizer::new(dialect.parser(), body).tokenize();
    let mut tokens = tokens.unwrap_or_default();
    tokens.retain(|token| !matches!(token, Token::Whitespace(_)));
    let mut at = 0;
    let mut after_from = false;
    while at < tokens.len() {
        let Some((name, end)) = name_at(&tokens, at, dialect) else {
            // FROM a, b: the list goes on.
            after_from &= tokens[at] == Token::Comma;
            at += 1;
            continue;
        };
        let is_keyword = name.len() == 1 && ["from", "join"].contains(&&*name[0].to_lowercase());
        match (is_keyword, tokens.get(end)) {
            (true, _) => after_from = true,
            (false, Some(Token::LParen)) => {
                calls.insert(name);
                after_from = false;
            }
            (false, next) => {
                if after_from {
                    tables.insert(name);
                }
                after_from &= next == Some(&Token::Comma);
            }
        }
        at = end;
    }
    (tables, calls)
}

/// The name that begins at a token, and the place behind it.
fn name_at(tokens: &[Token], begin: usize, dialect: SqlDialect) -> Option<(WrittenName, usize)> {
    let (mut name, mut at) = (Vec::new(), begin);
    while let Some(Token::Word(word)) = tokens.get(at) {
        name.push(dialect.folded(&word.value, word.quote_style.is_some()));
        at += 1;
        match tokens.get(at) {
            Some(Token::Period) => at += 1,
            _ => return Some((name, at)),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routines(all: &[(&str, bool, &str)]) -> Routines {
        let mut routines = Routines::default();
        for (name, is_plain, body) in all {
            let name = ("public".to_owned(), (*name).to_owned());
            routines.add(name, *is_plain, (*body).to_owned());
        }
        routines
    }

    fn reads(routines: &Routines, name: &str) -> Vec<(String, bool)> {
        let found = routines.reads_of_calls([&vec![name.to_owned()]]);
        found
            .into_iter()
            .map(|(name, sure)| (name.join("."), sure))
            .collect()
    }

    #[test]
    fn a_function_in_sql_reads_its_tables_and_those_of_the_functions_that_it_calls() {
        let all = routines(&[
            ("outer", true, "SELECT inner() FROM a; UPDATE c SET x = 1"),
            ("inner", true, "BEGIN ATOMIC\n SELECT max(x) FROM s.b;\nEND"),
        ]);
        let wanted = [("a".to_owned(), true), ("s.b".to_owned(), true)];
        assert_eq!(reads(&all, "outer"), wanted);
        assert_eq!(reads(&all, "unknown"), []);
    }

    #[test]
    fn the_tables_of_plpgsql_are_possibly_read() {
        let body = "DECLARE n int; BEGIN IF x > 0 THEN SELECT count(*) INTO n FROM a, b JOIN \"C\" \
            ON true; ELSE PERFORM f(n); END IF; RETURN n; END";
        let all = routines(&[("p", false, body), ("f", true, "SELECT 1 FROM d")]);
        let names: Vec<(String, bool)> = ["C", "a", "b", "d"]
            .map(|name| (name.to_owned(), false))
            .into();
        assert_eq!(reads(&all, "p"), names);
    }

    #[test]
    fn routines_that_call_each_other_end() {
        let all = routines(&[
            ("one", true, "SELECT two() FROM a"),
            ("two", true, "SELECT one() FROM b"),
        ]);
        assert_eq!(reads(&all, "one").len(), 2);
    }
}
