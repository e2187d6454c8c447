//! The functions, procedures and triggers of the database, and the tables that they read.
//!
//! In: the catalog's texts of routines. Out: the names of tables that a call reads. The statements
//! of a routine in SQL are all executed, so its reads are sure. A routine in PL/pgSQL has branches,
//! and its text is a language of its own: each name after `FROM` and `JOIN` is possibly read.
//!
//! Absent: routines in other languages, and statements that a routine builds as text.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

use crate::Error;
use crate::connection::Connection;
use crate::statement_tables::{StatementTables, WrittenName};

const ROUTINES: &str = "SELECT n.nspname, p.proname, l.lanname, \
    coalesce(nullif(p.prosrc, ''), pg_get_function_sqlbody(p.oid), '') \
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace \
    JOIN pg_language l ON l.oid = p.prolang \
    WHERE l.lanname IN ('sql', 'plpgsql') AND length(p.prosrc) < 65536 \
      AND n.nspname NOT IN ('pg_catalog', 'information_schema')";

const TRIGGERS: &str = "SELECT tn.nspname, t.relname, pn.nspname, p.proname FROM pg_trigger g \
    JOIN pg_class t ON t.oid = g.tgrelid JOIN pg_namespace tn ON tn.oid = t.relnamespace \
    JOIN pg_proc p ON p.oid = g.tgfoid JOIN pg_namespace pn ON pn.oid = p.pronamespace \
    WHERE NOT g.tgisinternal AND g.tgenabled <> 'D'";

const CASCADES: &str = "SELECT n.nspname, t.relname FROM pg_constraint c \
    JOIN pg_class t ON t.oid = c.conrelid JOIN pg_namespace n ON n.oid = t.relnamespace \
    WHERE c.contype = 'f' AND (c.confdeltype IN ('c', 'n', 'd') OR c.confupdtype IN ('c', 'n', 'd'))";

/// Schema and name of a routine or table.
type QualifiedName = (String, String);

/// A function or procedure. Several may share a name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Routine {
    is_sql: bool,
    body: String,
}

/// All functions, procedures and triggers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Routines {
    /// By schema and name.
    by_name: HashMap<QualifiedName, Vec<Routine>>,
    /// The functions that changes of a table call.
    triggers: HashMap<QualifiedName, BTreeSet<QualifiedName>>,
    /// Tables whose foreign keys change their rows when other rows change.
    cascades: BTreeSet<QualifiedName>,
}

/// Names of tables, and whether they are certainly read.
pub(crate) type RoutineReads = BTreeMap<WrittenName, bool>;

impl Routines {
    /// Reads the catalog.
    pub(crate) fn read(connection: &mut Connection) -> Result<Routines, Error> {
        let mut routines = Routines::default();
        for row in connection.query(ROUTINES)? {
            let mut texts = row.into_iter().map(Option::unwrap_or_default);
            let mut next = || texts.next().unwrap_or_default();
            let name = (next(), next());
            let is_sql = next() == "sql";
            let body = next();
            let same_name = routines.by_name.entry(name).or_default();
            same_name.push(Routine { is_sql, body });
        }
        for row in connection.query(TRIGGERS)? {
            let mut texts = row.into_iter().map(Option::unwrap_or_default);
            let mut next = || texts.next().unwrap_or_default();
            let (table, function) = ((next(), next()), (next(), next()));
            routines.triggers.entry(table).or_default().insert(function);
        }
        for row in connection.query(CASCADES)? {
            let mut texts = row.into_iter().map(Option::unwrap_or_default);
            let mut next = || texts.next().unwrap_or_default();
            routines.cascades.insert((next(), next()));
        }
        Ok(routines)
    }

    /// The tables that calls of these routines read.
    pub(crate) fn reads_of_calls<'n>(
        &self,
        names: impl IntoIterator<Item = &'n WrittenName>,
    ) -> RoutineReads {
        let called = names.into_iter().flat_map(|name| self.named(name));
        self.reads(called.map(|name| (name, true)).collect())
    }

    /// The tables that the triggers of a table read when its rows change. A trigger is for some
    /// kinds of changes, and may have a condition.
    pub(crate) fn reads_of_triggers(&self, table: &QualifiedName) -> RoutineReads {
        let called = self.triggers.get(table).into_iter().flatten();
        self.reads(called.map(|name| (name.clone(), false)).collect())
    }

    /// True if rows of a table can change otherwise than a statement says: by a trigger or a key.
    pub(crate) fn may_change(&self, table: &QualifiedName) -> bool {
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
            for (routine, sure) in routines.map(|one| (one, sure && one.is_sql)) {
                let (tables, calls) = routine.names();
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
    fn names(&self) -> (BTreeSet<WrittenName>, BTreeSet<WrittenName>) {
        // The catalog shows a body of the standard's form as BEGIN ATOMIC ... END.
        let body = self.body.trim();
        let atomic = body.strip_prefix("BEGIN ATOMIC");
        let body = atomic.map_or(body, |body| body.trim_end().trim_end_matches("END"));
        match StatementTables::of(body) {
            Ok(tables) if self.is_sql => (tables.scanned, tables.functions),
            _ => names_in_text(body),
        }
    }
}

/// The names after `FROM` and `JOIN`, and those before `(`.
fn names_in_text(body: &str) -> (BTreeSet<WrittenName>, BTreeSet<WrittenName>) {
    let (mut tables, mut calls) = (BTreeSet::new(), BTreeSet::new());
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, body).tokenize();
    let mut tokens = tokens.unwrap_or_default();
    tokens.retain(|token| !matches!(token, Token::Whitespace(_)));
    let mut at = 0;
    let mut after_from = false;
    while at < tokens.len() {
        let Some((name, end)) = name_at(&tokens, at) else {
            // FROM a, b: the list goes on.
            after_from &= tokens[at] == Token::Comma;
            at += 1;
            continue;
        };
        let is_keyword = name.len() == 1 && ["from", "join"].contains(&&*name[0]);
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
fn name_at(tokens: &[Token], begin: usize) -> Option<(WrittenName, usize)> {
    let (mut name, mut at) = (Vec::new(), begin);
    while let Some(Token::Word(word)) = tokens.get(at) {
        name.push(match word.quote_style {
            Some(_) => word.value.clone(),
            None => word.value.to_lowercase(),
        });
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
        for (name, is_sql, body) in all {
            let name = ("public".to_owned(), (*name).to_owned());
            let routine = Routine {
                is_sql: *is_sql,
                body: (*body).to_owned(),
            };
            routines.by_name.entry(name).or_default().push(routine);
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
