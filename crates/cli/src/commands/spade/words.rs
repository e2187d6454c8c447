//! The words of SPADE's query language (QuickGrail).
//!
//! In: a line. Out: words. A name may be in double quotes, a text is in single quotes. `#` begins
//! a comment.

/// A word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A name, as `path`, `"command line"` or `*`.
    Name(String),
    /// A text in single quotes.
    Text(String),
    Number(usize),
    /// `$name`, without the sign.
    Graph(String),
    /// `%name`, without the sign.
    Constraint(String),
    /// An operator or a parenthesis.
    Sign(&'static str),
}

/// Longer signs come before the shorter ones that they begin with.
const SIGNS: [&str; 21] = [
    "==", "!=", "<>", "<=", ">=", "+=", "-=", "&=", "=", "<", ">", "+", "-", "&", "(", ")", ".",
    ",", ";", "*", "~",
];

/// Splits a line.
pub(super) fn tokens(line: &str) -> Result<Vec<Token>, String> {
    let mut all = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        match first {
            '#' => break,
            '\'' | '"' => {
                let (text, after) = quoted(&rest[1..], first)
                    .ok_or_else(|| format!("{first} has no end in: {rest}"))?;
                all.push(match first {
                    '"' => Token::Name(text),
                    _ => Token::Text(text),
                });
                rest = after;
            }
            '$' | '%' => {
                let (name, after) = word(&rest[1..]);
                if name.is_empty() {
                    return Err(format!("a name is missing after {first}"));
                }
                all.push(match first {
                    '$' => Token::Graph(name.to_owned()),
                    _ => Token::Constraint(name.to_owned()),
                });
                rest = after;
            }
            _ if first.is_alphanumeric() || first == '_' => {
                let (name, after) = word(rest);
                all.push(match name.parse() {
                    Ok(number) => Token::Number(number),
                    Err(_) => Token::Name(name.to_owned()),
                });
                rest = after;
            }
            _ => {
                let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
                let sign = sign.ok_or_else(|| format!("'{first}' is not understood"))?;
                all.push(match *sign {
                    "*" => Token::Name("*".to_owned()),
                    sign => Token::Sign(sign),
                });
                rest = &rest[sign.len()..];
            }
        }
        rest = rest.trim_start();
    }
    Ok(all)
}

/// The text up to its closing quote, and the rest. A backslash keeps the quote behind it.
fn quoted(rest: &str, quote: char) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut characters = rest.char_indices();
    while let Some((at, one)) = characters.next() {
        match one {
            '\\' => match characters.next()?.1 {
                kept if kept == quote || kept == '\\' => text.push(kept),
                other => text.extend(['\\', other]),
            },
            _ if one == quote => return Some((text, &rest[at + 1..])),
            _ => text.push(one),
        }
    }
    None
}

fn word(rest: &str) -> (&str, &str) {
    let is_part = |one: char| one.is_alphanumeric() || one == '_';
    rest.split_at(rest.find(|one| !is_part(one)).unwrap_or(rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_texts_and_signs_are_told_apart() {
        let all = tokens("$a += $base.getVertex(\"command line\" like '%x\\'y%') # end").unwrap();
        let name = |text: &str| Token::Name(text.to_owned());
        let expected = [
            Token::Graph("a".to_owned()),
            Token::Sign("+="),
            Token::Graph("base".to_owned()),
            Token::Sign("."),
            name("getVertex"),
            Token::Sign("("),
            name("command line"),
            name("like"),
            Token::Text("%x'y%".to_owned()),
            Token::Sign(")"),
        ];
        assert_eq!(all, expected);
        assert!(tokens("'open").is_err());
        assert!(tokens("a ? b").is_err());
    }
}
