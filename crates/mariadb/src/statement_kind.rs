//! The kinds of statements of MariaDB, by their first words.

use backstory_database::statement_tables::StatementTables;

/// True for the first two words of a statement that begins a transaction.
pub(crate) fn begins_transaction(first: &str, second: &str) -> bool {
    match first {
        "BEGIN" => true,
        "START" => second == "TRANSACTION",
        "XA" => ["START", "BEGIN"].contains(&second),
        _ => false,
    }
}

/// True for the first word of a statement that commits what was before it.
pub(crate) fn is_definition(first: &str) -> bool {
    [
        "CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE", "GRANT", "REVOKE", "OPTIMIZE", "REPAIR",
    ]
    .contains(&first)
}

/// True for the first word of a statement that uses no table, unless it opened one.
pub(crate) fn has_no_tables(first: &str) -> bool {
    const WORDS: [&str; 30] = [
        "SET",
        "SHOW",
        "USE",
        "BEGIN",
        "START",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT",
        "RELEASE",
        "XA",
        "PREPARE",
        "EXECUTE",
        "DEALLOCATE",
        "LOCK",
        "UNLOCK",
        "FLUSH",
        "KILL",
        "PURGE",
        "RESET",
        "CHANGE",
        "STOP",
        "DO",
        "INSTALL",
        "UNINSTALL",
        "DESCRIBE",
        "DESC",
        "EXPLAIN",
        "HELP",
        "SIGNAL",
        "BINLOG",
    ];
    WORDS.contains(&first)
}

/// True for a selection of values that are in no table, as `SELECT @@version`.
pub(crate) fn uses_nothing(tables: &StatementTables) -> bool {
    let calls = tables.functions.iter().any(|name| name.len() > 1);
    tables.reads.is_empty() && tables.writes.is_empty() && tables.file.is_none() && !calls
}

/// The value that a statement gives `autocommit`.
pub(crate) fn autocommit_of(text: &str) -> Option<bool> {
    let text = text.to_ascii_lowercase();
    let rest = text.trim_start().strip_prefix("set")?;
    let (before, value) = rest.split_once("autocommit")?;
    if before.contains("global") {
        return None;
    }
    let value = value
        .trim_start_matches([' ', ':', '=', '`'])
        .split([',', ';', ' '])
        .next()?;
    match value {
        "1" | "on" | "true" => Some(true),
        "0" | "off" | "false" => Some(false),
        _ => None,
    }
}
