//! A value in a text of TOML. A table that has headers of its own lies in several places, and so
//! has no range.

use backstory_inspection::file_parts::{PartAnswer, PartPlace};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::json_value::nowhere;
use super::member_path::{MemberPath, PathStep};
use super::{absent, marked_text, unreadable};

/// The place of a member. The range of a text is without its quotes.
///
/// # Errors
/// The content is not TOML, or has no such member.
pub fn place(content: &[u8], path: &str) -> PartAnswer {
    let steps = MemberPath::read(path)?.0;
    let (start, text) = marked_text(content)?;
    let root = DeTable::parse(text).map_err(|error| unreadable(error.message()))?;
    let mut table = Some(root.get_ref());
    let mut value: Option<&Spanned<DeValue<'_>>> = None;
    for (at, step) in steps.iter().enumerate() {
        let next = match step {
            PathStep::Name(name) => table.and_then(|table| member(table, name)),
            PathStep::Item(number) => {
                let items = value.and_then(|value| value.get_ref().as_array());
                items.and_then(|items| items.get(*number))
            }
        };
        let found = next.ok_or_else(|| nowhere(&steps[..=at]))?;
        table = found.get_ref().as_table();
        value = Some(found);
    }
    let Some(value) = value else {
        return Ok(PartPlace::exact(start..content.len()));
    };
    if has_headers(value, text) {
        return Err(absent(
            "it is a table that may lie in several places: ask for one of its members",
        ));
    }
    let span = value.span();
    let written = text.get(span.clone()).unwrap_or_default();
    let quotes = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quotes| {
        value.get_ref().is_str()
            && written.len() >= 2 * quotes.len()
            && written.starts_with(quotes)
            && written.ends_with(quotes)
    });
    let quotes = quotes.map_or(0, str::len);
    Ok(PartPlace::exact(
        start + span.start + quotes..start + span.end - quotes,
    ))
}

fn member<'t, 'i>(table: &'t DeTable<'i>, name: &str) -> Option<&'t Spanned<DeValue<'i>>> {
    let mut members = table.iter();
    members
        .find(|(own, _)| own.get_ref() == name)
        .map(|(_, value)| value)
}

/// True for a table, or a list of them, that is not written in braces.
fn has_headers(value: &Spanned<DeValue<'_>>, text: &str) -> bool {
    let is_inline = text[value.span().start..].starts_with('{');
    match value.get_ref() {
        DeValue::Table(_) => !is_inline,
        DeValue::Array(items) => items.iter().any(|item| has_headers(item, text)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstory_inspection::file_parts::NoPart;

    const TEXT: &str = "\
top = \"\"\"a\nb\"\"\"
list = [ 1, 'two', { x = 3.5 } ]
dotted.name = 2026-11-26
[solver]
dt = 0.1
\"a key\" = \"\"
[[runs]]
seed = 1
[[runs]]
seed = 22
";

    #[test]
    fn a_value_is_found_in_tables_lists_and_texts() {
        let text = |path: &str| place(TEXT.as_bytes(), path).map(|at| &TEXT[at.ranges[0].clone()]);
        for (path, expected) in [
            ("top", "a\nb"),
            ("list[0]", "1"),
            ("list[1]", "two"),
            ("list[2]", "{ x = 3.5 }"),
            ("list[2].x", "3.5"),
            ("list", "[ 1, 'two', { x = 3.5 } ]"),
            ("dotted.name", "2026-11-26"),
            ("solver.dt", "0.1"),
            ("solver[\"a key\"]", ""),
            ("runs[1].seed", "22"),
            ("$", TEXT),
        ] {
            assert_eq!(text(path), Ok(expected), "{path}");
        }
        for path in [
            "x", "list[3]", "list.x", "top[0]", "[0]", "solver", "runs", "runs[1]", "dotted",
        ] {
            let found = text(path);
            assert!(matches!(found, Err(NoPart::Absent(_))), "{path}: {found:?}");
        }
        let cut = place(&TEXT.as_bytes()[..20], "top");
        assert!(matches!(cut, Err(NoPart::Unreadable(_))), "{cut:?}");
    }
}
