//! The names in a statement of MariaDB.
//!
//! In: the text of a statement. Out: its tables and its file. `SELECT ... INTO OUTFILE` and
//! `LOAD DATA` are not in the parser's dialect: their parts are taken out here, by words.

use backstory_database::sql_dialect::{LONGEST_STATEMENT, SqlDialect};
use backstory_database::statement_tables::{CopiedFile, StatementTables};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, Tokenizer, Word};

/// The tables, columns and file of a statement.
///
/// # Errors
///
/// The parser's message.
pub(crate) fn names_of(text: &str, dialect: SqlDialect) -> Result<StatementTables, String> {
    let plain = || StatementTables::of(text, dialect);
    let has = |word: &str| text.to_ascii_lowercase().contains(word);
    // The parser refuses a longer one.
    if text.len() > LONGEST_STATEMENT || !has("file") {
        return plain();
    }
    let Ok(tokens) = Tokenizer::new(dialect.parser(), text).tokenize() else {
        return plain();
    };
    let tokens: Vec<Token> = tokens
        .into_iter()
        .filter(|token| !matches!(token, Token::Whitespace(_)))
        .collect();
    if is_word(tokens.first(), "load") {
        return loaded(&tokens, dialect).map_or_else(plain, Ok);
    }
    let Some((rest, path)) = without_outfile(&tokens) else {
        return plain();
    };
    let mut names = StatementTables::of(&rest, dialect)?;
    names.file = Some(CopiedFile {
        path,
        written: true,
    });
    Ok(names)
}

/// The first two words of a statement of MariaDB.
pub(crate) fn first_words(text: &str) -> (String, String) {
    let dialect = SqlDialect::MariaDb { lower_case: false };
    backstory_database::first_words::first_words(text, dialect)
}

fn is_word(token: Option<&Token>, wanted: &str) -> bool {
    matches!(token, Some(Token::Word(Word { value, quote_style: None, .. })) if value.eq_ignore_ascii_case(wanted))
}

fn literal(token: Option<&Token>) -> Option<String> {
    match token? {
        Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => Some(text.clone()),
        Token::Word(Word {
            value,
            quote_style: Some('"'),
            ..
        }) => Some(value.clone()),
        _ => None,
    }
}

/// The statement without its `INTO OUTFILE`, and the file's path.
fn without_outfile(tokens: &[Token]) -> Option<(String, String)> {
    let begin = (0..tokens.len()).find(|at| {
        let is_file = ["outfile", "dumpfile"];
        is_word(tokens.get(*at), "into")
            && is_file.iter().any(|word| is_word(tokens.get(at + 1), word))
    })?;
    let path = literal(tokens.get(begin + 2))?;
    // Then come the options of the file, and then FROM, or the end.
    let mut end = begin + 3;
    while let Some(token) = tokens.get(end) {
        let goes_on = matches!(token, Token::Word(word) if word.keyword == Keyword::FROM)
            || matches!(token, Token::SemiColon | Token::RParen);
        if goes_on {
            break;
        }
        end += 1;
    }
    let kept = tokens[..begin].iter().chain(&tokens[end..]);
    let words: Vec<String> = kept.map(ToString::to_string).collect();
    Some((words.join(" "), path))
}

/// The file and table of `LOAD DATA`.
fn loaded(tokens: &[Token], dialect: SqlDialect) -> Option<StatementTables> {
    let at = |word: &str| (0..tokens.len()).find(|at| is_word(tokens.get(*at), word));
    let infile = at("infile")?;
    let path = literal(tokens.get(infile + 1))?;
    let is_local = tokens[..infile]
        .iter()
        .any(|token| is_word(Some(token), "local"));
    let table = at("table").filter(|table| *table > infile)?;
    let mut name = Vec::new();
    let mut next = table + 1;
    while let Some(Token::Word(word)) = tokens.get(next) {
        name.push(dialect.folded(&word.value, word.quote_style.is_some()));
        match tokens.get(next + 1) {
            Some(Token::Period) => next += 2,
            _ => break,
        }
    }
    let replaces = tokens.iter().any(|token| is_word(Some(token), "replace"));
    let change = loading_change(tokens, table + 1, next + 1);
    let mut names = StatementTables {
        shape: StatementTables::of(&change, dialect)
            .map(|change| change.shape)
            .unwrap_or_default(),
        ..StatementTables::default()
    };
    names.replaced.extend(replaces.then(|| name.clone()));
    names.row_targets.insert(name.clone());
    names.writes.insert(name);
    // The client reads a local file, and sends it through the connection.
    names.file = (!is_local).then_some(CopiedFile {
        path,
        written: false,
    });
    Some(names)
}

