//! The names in a text that the parser does not know, as in PL/pgSQL, by the words around them.
//!
//! In: a text. Out: names of tables that it possibly reads and changes, and of functions that it
//! possibly calls. Invariant: a text that is too long to be read possibly builds statements.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, Tokenizer, Word};

use super::RoutineNames;
use crate::sql_dialect::{LONGEST_STATEMENT, SqlDialect, WrittenName};

/// The tokens of a text. `None` if it has none, or would take too much memory.
fn tokens_of(text: &str, dialect: SqlDialect) -> Option<Vec<Token>> {
    let tokenizer =
        (text.len() <= LONGEST_STATEMENT).then(|| Tokenizer::new(dialect.parser(), text));
    tokenizer?.tokenize().ok()
}

/// The quoted texts of a `DO` block.
pub(super) fn quoted_blocks(text: &str, dialect: SqlDialect) -> Vec<String> {
    let tokens = tokens_of(text, dialect);
    let mut tokens = tokens.unwrap_or_default().into_iter();
    let first = tokens.find(|token| !matches!(token, Token::Whitespace(_)));
    if !matches!(first, Some(Token::Word(word)) if word.keyword == Keyword::DO) {
        return Vec::new();
    }
    let quoted = tokens.filter_map(|token| match token {
        Token::DollarQuotedString(quoted) => Some(quoted.value),
        _ => None,
    });
    quoted.collect()
}

/// The names after `FROM` and `JOIN`, those after words of changes, and those before `(`.
pub(super) fn names_in_text(body: &str, dialect: SqlDialect) -> RoutineNames {
    let mut names = RoutineNames::default();
    let Some(mut tokens) = tokens_of(body, dialect) else {
        names.builds_statements = true;
        return names;
    };
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
        names.builds_statements |= word == "execute" && executes(&words[1], tokens.get(end));
        match (&*word, tokens.get(end)) {
            ("from" | "join", _) => after_from = true,
            // The columns of an insertion follow its table.
            (_, Some(Token::LParen)) if !is_changed => {
                let is_keyword = is_keyword(&tokens[at]) || NAMES_COLUMNS.contains(&&*words[1]);
                names.keywords.extend(is_keyword.then(|| name.clone()));
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

/// Words before a name with a list of columns.
const NAMES_COLUMNS: [&str; 5] = ["as", "exists", "references", "table", "with"];

/// True for a word of the grammar, which no function needs to have.
fn is_keyword(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.keyword != Keyword::NoKeyword)
}

/// True if the word EXECUTE between these two executes a text.
fn executes(before: &str, after: Option<&Token>) -> bool {
    let names_right = ["grant", "revoke", "on"].contains(&before);
    let names_function = |word: &Word| {
        matches!(
            word.keyword,
            Keyword::FUNCTION | Keyword::PROCEDURE | Keyword::ON
        )
    };
    !names_right && !matches!(after, Some(Token::Word(word)) if names_function(word))
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
