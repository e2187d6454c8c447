//! The schemas in which a session looks for names (`search_path`).
//!
//! In: the server's defaults when the watch begins, and the statements of all sessions. Out: the
//! schemas of a session at each of its statements, in their order.
//!
//! A session begins with the default of its user, of the database or of the server. `SET`, `RESET`,
//! `DISCARD ALL` and `set_config` change its path. A transaction that is undone gives the former
//! path back, and `SET LOCAL` ends with its transaction.
//!
//! Absent: the options of a connection, changes by `SET` clauses of functions, and what a session
//! set before the watch. The log has none of these.

use std::collections::HashMap;

use backstory_database::error::Error;

use crate::connection::Connection;
use crate::setting_statement::{PathChange, path_changes, schemas};

/// The default of a server whose files set none.
const DEFAULT: &str = "\"$user\", public";

/// The defaults of roles (of this database or of all), of the database, and of all roles. A later
/// one counts before an earlier one.
const SET: &str = "SELECT coalesce(r.rolname, ''), substr(c, length('search_path=') + 1) \
    FROM pg_db_role_setting s LEFT JOIN pg_roles r ON r.oid = s.setrole, unnest(s.setconfig) c \
    WHERE c LIKE 'search_path=%' AND s.setdatabase IN \
      (0, (SELECT oid FROM pg_database WHERE datname = current_database())) \
    ORDER BY s.setrole <> 0, s.setdatabase <> 0";

const IN_FILES: &str = "SELECT setting FROM pg_file_settings WHERE name = 'search_path' AND applied \
    ORDER BY seqno DESC LIMIT 1";

/// The paths of all sessions.
#[derive(Debug)]
pub(crate) struct SearchPaths {
    /// That of a user without one of its own.
    other: Vec<String>,
    by_user: HashMap<String, Vec<String>>,
    /// Sessions that changed their path, by their keys.
    sessions: HashMap<String, SessionPath>,
}

/// The path of a session that changed it. `None` stands for the default.
#[derive(Debug, Clone, Default)]
struct SessionPath {
    of_session: Option<Vec<String>>,
    /// The path until the end of the transaction.
    of_transaction: Option<Option<Vec<String>>>,
    /// The session's path before the present transaction, if that changed it.
    before: Option<Option<Vec<String>>>,
}

impl Default for SearchPaths {
    fn default() -> SearchPaths {
        SearchPaths {
            other: schemas(DEFAULT),
            by_user: HashMap::new(),
            sessions: HashMap::new(),
        }
    }
}

impl SearchPaths {
    /// Reads the server's defaults.
    pub(crate) fn read(connection: &mut Connection) -> Result<SearchPaths, Error> {
        let mut found = SearchPaths::default();
        let text = |row: Vec<Option<String>>, at: usize| row.into_iter().nth(at).flatten();
        if let Some(row) = connection.query(IN_FILES)?.pop() {
            found.other = schemas(&text(row, 0).unwrap_or_default());
        }
        for row in connection.query(SET)? {
            let path = schemas(&text(row.clone(), 1).unwrap_or_default());
            match text(row, 0).unwrap_or_default() {
                user if user.is_empty() => found.other = path,
                user => drop(found.by_user.insert(user, path)),
            }
        }
        Ok(found)
    }

    /// Takes a statement of a session, and returns the schemas in which its names are looked for. A
    /// text can have several statements, of which the first ones set the path for the others.
    pub(crate) fn of_statement(&mut self, session: &str, user: &str, text: &str) -> Vec<String> {
        let changes = path_changes(text);
        let (first, later): (Vec<_>, Vec<_>) = changes.into_iter().partition(|(_, leads)| *leads);
        self.change(session, first);
        let path = self.of(session, user);
        self.change(session, later);
        path
    }

    /// The transaction of a session has ended.
    pub(crate) fn end_transaction(&mut self, session: &str, is_undone: bool) {
        let Some(path) = self.sessions.get_mut(session) else {
            return;
        };
        path.of_transaction = None;
        if let Some(before) = path.before.take().filter(|_| is_undone) {
            path.of_session = before;
        }
    }

    /// A session has ended.
    pub(crate) fn forget(&mut self, session: &str) {
        self.sessions.remove(session);
    }

    fn change(&mut self, session: &str, changes: Vec<(PathChange, bool)>) {
        for (change, _) in changes {
            let path = self.sessions.entry(session.to_owned()).or_default();
            if change.is_local {
                path.of_transaction = Some(change.path);
            } else {
                path.before.get_or_insert_with(|| path.of_session.clone());
                path.of_session = change.path;
                path.of_transaction = None;
            }
        }
    }

