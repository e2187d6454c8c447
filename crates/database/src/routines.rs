//! The functions, procedures and triggers of the database, and the tables that they use.
//!
//! In: the catalog's texts of routines. Out: the names of tables that a call reads and changes. The
//! statements of a plain routine are all executed, so its reads are sure. Another one, as in
//! PL/pgSQL, has branches, and its text is a language of its own. Each name after `FROM` and `JOIN`
//! is possibly read. Each name after `INSERT INTO`, `UPDATE` and `DELETE FROM` possibly changes.
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
    /// The tables whose foreign keys change their rows when rows of a table change.
    cascades: HashMap<QualifiedName, BTreeSet<QualifiedName>>,
}

/// Names of tables, and whether they are certainly read.
pub type RoutineReads = BTreeMap<WrittenName, bool>;

/// The names in a routine, or in all that a call leads to.
#[derive(Debug, Default)]
struct RoutineNames {
    reads: BTreeSet<WrittenName>,
    writes: BTreeSet<WrittenName>,
    calls: BTreeSet<WrittenName>,
}

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

    /// Adds a table whose foreign keys change its rows when rows of `other` change.
    pub fn add_cascade(&mut self, table: QualifiedName, other: QualifiedName) {
        self.cascades.entry(other).or_default().insert(table);
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
        self.followed(called.map(|name| (name, true)).collect()).0
    }

    /// The tables that calls of these routines possibly change.
    pub fn writes_of_calls<'n>(
        &self,
        names: impl IntoIterator<Item = &'n WrittenName>,
    ) -> BTreeSet<WrittenName> {
        let called = names.into_iter().flat_map(|name| self.named(name));
        self.followed(called.map(|name| (name, false)).collect()).1
    }

    /// The tables that the triggers of a table read when its rows change. A trigger is for some
    /// kinds of changes, and may have a condition.
    pub fn reads_of_triggers(&self, table: &QualifiedName) -> RoutineReads {
        self.followed(self.triggered(table)).0
    }

    /// The tables that the triggers and foreign keys of others possibly change when rows of a table
    /// change.
    pub fn writes_of_triggers(&self, table: &QualifiedName) -> BTreeSet<WrittenName> {
        let mut writes = self.followed(self.triggered(table)).1;
        let cascades = self.cascades.get(table).into_iter().flatten();
        writes.extend(cascades.map(|(schema, name)| vec![schema.clone(), name.clone()]));
        writes
    }

    fn triggered(&self, table: &QualifiedName) -> Vec<(QualifiedName, bool)> {
        let called = self.triggers.get(table).into_iter().flatten();
        called.map(|name| (name.clone(), false)).collect()
    }

    /// True if rows of a table can change otherwise than a statement says: by a trigger or a key.
    pub fn may_change(&self, table: &QualifiedName) -> bool {
        let mut cascades = self.cascades.values();
        self.triggers.contains_key(table) || cascades.any(|tables| tables.contains(table))
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

    /// Follows calls from routine to routine: what they read, and what they possibly change. A
    /// routine that is possibly called reads possibly.
    fn followed(
        &self,
        mut open: Vec<(QualifiedName, bool)>,
    ) -> (RoutineReads, BTreeSet<WrittenName>) {
        let (mut reads, mut writes) = (RoutineReads::new(), BTreeSet::new());
        let mut seen = BTreeSet::new();
        while let Some((name, sure)) = open.pop() {
            if !seen.insert((name.clone(), sure)) {
                continue;
            }
            let routines = self.by_name.get(&name).into_iter().flatten();
            for (routine, sure) in routines.map(|one| (one, sure && one.is_plain)) {
                let names = routine.names(self.dialect);
                for table in names.reads {
                    let known = reads.entry(table).or_default();
                    *known |= sure;
                }
                writes.extend(names.writes);
                let called = names.calls.iter().flat_map(|name| self.named(name));
                open.extend(called.map(|name| (name, sure)));
            }
        }
        (reads, writes)
    }
}