/// Statements with the columns to which `LOAD DATA` gives values: those of its list, or all, and
/// those of `SET`. Variables in the list are no columns. The table's name is between two tokens.
fn loading_change(tokens: &[Token], table: usize, end: usize) -> String {
    let text = |tokens: &[Token]| -> String {
        let words: Vec<String> = tokens.iter().map(ToString::to_string).collect();
        words.join(" ")
    };
    let table = text(tokens.get(table..end).unwrap_or_default());
    let mut rest = tokens.get(end..).unwrap_or_default();
    if is_word(rest.first(), "partition") {
        let close = rest.iter().position(|token| *token == Token::RParen);
        rest = close.map_or(&[], |close| &rest[close + 1..]);
    }
    // `CHARACTER SET utf8` precedes the list.
    let set = (0..rest.len()).find(|at| {
        is_word(rest.get(*at), "set") && *at > 0 && !is_word(rest.get(*at - 1), "character")
    });
    let set = set.unwrap_or(rest.len());
    let list = rest[..set].iter().position(|token| *token == Token::LParen);
    let listed = list.map(|open| {
        let words = rest[open + 1..set].iter();
        let words = words.take_while(|token| **token != Token::RParen);
        let is_column =
            |token: &&Token| matches!(token, Token::Word(word) if !word.value.starts_with('@'));
        let columns = words.filter(is_column).cloned();
        columns.collect::<Vec<Token>>()
    });
    let load = match listed {
        None => format!("COPY {table} FROM ''"),
        Some(columns) if columns.is_empty() => String::new(),
        Some(columns) => {
            let names: Vec<String> = columns.iter().map(ToString::to_string).collect();
            format!("COPY {table} ({}) FROM ''", names.join(", "))
        }
    };
    match rest.get(set + 1..) {
        Some(assigned) if !assigned.is_empty() => {
            format!("{load}; UPDATE {table} SET {}", text(assigned))
        }
        _ => load,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIALECT: SqlDialect = SqlDialect::MariaDb { lower_case: false };

    fn names(text: &str) -> (Vec<String>, Vec<String>, Option<(String, bool)>) {
        let found = names_of(text, DIALECT).unwrap();
        let list = |names: &std::collections::BTreeSet<Vec<String>>| {
            names.iter().map(|name| name.join(".")).collect()
        };
        let file = found.file.map(|file| (file.path, file.written));
        (list(&found.reads), list(&found.writes), file)
    }

    #[test]
    fn a_file_that_a_selection_writes_is_known_wherever_it_stands() {
        for text in [
            "SELECT * INTO OUTFILE '/tmp/x' FIELDS TERMINATED BY ',' FROM a",
            "SELECT * FROM a INTO OUTFILE '/tmp/x'",
            "select x from a where y = 'file' into outfile '/tmp/x' lines terminated by '\\n'",
            "SELECT x INTO DUMPFILE '/tmp/x' FROM a",
        ] {
            let file = Some(("/tmp/x".to_owned(), true));
            assert_eq!(names(text), (vec!["a".to_owned()], vec![], file), "{text}");
        }
    }

    #[test]
    fn a_file_that_is_loaded_is_the_servers_unless_it_is_local() {
        let file = Some(("/tmp/x".to_owned(), false));
        let text = "LOAD DATA INFILE '/tmp/x' REPLACE INTO TABLE bank.a FIELDS TERMINATED BY ','";
        assert_eq!(names(text), (vec![], vec!["bank.a".to_owned()], file));
        let text = "LOAD DATA LOCAL INFILE 'x' INTO TABLE `A` (id, y)";
        assert_eq!(names(text), (vec![], vec!["A".to_owned()], None));
        assert_eq!(names("SELECT file FROM a").2, None);
        let text = "LOAD DATA INFILE 'x' INTO TABLE";
        assert!(names_of(text, DIALECT).is_ok());
    }

    #[test]
    fn a_statement_that_would_take_gigabytes_of_memory_is_refused() {
        let text = format!(
            "SELECT '{}' INTO OUTFILE 'x'",
            "x".repeat(LONGEST_STATEMENT)
        );
        assert!(names_of(&text, DIALECT).is_err());
    }

    #[test]
    fn names_keep_their_case() {
        let (reads, writes, _) = names("INSERT INTO A SELECT b.X FROM Bank.`c d` AS b");
        assert_eq!(
            (reads, writes),
            (vec!["Bank.c d".to_owned()], vec!["A".to_owned()])
        );
        let (reads, ..) = names("WITH t AS (SELECT * FROM a) SELECT * FROM t JOIN b USING (id)");
        assert_eq!(reads, ["a", "b"]);
    }
}
