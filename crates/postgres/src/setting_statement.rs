//! Statements that set `search_path`.
//!
//! In: the text of one statement or several. Out: the changes of the path in it. A text without a
//! word of such a statement costs one search.
//!
//! Absent: changes in a text that is too long for the parser. Its run says that it has a gap.

use backstory_database::sql_dialect::LONGEST_STATEMENT;

/// Most schemas of a path that are kept. Each statement has a copy of its path.
const MOST_SCHEMAS: usize = 100;
/// The longest name in bytes. The server cuts longer ones (`NAMEDATALEN`).
const LONGEST_NAME: usize = 63;

/// A change of the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathChange {
    /// The schemas. `None`: the default again.
    pub(crate) path: Option<Vec<String>>,
    /// Only until the end of the transaction.
    pub(crate) is_local: bool,
}

/// The changes in a text, each with whether only such changes come before it.
pub(crate) fn path_changes(text: &str) -> Vec<(PathChange, bool)> {
    // Tokens take many times the memory of their text.
    if text.len() > LONGEST_STATEMENT {
        return Vec::new();
    }
    let may_set = ["search_path", "schema", "reset", "discard"];
    if !may_set.iter().any(|word| has(text, word)) {
        return Vec::new();
    }
    let mut leads = true;
    let mut found = Vec::new();
    for statement in tokens(text).split(|token| *token == Token::Sign(';')) {
        match change(statement) {
            Some(change) => found.push((change, leads)),
            None => leads &= statement.is_empty(),
        }
    }
    found
}

/// The schemas in the value of a setting.
pub(crate) fn schemas(value: &str) -> Vec<String> {
    listed(&tokens(value))
}

/// True if a text has a word, whatever its case.
fn has(text: &str, word: &str) -> bool {
    let mut parts = text.as_bytes().windows(word.len());
    parts.any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// A name or a key word, in small letters unless it is quoted.
    Word(String),
    /// A text in single quotes.
    Text(String),
    Sign(char),
}

impl Token {
    fn is(&self, word: &str) -> bool {
        matches!(self, Token::Word(own) if own == word)
    }
}

/// The tokens of a text, without comments.
fn tokens(mut rest: &str) -> Vec<Token> {
    let mut found = Vec::new();
    while let Some(first) = rest.chars().next() {
        if let Some((inside, more)) = in_dollars(rest) {
            found.push(Token::Text(inside.to_owned()));
            rest = more;
            continue;
        }
        let behind = &rest[first.len_utf8()..];
        rest = match first {
            '-' if behind.starts_with('-') => behind.split_once('\n').map_or("", |(_, more)| more),
            '/' if behind.starts_with('*') => {
                behind[1..].split_once("*/").map_or("", |(_, more)| more)
            }
            '\'' | '"' => {
                let (inside, more) = quoted(behind, first);
                found.push(match first {
                    '"' => Token::Word(inside),
                    _ => Token::Text(inside),
                });
                more
            }
            first if is_of_name(first) => {
                let end = rest.find(|letter| !is_of_name(letter));
                let (word, more) = rest.split_at(end.unwrap_or(rest.len()));
                found.push(Token::Word(word.to_lowercase()));
                more
            }
            first if first.is_whitespace() => behind,
            other => {
                found.push(Token::Sign(other));
                behind
            }
        };
    }
    found
}

/// The text until a quote, and what is behind it. A doubled quote is one of the text.
fn quoted(text: &str, quote: char) -> (String, &str) {
    let mut inside = String::new();
    let mut rest = text;
    while let Some((part, more)) = rest.split_once(quote) {
        inside.push_str(part);
        match more.strip_prefix(quote) {
            Some(behind) => {
                inside.push(quote);
                rest = behind;
            }
            None => return (inside, more),
        }
    }
    inside.push_str(rest);
    (inside, "")
}

/// The text between `$TAG$` and `$TAG$`, and what is behind it.
fn in_dollars(text: &str) -> Option<(&str, &str)> {
    let (tag, _) = text.strip_prefix('$')?.split_once('$')?;
    let is_tag = tag.chars().all(is_of_name) && !tag.starts_with(|first: char| first.is_numeric());
    let mark = is_tag.then(|| &text[..tag.len() + 2])?;
    Some(
        text[mark.len()..]
            .split_once(mark)
            .unwrap_or((&text[mark.len()..], "")),
    )
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '$'
}

/// The schemas in a list, the first [`MOST_SCHEMAS`] of them.
fn listed(list: &[Token]) -> Vec<String> {
    let named = list.iter().filter_map(schema);
    named.take(MOST_SCHEMAS).collect()
}

