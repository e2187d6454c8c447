//! The words that a statement begins with.
//!
//! In: the text of a statement. Out: its words, or the first two. They tell what kind of statement
//! it is, without the cost of a parser.

use crate::sql_dialect::SqlDialect;

/// The first two words of a statement in upper case, without comments before them. A word that the
/// statement does not have is empty.
pub fn first_words(text: &str, dialect: SqlDialect) -> (String, String) {
    let mut words = words(text, dialect);
    let mut next = || words.next().unwrap_or_default().to_ascii_uppercase();
    (next(), next())
}

/// The words of a statement as they are written, without comments before them.
pub(crate) fn words(text: &str, dialect: SqlDialect) -> impl Iterator<Item = &str> {
    let mut rest = text.trim_start();
    while let Some(after) = behind_comment(rest, dialect) {
        rest = after.trim_start();
    }
    let end = |letter: char| letter.is_whitespace() || ";(/-".contains(letter);
    rest.split(end).filter(|word| !word.is_empty())
}

/// The text behind the comment that a text begins with. `None`: it begins with something else.
fn behind_comment(text: &str, dialect: SqlDialect) -> Option<&str> {
    let is_postgres = dialect == SqlDialect::Postgres;
    let hash = || text.strip_prefix('#').filter(|_| !is_postgres);
    if let Some(line) = text.strip_prefix("--").or_else(hash) {
        return Some(line.split_once('\n').map_or("", |(_, after)| after));
    }
    let comment = text.strip_prefix("/*")?;
    // MariaDB executes a comment with a mark.
    if !is_postgres && comment.starts_with(['!', 'M']) {
        return None;
    }
    let (mut at, mut depth) = (0, 1);
    while depth > 0 {
        match comment.as_bytes().get(at..at + 2) {
            // Comments of PostgreSQL contain others.
            Some(b"/*") if is_postgres => (at, depth) = (at + 2, depth + 1),
            Some(b"*/") => (at, depth) = (at + 2, depth - 1),
            Some(_) => at += 1,
            None => return Some(""),
        }
    }
    Some(&comment[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_words_of_a_statement_are_behind_its_comments() {
        let maria = SqlDialect::MariaDb { lower_case: false };
        for (text, postgres, mariadb) in [
            (
                "/* x */ start transaction;",
                ("START", "TRANSACTION"),
                ("START", "TRANSACTION"),
            ),
            (" commit;", ("COMMIT", ""), ("COMMIT", "")),
            ("COMMIT/* x */", ("COMMIT", "*"), ("COMMIT", "*")),
            (
                "-- commit\r\n  select(1)",
                ("SELECT", "1)"),
                ("SELECT", "1)"),
            ),
            ("# x\nEND", ("#", "X"), ("END", "")),
            ("/* a /* b */ c */ END", ("END", ""), ("C", "*")),
            ("/*! COMMIT */ END", ("END", ""), ("*!", "COMMIT")),
            ("/* ä", ("", ""), ("", "")),
            ("", ("", ""), ("", "")),
        ] {
            for (dialect, (first, second)) in [(SqlDialect::Postgres, postgres), (maria, mariadb)] {
                let wanted = (first.to_owned(), second.to_owned());
                assert_eq!(first_words(text, dialect), wanted, "{text}");
            }
        }
    }
}