impl Routine {
    /// The names of tables that it uses, and of the routines that it calls.
    fn names(&self, dialect: SqlDialect) -> RoutineNames {
        // The catalog shows a body of the standard's form as BEGIN ATOMIC ... END.
        let body = self.body.trim();
        let atomic = body.strip_prefix("BEGIN ATOMIC");
        let body = atomic.map_or(body, |body| body.trim_end().trim_end_matches("END"));
        match StatementTables::of(body, dialect) {
            Ok(tables) if self.is_plain => RoutineNames {
                reads: tables.scanned,
                writes: tables.writes,
                calls: tables.functions,
            },
            _ => names_in_text(body, dialect),
        }
    }
}

/// The names after `FROM` and `JOIN`, those after words of changes, and those before `(`.
fn names_in_text(body: &str, dialect: SqlDialect) -> RoutineNames {
    let mut names = RoutineNames::default();
    let tokens = Tokenizer::new(dialect.parser(), body).tokenize();
    let mut tokens = tokens.unwrap_or_default();
    tokens.retain(|token| !matches!(token, Token::Whitespace(_)));
    let mut at = 0;
    let mut after_from = false;
    let mut words = [String::new(), String::new()];
    while at < tokens.len() {
        let Some((name, end)) = name_at(&tokens, at, dialect) else {
            // FROM a, b: the list goes on.
            after_from &= tokens[at] == Token::Comma;
            at += 1;
            continue;
        };
        let word = match &name[..] {
            [one] => one.to_lowercase(),
            _ => String::new(),
        };
        let is_changed = is_change([&words[0], &words[1]]);
        match (&*word, tokens.get(end)) {
            ("from" | "join", _) => after_from = true,
            // The columns of an insertion follow its table.
            (_, Some(Token::LParen)) if !is_changed => {
                names.calls.insert(name);
                after_from = false;
            }
            (_, next) => {
                names.writes.extend(is_changed.then(|| name.clone()));
                names.reads.extend(after_from.then_some(name));
                after_from &= next == Some(&Token::Comma);
            }
        }
        words = [std::mem::take(&mut words[1]), word];
        at = end;
    }
    names
}

/// True if the name after these two words is that of a table that is changed.
fn is_change(words: [&str; 2]) -> bool {
    match words {
        ["insert" | "replace" | "merge", "into"] | ["delete", "from"] => true,
        // ON CONFLICT DO UPDATE SET, FOR UPDATE OF
        [_, "truncate"] | ["update", "only"] | ["truncate", "table"] => true,
        [before, "update"] => !["do", "for", "key"].contains(&before),
        _ => false,
    }
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
    fn a_function_possibly_changes_the_tables_of_its_statements_and_of_the_functions_it_calls() {
        let body = "BEGIN IF x THEN INSERT INTO a (x) VALUES (1) ON CONFLICT DO UPDATE SET x = 2; \
            ELSE DELETE FROM s.b; PERFORM f(1) FROM r FOR UPDATE; END IF; UPDATE \"C\" SET x = 1; END";
        let all = routines(&[("p", false, body), ("f", true, "UPDATE d SET x = 1")]);
        let found = all.writes_of_calls([&vec!["p".to_owned()]]).into_iter();
        let found: Vec<String> = found.map(|name| name.join(".")).collect();
        assert_eq!(found, ["C", "a", "d", "s.b"]);
    }

    #[test]
    fn a_change_possibly_changes_the_tables_of_triggers_and_of_foreign_keys() {
        let mut all = routines(&[("fired", false, "BEGIN INSERT INTO journal VALUES (1); END")]);
        let name = |name: &str| ("public".to_owned(), name.to_owned());
        all.add_trigger(name("a"), name("fired"));
        all.add_cascade(name("child"), name("a"));
        let found = all.writes_of_triggers(&name("a")).into_iter();
        let found: Vec<String> = found.map(|name| name.join(".")).collect();
        assert_eq!(found, ["journal", "public.child"]);
        assert!(all.may_change(&name("child")) && !all.may_change(&name("journal")));
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