    fn of(&self, session: &str, user: &str) -> Vec<String> {
        let own = self.sessions.get(session);
        let own = own.and_then(|path| {
            let local = path.of_transaction.as_ref();
            local.unwrap_or(&path.of_session).as_ref()
        });
        let path = own.unwrap_or_else(|| self.by_user.get(user).unwrap_or(&self.other));
        let named = path.iter().map(|schema| match schema.as_str() {
            "$user" => user.to_owned(),
            schema => schema.to_owned(),
        });
        // The server's own schema is looked in first, unless the path names it.
        let system = "pg_catalog".to_owned();
        let first = (!path.contains(&system)).then_some(system);
        first.into_iter().chain(named).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The path of a query after these statements, each of which is a transaction of its own.
    fn after(statements: &[&str]) -> String {
        let mut paths = SearchPaths::default();
        for text in statements {
            paths.of_statement("s", "ann", text);
            paths.end_transaction("s", false);
        }
        paths.of_statement("s", "ann", "SELECT * FROM a").join(" ")
    }

    #[test]
    fn a_session_looks_in_the_schemas_that_it_set_last() {
        let usual = "pg_catalog ann public";
        assert_eq!(after(&[]), usual);
        assert_eq!(
            after(&["SET search_path TO x, public"]),
            "pg_catalog x public"
        );
        assert_eq!(after(&["set schema 'x'"]), "pg_catalog x");
        assert_eq!(
            after(&["SET search_path = x, pg_catalog"]),
            "x pg_catalog",
            "the server's own schema at its place"
        );
        assert_eq!(after(&["SET search_path TO x", "RESET ALL"]), usual);
        assert_eq!(after(&["SET search_path TO x", "DISCARD ALL"]), usual);
        assert_eq!(after(&["SET LOCAL search_path TO x"]), usual);
        assert_eq!(
            after(&["SELECT pg_catalog.set_config('search_path', '', false)"]),
            "pg_catalog"
        );
    }

    #[test]
    fn an_undone_transaction_gives_the_former_path_back() {
        let mut paths = SearchPaths::default();
        let mut told = |text: &str| paths.of_statement("s", "ann", text).join(" ");
        told("SET search_path TO old");
        paths.end_transaction("s", false);
        let mut told = |text: &str| paths.of_statement("s", "ann", text).join(" ");
        told("BEGIN");
        told("SET search_path TO new");
        told("SET LOCAL search_path TO inner");
        assert_eq!(told("SELECT 1"), "pg_catalog inner");
        assert_eq!(told("SET search_path TO newer"), "pg_catalog newer");
        paths.end_transaction("s", true);
        let mut told = |text: &str| paths.of_statement("s", "ann", text).join(" ");
        assert_eq!(told("SELECT 1"), "pg_catalog old");
        paths.forget("s");
        let path = paths.of_statement("s", "ann", "SELECT 1");
        assert_eq!(path, ["pg_catalog", "ann", "public"]);
    }

    #[test]
    fn the_first_statements_of_a_text_set_the_path_of_the_others() {
        let mut paths = SearchPaths::default();
        let path = paths.of_statement("s", "ann", "SET search_path TO x; SELECT * FROM a");
        assert_eq!(path, ["pg_catalog", "x"]);
        let path = paths.of_statement("s", "ann", "SELECT * FROM a; SET search_path TO y");
        assert_eq!(path, ["pg_catalog", "x"]);
        let path = paths.of_statement("s", "ann", "SELECT * FROM a");
        assert_eq!(path, ["pg_catalog", "y"]);
        // Other sessions have paths of their own.
        let path = paths.of_statement("t", "ann", "SELECT * FROM a");
        assert_eq!(path, ["pg_catalog", "ann", "public"]);
    }

    #[test]
    fn a_user_has_a_default_of_its_own() {
        let mut paths = SearchPaths::default();
        paths
            .by_user
            .insert("ann".to_owned(), schemas("sales, \"$user\""));
        let of = |paths: &mut SearchPaths, user: &str| paths.of_statement(user, user, "SELECT 1");
        assert_eq!(of(&mut paths, "ann"), ["pg_catalog", "sales", "ann"]);
        assert_eq!(of(&mut paths, "bob"), ["pg_catalog", "bob", "public"]);
    }
}
