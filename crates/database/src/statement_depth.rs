//! Finds statements whose syntax tree would be too deep, before they are parsed.
//!
//! In: the tokens of a statement, or several. Out: whether a part may be too deep. The parser makes
//! a long sum or a long chain of `OR` or `UNION` without recursion. But the tree is as deep as the
//! chain is long, and visiting and dropping it takes stack for each level. A client may send such a
//! statement, and must not end the watch with it.
//!
//! The depth is an upper bound: each token of an expression counts, although most make no level.
//! The elements of a list are beside each other, and so are the branches of a `CASE`. A comma and a
//! `WHEN` begin a new count. The parser itself limits how deep one `CASE` lies in another.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// The greatest depth. A comparison and its `OR` have four tokens, so a thousand of them fit.
const MOST: usize = 4000;

/// The tokens for which a set operation counts. Its commas do not end the chain.
const SET_OPERATION: usize = 12;

/// Words that join two queries.
const SET_OPERATIONS: [Keyword; 4] = [
    Keyword::UNION,
    Keyword::EXCEPT,
    Keyword::INTERSECT,
    Keyword::MINUS,
];

/// The tokens between two brackets, without those between further brackets.
#[derive(Debug, Default)]
struct BracketLevel {
    /// Tokens since the last comma, and the most between two commas.
    chain: usize,
    longest: usize,
    /// The set operations, each as several tokens.
    sets: usize,
    /// The depth of the deepest part between further brackets.
    below: usize,
}

impl BracketLevel {
    fn depth(&self) -> usize {
        self.longest + self.sets + self.below
    }

    fn add(&mut self, token: &Token) {
        match token {
            Token::Comma => self.chain = 0,
            Token::Word(word) if word.keyword == Keyword::WHEN => self.chain = 0,
            Token::SemiColon => *self = BracketLevel::default(),
            Token::Word(word) if SET_OPERATIONS.contains(&word.keyword) => {
                self.sets += SET_OPERATION;
            }
            _ => {
                self.chain += 1;
                self.longest = self.longest.max(self.chain);
            }
        }
    }
}

/// True if the syntax tree of these tokens may be too deep for the stack.
pub(crate) fn is_too_deep(tokens: &[TokenWithSpan]) -> bool {
    let mut levels = vec![BracketLevel::default()];
    for TokenWithSpan { token, .. } in tokens {
        match token {
            Token::Whitespace(_) => {}
            Token::LParen | Token::LBracket | Token::LBrace => {
                levels.push(BracketLevel::default());
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                let closed = levels.pop().unwrap_or_default();
                // A bracket that nothing opened is the parser's matter.
                match levels.last_mut() {
                    Some(level) => level.below = level.below.max(closed.depth() + 1),
                    None => levels.push(closed),
                }
            }
            token => {
                if let Some(level) = levels.last_mut() {
                    level.add(token);
                }
            }
        }
        if levels.last().is_some_and(|level| level.depth() > MOST) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use sqlparser::parser::ParserError;

    use crate::sql_dialect::SqlDialect;

    /// How many statements a text has.
    fn parsed(text: &str) -> Result<usize, ParserError> {
        let statements = SqlDialect::Postgres.parse(text);
        statements.map(|all| all.len())
    }

    #[test]
    fn a_statement_that_would_take_all_stack_is_refused_and_the_watch_goes_on() {
        let chain = |text: &str| text.repeat(100_000);
        let nested = format!("{}1{}", "(".repeat(20), ")+1+1".repeat(20));
        for text in [
            format!("SELECT 1{}", chain("+1")),
            format!("SELECT * FROM a WHERE x = 1{}", chain(" OR x = 1")),
            format!("SELECT 1, 2{}", chain(" UNION ALL SELECT 1, 2")),
            format!("SELECT (1{}) + 1", chain("||x")),
            format!("SELECT x{}", chain("::int")),
            format!("SELECT {}", nested.replace("+1", &"+1".repeat(500))),
        ] {
            let refused: Result<usize, _> = Err(ParserError::RecursionLimitExceeded);
            assert_eq!(parsed(&text), refused, "{text:.40}");
        }
        // The parser has its own message for this one.
        let nested = format!("SELECT {}1", chain("CASE WHEN 1 THEN "));
        assert!(parsed(&nested).is_err());
    }

    #[test]
    fn a_long_list_is_not_deep() {
        let rows = "(-1, 'x', 2 + 3)".to_owned() + &", (-1, 'x', 2 + 3)".repeat(5000);
        let keys = "1".to_owned() + &", 1".repeat(5000);
        for text in [
            format!("INSERT INTO a VALUES {rows}"),
            format!("SELECT * FROM a WHERE x IN ({keys})"),
            format!("SELECT {keys}"),
            format!(
                "UPDATE a SET x = CASE y{} END",
                " WHEN 1 THEN 2".repeat(5000)
            ),
            format!("SELECT * FROM a WHERE x = 1{}", " OR x = 1".repeat(100)),
            format!("SELECT 1{}", " UNION ALL SELECT 2".repeat(50)),
        ] {
            assert_eq!(parsed(&text), Ok(1), "{text:.40}");
        }
        assert_eq!(parsed(&"SELECT 1; ".repeat(5000)), Ok(5000));
    }
}
