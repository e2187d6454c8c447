//! The `condition` of a rule: names of selections with `and`, `or`, `not`, `1 of`, `all of`.

use crate::yaml::{Mistake, Place};

/// A condition over selections, which are numbered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// This selection holds.
    Selection(usize),
    /// The condition does not hold.
    Not(Box<Condition>),
    /// All hold.
    All(Vec<Condition>),
    /// One holds.
    Any(Vec<Condition>),
}

/// Deepest nesting of parentheses and `not`.
const DEEPEST: usize = 32;

impl Condition {
    /// Reads a condition. `names` are the selections; `at` is where the text begins.
    ///
    /// # Errors
    ///
    /// The place of the first word that does not fit.
    pub fn parse(text: &str, names: &[String], at: Place) -> Result<Condition, Mistake> {
        let mut parser = ConditionParser {
            words: words(text, at),
            next: 0,
            depth: 0,
            names,
            end: Place {
                column: at.column + text.len(),
                ..at
            },
        };
        let condition = parser.any()?;
        match parser.words.get(parser.next) {
            None => Ok(condition),
            Some((word, at)) => {
                Err(at.mistake(format!("expected `and`, `or` or the end, and not `{word}`")))
            }
        }
    }

    /// Whether it holds, if `selection` says which selections do. `None`: that depends on a
    /// selection of which it is not known (Kleene's three values).
    pub fn holds(&self, selection: &mut dyn FnMut(usize) -> Option<bool>) -> Option<bool> {
        match self {
            Condition::Selection(number) => selection(*number),
            Condition::Not(inner) => inner.holds(selection).map(|holds| !holds),
            Condition::All(parts) => first(parts, false, selection),
            Condition::Any(parts) => first(parts, true, selection),
        }
    }
}

/// `decisive` if one of the parts is so, and the opposite if all are.
fn first(
    parts: &[Condition],
    decisive: bool,
    selection: &mut dyn FnMut(usize) -> Option<bool>,
) -> Option<bool> {
    let mut all = Some(!decisive);
    for part in parts {
        match part.holds(selection) {
            Some(one) if one == decisive => return Some(decisive),
            None => all = None,
            Some(_) => {}
        }
    }
    all
}

/// The words of a condition, each with its place.
fn words(text: &str, at: Place) -> Vec<(&str, Place)> {
    let mut words = Vec::new();
    for (line, content) in text.split('\n').enumerate() {
        let column = if line == 0 { at.column } else { 1 };
        let mut rest = content;
        while let Some(start) = rest.find(|c: char| !c.is_whitespace()) {
            rest = &rest[start..];
            let length = match rest.starts_with(['(', ')']) {
                true => 1,
                false => (rest.find(|c: char| c.is_whitespace() || "()".contains(c)))
                    .unwrap_or(rest.len()),
            };
            let place = Place {
                line: at.line + line,
                column: column + content.len() - rest.len(),
            };
            words.push((&rest[..length], place));
            rest = &rest[length..];
        }
    }
    words
}

struct ConditionParser<'t> {
    words: Vec<(&'t str, Place)>,
    next: usize,
    depth: usize,
    names: &'t [String],
    end: Place,
}

impl<'t> ConditionParser<'t> {
    /// True, and the word is taken, if it comes next.
    fn take(&mut self, word: &str) -> bool {
        let is_next = self.words.get(self.next).is_some_and(|(w, _)| *w == word);
        self.next += usize::from(is_next);
        is_next
    }

    fn word(&mut self, expected: &str) -> Result<(&'t str, Place), Mistake> {
        let found = self.words.get(self.next).copied();
        self.next += 1;
        found.ok_or_else(|| self.end.mistake(format!("expected {expected} here")))
    }

    fn any(&mut self) -> Result<Condition, Mistake> {
        let mut parts = vec![self.all()?];
        while self.take("or") {
            parts.push(self.all()?);
        }
        Ok(one(parts, Condition::Any))
    }

    fn all(&mut self) -> Result<Condition, Mistake> {
        let mut parts = vec![self.part()?];
        while self.take("and") {
            parts.push(self.part()?);
        }
        Ok(one(parts, Condition::All))
    }