fn schema(token: &Token) -> Option<String> {
    let (Token::Word(name) | Token::Text(name)) = token else {
        return None;
    };
    let ends = (0..=LONGEST_NAME.min(name.len())).rev();
    let mut ends = ends.filter(|end| name.is_char_boundary(*end));
    let name = name.get(..ends.next()?)?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// The change of one statement.
fn change(statement: &[Token]) -> Option<PathChange> {
    let default = PathChange {
        path: None,
        is_local: false,
    };
    match statement {
        [first, what] if first.is("reset") => {
            (what.is("search_path") || what.is("all")).then_some(default)
        }
        [first, what] if first.is("discard") => what.is("all").then_some(default),
        [first, rest @ ..] if first.is("set") => set(rest),
        [first, rest @ ..] if first.is("select") => set_config(rest),
        _ => None,
    }
}

/// The change behind the word `SET`.
fn set(words: &[Token]) -> Option<PathChange> {
    let (is_local, words) = match words {
        [scope, rest @ ..] if scope.is("local") => (true, rest),
        [scope, rest @ ..] if scope.is("session") => (false, rest),
        all => (false, all),
    };
    let value = match words {
        [name, equals, value @ ..] if name.is("search_path") => {
            (equals.is("to") || *equals == Token::Sign('=')).then_some(value)?
        }
        [name, value @ ..] if name.is("schema") => value,
        _ => return None,
    };
    let path = match value {
        [only] if only.is("default") => None,
        all => Some(listed(all)),
    };
    Some(PathChange { path, is_local })
}

/// The change of `SELECT set_config('search_path', 'LIST', IS_LOCAL)`.
fn set_config(words: &[Token]) -> Option<PathChange> {
    let words = match words {
        [schema, Token::Sign('.'), rest @ ..] if schema.is("pg_catalog") => rest,
        all => all,
    };
    match words {
        [
            function,
            Token::Sign('('),
            Token::Text(name),
            Token::Sign(','),
            Token::Text(value),
            Token::Sign(','),
            is_local,
            Token::Sign(')'),
            ..,
        ] if function.is("set_config") && name.eq_ignore_ascii_case("search_path") => {
            Some(PathChange {
                path: Some(schemas(value)),
                is_local: is_local.is("true"),
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Option<Vec<String>> {
        match &path_changes(text)[..] {
            [(change, true)] => change.path.clone(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn names_are_read_as_the_server_reads_them() {
        for (text, wanted) in [
            ("SET search_path = Sales", &["sales"][..]),
            (
                "SET search_path TO 'Sales', \"My \"\"Own\"\"\"",
                &["Sales", "My \"Own\""],
            ),
            (
                "SET SESSION search_path TO a /* b, */ , c -- d",
                &["a", "c"],
            ),
            ("set schema 'x';", &["x"]),
            (
                "SELECT set_config('search_path', 'a, \"B\"', false)",
                &["a", "B"],
            ),
            ("SET search_path TO ''", &[]),
        ] {
            assert_eq!(
                path(text).as_deref(),
                Some(&wanted.iter().map(|one| one.to_string()).collect::<Vec<_>>()[..]),
                "{text}"
            );
        }
        for text in [
            "SET search_path TO DEFAULT",
            "RESET search_path",
            "discard all",
        ] {
            assert_eq!(path(text), None, "{text}");
        }
    }

    #[test]
    fn a_path_of_endless_names_takes_bounded_memory() {
        let long = "\u{e4}".repeat(1000);
        let list = format!("\"{long}\", ").repeat(1000);
        let found = path(&format!("SET search_path TO {list}")).unwrap();
        assert_eq!(found.len(), MOST_SCHEMAS);
        // The server cuts a name before the character that does not fit.
        assert!(found.iter().all(|name| *name == "\u{e4}".repeat(31)));
    }

    #[test]
    fn other_statements_change_no_path() {
        for text in [
            "SELECT * FROM search_path",
            "SELECT 'SET search_path TO x'",
            "SET work_mem = '1MB'; -- search_path",
            "ALTER ROLE ann SET search_path = x",
            "CREATE SCHEMA x",
            "CREATE FUNCTION f() RETURNS void AS $b$ BEGIN; SET search_path TO x; END $b$",
            "SELECT $1; -- ; SET search_path TO x",
            "RESET work_mem",
            "DISCARD PLANS",
            "SELECT set_config('work_mem', '1MB', false)",
            "SELECT set_config('search_path', $1, false)",
        ] {
            assert_eq!(path_changes(text), [], "{text}");
        }
    }
}
