//! Paths of members, as the inspectors print them: `solver.dt`, `runs[2].seed`, `["a key"].x`.
//!
//! Items of lists count from 0. A path may begin with `$` or with a dot, as the paths of other
//! programs do.

use backstory_inspection::file_parts::NoPart;
use serde_json::json;

/// The root of a content, in a path.
pub(crate) const ROOT: &str = "$";

/// A path from the root of a content. An empty one is the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberPath(pub Vec<PathStep>);

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathStep {
    /// A member of an object.
    Name(String),
    /// An item of a list.
    Item(usize),
}

impl MemberPath {
    /// Reads a path.
    ///
    /// # Errors
    /// The path has another form.
    pub fn read(text: &str) -> Result<MemberPath, NoPart> {
        let rest = text.strip_prefix('$').unwrap_or(text);
        let rest = match rest.strip_prefix('.') {
            Some(named) if !named.is_empty() => named,
            _ => rest,
        };
        let steps = steps(rest).filter(|_| !text.is_empty());
        steps.map(MemberPath).ok_or_else(|| {
            let how = "give a path, as in rows[3].price or [\"a key\"][0]";
            NoPart::Misnamed(how.to_owned())
        })
    }

    /// The path of a value in a column: `price[3]`. Names of nested columns get dots.
    ///
    /// # Errors
    /// The path is another one.
    pub fn column_and_row(&self) -> Result<(String, usize), NoPart> {
        let wrong = || {
            let how = "give the name of a column and a row from 0, as in price[3]";
            NoPart::Misnamed(how.to_owned())
        };
        let Some((PathStep::Item(row), names)) = self.0.split_last() else {
            return Err(wrong());
        };
        let names: Option<Vec<&str>> = names
            .iter()
            .map(|step| match step {
                PathStep::Name(name) => Some(&**name),
                PathStep::Item(_) => None,
            })
            .collect();
        let names = names.filter(|names| !names.is_empty()).ok_or_else(wrong)?;
        Ok((names.join("."), *row))
    }
}

fn steps(mut rest: &str) -> Option<Vec<PathStep>> {
    let mut steps = Vec::new();
    let mut needs_name = false;
    loop {
        if let Some(inner) = rest.strip_prefix('[') {
            let (step, after) = bracketed(inner)?;
            steps.push(step);
            rest = after;
        } else {
            let end = rest.find(['.', '[', ']']).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            if name.is_empty() {
                return (!needs_name && rest.is_empty()).then_some(steps);
            }
            steps.push(PathStep::Name(name.to_owned()));
            rest = after;
        }
        needs_name = false;
        if let Some(after) = rest.strip_prefix('.') {
            needs_name = true;
            rest = after;
        } else if !rest.is_empty() && !rest.starts_with('[') {
            return None;
        }
    }
}

/// The step in brackets, and the text behind them.
fn bracketed(inner: &str) -> Option<(PathStep, &str)> {
    if inner.starts_with('"') {
        let mut names = serde_json::Deserializer::from_str(inner).into_iter::<String>();
        let name = names.next()?.ok()?;
        let after = inner.get(names.byte_offset()..)?.strip_prefix(']')?;
        return Some((PathStep::Name(name), after));
    }
    let (digits, after) = inner.split_once(']')?;
    let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
    let item = digits.parse().ok().filter(|_| is_number)?;
    Some((PathStep::Item(item), after))
}

/// The path of a member. A name that is no word stands in brackets.
pub(crate) fn member_path(path: &str, name: &str) -> String {
    let is_word = |char: char| char.is_alphanumeric() || "_-".contains(char);
    let (path, dot) = match path {
        ROOT => ("", ""),
        path => (path, "."),
    };
    match !name.is_empty() && name.chars().all(is_word) {
        true => format!("{path}{dot}{name}"),
        false => format!("{path}[{}]", json!(name)),
    }
}

/// The path of an item of a list.
pub(crate) fn item_path(path: &str, at: usize) -> String {
    match path {
        ROOT => format!("[{at}]"),
        path => format!("{path}[{at}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> PathStep {
        PathStep::Name(text.to_owned())
    }

    #[test]
    fn a_path_is_that_which_inspectors_print_or_that_of_other_programs() {
        let price = vec![name("rows"), PathStep::Item(3), name("price")];
        for (text, steps) in [
            ("rows[3].price", price.clone()),
            (".rows[3].price", price.clone()),
            ("$.rows[3].price", price.clone()),
            ("[\"rows\"][3][\"price\"]", price.clone()),
            ("$[\"rows\"].[3].price", price),
            ("$", vec![]),
            ("[0][1]", vec![PathStep::Item(0), PathStep::Item(1)]),
            ("a b-c", vec![name("a b-c")]),
            (r#"["a\u0022.]b"].x"#, vec![name("a\".]b"), name("x")]),
        ] {
            let read = MemberPath::read(text);
            assert_eq!(read, Ok(MemberPath(steps)), "{text}");
        }
        for bad in [
            "", "a.", "a..b", "a[", "a[x]", "a[-1]", "a[+1]", "a]", "a[1", "[\"a", "[\"a\"",
            "[0]b", "..a", "[]",
        ] {
            assert!(MemberPath::read(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_value_of_a_column_has_names_and_a_row() {
        let read = |text| MemberPath::read(text).and_then(|path| path.column_and_row());
        assert_eq!(read("price[3]"), Ok(("price".to_owned(), 3)));
        assert_eq!(read("a.b[0]"), Ok(("a.b".to_owned(), 0)));
        assert_eq!(read("[\"a b\"][0]"), Ok(("a b".to_owned(), 0)));
        for bad in ["price", "[3]", "a[1][2]", "a[1].b"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