    fn part(&mut self) -> Result<Condition, Mistake> {
        let (word, at) = self.word("the name of a selection")?;
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(at.mistake("nested too deeply"));
        }
        let part = match word {
            "not" => Condition::Not(Box::new(self.part()?)),
            "(" => {
                let inner = self.any()?;
                let (word, at) = self.word("`)`")?;
                if word != ")" {
                    return Err(at.mistake(format!("expected `)`, and not `{word}`")));
                }
                inner
            }
            "1" | "any" | "all" if self.take("of") => {
                let (pattern, at) = self.word("`them` or a pattern of names")?;
                let prefix = match pattern {
                    "them" => "",
                    pattern => pattern.strip_suffix('*').unwrap_or(pattern),
                };
                let is_meant = |name: &&String| match pattern.ends_with('*') {
                    true => name.starts_with(prefix),
                    false => pattern == "them" || *name == pattern,
                };
                let numbered = self.names.iter().enumerate();
                let meant = numbered.filter(|(_, name)| is_meant(name));
                let parts: Vec<_> = meant.map(|(n, _)| Condition::Selection(n)).collect();
                match (parts.is_empty(), word) {
                    (true, _) => return Err(at.mistake(format!("no selection is `{pattern}`"))),
                    (_, "all") => Condition::All(parts),
                    _ => Condition::Any(parts),
                }
            }
            name => match self.names.iter().position(|own| own == name) {
                Some(number) => Condition::Selection(number),
                None => return Err(at.mistake(format!("no selection is named `{name}`"))),
            },
        };
        self.depth -= 1;
        Ok(part)
    }
}

fn one(mut parts: Vec<Condition>, several: fn(Vec<Condition>) -> Condition) -> Condition {
    match parts.len() {
        1 => parts.swap_remove(0),
        _ => several(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Place = Place {
        line: 7,
        column: 14,
    };

    fn parse(text: &str) -> Result<Condition, Mistake> {
        let names = ["sel_a", "sel_b", "filter"].map(str::to_owned);
        Condition::parse(text, &names, AT)
    }

    #[test]
    fn a_selection_that_is_not_known_decides_only_where_it_does_not_matter() {
        let holds = |text: &str| {
            let known = [Some(true), Some(false), None];
            parse(text).unwrap().holds(&mut |number| known[number])
        };
        assert_eq!(holds("sel_a or filter"), Some(true));
        assert_eq!(holds("sel_b and not filter"), Some(false));
        assert_eq!(holds("sel_a and not filter"), None);
        assert_eq!(holds("sel_b or filter"), None);
    }

    #[test]
    fn words_bind_as_in_sigma() {
        let holds = |text: &str, selected: &[usize]| {
            let condition = parse(text).unwrap();
            let found = condition.holds(&mut |number| Some(selected.contains(&number)));
            found.unwrap()
        };
        assert!(holds("sel_a or sel_b and filter", &[0]));
        assert!(!holds("(sel_a or sel_b) and filter", &[0]));
        assert!(holds("1 of sel_* and not filter", &[1]));
        assert!(!holds("1 of sel_* and not filter", &[1, 2]));
        assert!(holds("all of them", &[0, 1, 2]) && !holds("all of them", &[0, 1]));
        assert!(holds("not not sel_a", &[0]));
    }

    #[test]
    fn a_mistake_has_its_line_and_column() {
        let at = |text: &str| parse(text).map_err(|m| (m.at.line, m.at.column, m.cause));
        let named = "no selection is named `sel_c`".to_owned();
        assert_eq!(at("sel_a or sel_c"), Err((7, 23, named.clone())));
        assert_eq!(at("sel_a\n  or sel_c"), Err((8, 6, named)));
        for (text, column) in [
            ("", 14),
            ("sel_a and", 23),
            ("(sel_a", 20),
            ("sel_a sel_b", 20),
        ] {
            assert_eq!(parse(text).unwrap_err().at.column, column, "{text}");
        }
        assert!(parse(&"not ".repeat(50_000)).is_err() && parse(&"(".repeat(50_000)).is_err());
    }
}
