//! The lists of `hunt`: its rules (`--list`), and the words of rules (`--fields`).

use std::io::{self, Write};

use backstory_hunt::{FIELDS, GROUPS, MODIFIERS, Rule};

use crate::json::Value;
use crate::text::style::{Role, Style};

/// Prints the rules.
pub fn list(rules: &[Rule], style: Style, out: &mut impl Write) -> io::Result<()> {
    for rule in rules {
        let id = style.paint(Role::Subject, &format!("{:<26}", rule.id));
        writeln!(out, "{id} {:<9} {}", rule.level.word(), rule.title)?;
    }
    Ok(())
}

/// A rule as JSON.
pub fn rule_object(rule: &Rule) -> Value {
    Value::Object(vec![
        ("rule", (&rule.id).into()),
        ("level", rule.level.word().into()),
        ("title", (&rule.title).into()),
        ("description", (&rule.description).into()),
        ("references", Value::array(&rule.references)),
        ("falsepositives", Value::array(&rule.falsepositives)),
        ("file", (&rule.file).into()),
    ])
}

/// The kinds of words in rules: the words and their meanings.
fn vocabulary() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let fields = FIELDS
        .iter()
        .map(|(_, name, about)| ("field", *name, *about));
    let modifiers = MODIFIERS
        .iter()
        .map(|(name, about)| ("modifier", *name, *about));
    let groups = GROUPS
        .iter()
        .map(|(_, name, about)| ("group-by", *name, *about));
    fields.chain(modifiers).chain(groups)
}

/// The words as JSON.
pub fn field_objects() -> impl Iterator<Item = Value> {
    vocabulary().map(|(kind, name, about)| {
        Value::Object(vec![
            ("kind", kind.into()),
            ("name", name.into()),
            ("about", about.into()),
        ])
    })
}

/// Prints the words.
pub fn fields(style: Style, out: &mut impl Write) -> io::Result<()> {
    let mut last = "";
    for (kind, name, about) in vocabulary() {
        if kind != last {
            let gap = if last.is_empty() { "" } else { "\n" };
            writeln!(out, "{gap}{}", style.paint(Role::Subject, kind))?;
            last = kind;
        }
        writeln!(out, "  {name:<20} {about}")?;
    }
    Ok(())
}
