//! A value in a text of JSON, or of JSON lines.
//!
//! The range of a text is without its quotes. Of members with the same name, the last one counts,
//! as it does for most readers of JSON. The whole text must be JSON.

use std::ops::Range;

use backstory_inspection::file_parts::{NoPart, PartAnswer, PartPlace};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::member_path::{MemberPath, PathStep, ROOT, item_path, member_path};
use super::{absent, marked_text, range_in, unreadable};

/// The place of a member. With `is_lines`, each line is an item of a list.
///
/// # Errors
/// The content is not JSON, or has no such member.
pub fn place(content: &[u8], path: &str, is_lines: bool) -> PartAnswer {
    let steps = MemberPath::read(path)?.0;
    let (start, text) = marked_text(content)?;
    let found = match is_lines {
        true => in_lines(text, &steps)?,
        false => find(text, &steps)?,
    };
    Ok(PartPlace::exact(start + found.start..start + found.end))
}

/// The range of the value that a path leads to.
///
/// # Errors
/// The text is not JSON, or the path leads nowhere.
pub fn find(text: &str, steps: &[PathStep]) -> Result<Range<usize>, NoPart> {
    let mut value: &RawValue = serde_json::from_str(text).map_err(unreadable)?;
    for (at, step) in steps.iter().enumerate() {
        let chosen = chosen(value.get(), step).map_err(unreadable)?;
        value = chosen.ok_or_else(|| nowhere(&steps[..=at]))?;
    }
    let found = value.get();
    let inner = found
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    Ok(range_in(text, inner.unwrap_or(found)))
}

/// The error of a path that leads nowhere at its last step.
pub(super) fn nowhere(steps: &[PathStep]) -> NoPart {
    let shown = steps
        .iter()
        .fold(ROOT.to_owned(), |shown, step| match step {
            PathStep::Item(number) => item_path(&shown, *number),
            PathStep::Name(name) => member_path(&shown, name),
        });
    absent(format!("it has no member `{shown}`"))
}

fn in_lines(text: &str, steps: &[PathStep]) -> Result<Range<usize>, NoPart> {
    let Some((PathStep::Item(number), rest)) = steps.split_first() else {
        let why = "JSON lines are a list: begin with the number of a line from 0, as in [0].price";
        return Err(NoPart::Misnamed(why.to_owned()));
    };
    let lines = text.split_inclusive('\n');
    let mut lines = lines.filter(|line| !line.trim().is_empty());
    let line = lines.nth(*number).ok_or_else(|| nowhere(&steps[..1]))?;
    let start = range_in(text, line).start;
    let found = find(line, rest).map_err(|error| match error {
        NoPart::Absent(_) => absent(format!("item [{number}] of its lines has no such member")),
        other => other,
    })?;
    Ok(start + found.start..start + found.end)
}

/// The value of one step. `None` if the value has no such member.
fn chosen<'t>(value: &'t str, step: &PathStep) -> serde_json::Result<Option<&'t RawValue>> {
    let opening = match step {
        PathStep::Item(_) => '[',
        PathStep::Name(_) => '{',
    };
    if !value.starts_with(opening) {
        return Ok(None);
    }
    ChosenMember(step).deserialize(&mut serde_json::Deserializer::from_str(value))
}

/// Reads the value of one step, and skips the others.
struct ChosenMember<'s>(&'s PathStep);

impl<'t> DeserializeSeed<'t> for ChosenMember<'_> {
    type Value = Option<&'t RawValue>;

    fn deserialize<D: Deserializer<'t>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'t> Visitor<'t> for ChosenMember<'_> {
    type Value = Option<&'t RawValue>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a list or an object")
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let PathStep::Item(number) = self.0 else {
            return Err(A::Error::custom("it is a list"));
        };
        for _ in 0..*number {
            if items.next_element::<IgnoredAny>()?.is_none() {
                return Ok(None);
            }
        }
        let found = items.next_element()?;
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(found)
    }

    fn visit_map<A: MapAccess<'t>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let PathStep::Name(wanted) = self.0 else {
            return Err(A::Error::custom("it is an object"));
        };
        let mut found = None;
        while let Some(name) = members.next_key::<String>()? {
            match name == *wanted {
                true => found = Some(members.next_value()?),
                false => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text<'t>(content: &'t str, path: &str, is_lines: bool) -> Result<&'t str, NoPart> {
        let place = place(content.as_bytes(), path, is_lines)?;
        Ok(&content[place.ranges[0].clone()])
    }

    const TEXT: &str = "\u{feff}{ \"a\" : [1 , {\"b\\u0063\":\"x \\\"y\\\"\"}, [ ] ],\"a.b\":-1.5e3 , \"d\":1, \"d\":true}\n";

    #[test]
    fn a_value_is_found_behind_blanks_escapes_and_equal_names() {
        for (path, expected) in [
            ("a[0]", "1"),
            ("a[1].bc", "x \\\"y\\\""),
            ("a[1]", "{\"b\\u0063\":\"x \\\"y\\\"\"}"),
            ("a[2]", "[ ]"),
            ("[\"a.b\"]", "-1.5e3"),
            ("d", "true"),
        ] {
            assert_eq!(text(TEXT, path, false), Ok(expected), "{path}");
        }
        assert_eq!(text(TEXT, "$", false).map(str::len), Ok(TEXT.len() - 4));
        for path in ["b", "a[3]", "a.x", "d[0]", "[0]", "a[1].bc[0]", "d.x"] {
            let found = text(TEXT, path, false);
            assert!(matches!(found, Err(NoPart::Absent(_))), "{path}: {found:?}");
        }
    }

    #[test]
    fn json_lines_are_a_list_without_blank_lines() {
        let lines = "{\"a\":1}\r\n\n{\"a\":[2,\"z\"]}\nbroken\n";
        assert_eq!(text(lines, "[0].a", true), Ok("1"));
        assert_eq!(text(lines, "[1].a[1]", true), Ok("z"));
        assert!(matches!(text(lines, "a", true), Err(NoPart::Misnamed(_))));
        assert!(matches!(text(lines, "[3]", true), Err(NoPart::Absent(_))));
        assert!(matches!(
            text(lines, "[2]", true),
            Err(NoPart::Unreadable(_))
        ));
    }

    #[test]
    fn a_text_that_is_cut_or_no_json_is_unreadable_also_behind_the_value() {
        for wrong in [
            &TEXT[3..TEXT.len() - 3],
            "{\"a\":[1],}",
            "{\"a\":[1]} x",
            "",
        ] {
            let found = text(wrong, "a[0]", false);
            assert!(matches!(found, Err(NoPart::Unreadable(_))), "{found:?}");
        }
        let latin = place(b"{\"a\":\"\xe4\"}", "a", false);
        assert!(matches!(latin, Err(NoPart::Unreadable(_))));
    }

    #[test]
    fn a_deep_text_takes_no_deep_stack() {
        let deep = format!("{}1{}", "[".repeat(200_000), "]".repeat(200_000));
        assert_eq!(text(&deep, "[0][0]", false).map(str::len), Ok(400_001 - 4));
    }
}
