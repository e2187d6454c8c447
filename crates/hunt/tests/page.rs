//! The page about rules (`docs/howto/hunt.md`) lists the fields, modifiers, groups and rules that
//! the program has.

#![allow(clippy::unwrap_used)]

use backstory_hunt::{FIELDS, GROUPS, Library, MODIFIERS};

const PAGE: &str = include_str!("../../../docs/howto/hunt.md");

#[test]
fn the_page_has_every_field_modifier_and_group_with_its_meaning() {
    let fields = FIELDS.iter().map(|(_, name, about)| (*name, *about));
    let modifiers = MODIFIERS.iter().map(|(name, about)| (*name, *about));
    let groups = GROUPS.iter().map(|(_, name, about)| (*name, *about));
    let mut wanted = String::from("<!-- fields -->\n");
    for (head, rows) in [
        ("field", fields.collect::<Vec<_>>()),
        ("modifier", modifiers.collect()),
        ("`group-by`", groups.collect()),
    ] {
        wanted.push_str(&format!("\n| {head} | meaning |\n| --- | --- |\n"));
        for (name, about) in rows {
            wanted.push_str(&format!("| `{name}` | {about} |\n"));
        }
    }
    wanted.push_str("\n<!-- end of fields -->");
    assert!(
        PAGE.contains(&wanted),
        "docs/howto/hunt.md is to have:\n{wanted}"
    );
}

#[test]
fn the_page_has_every_rule_with_its_level() {
    for rule in Library::built_in().rules {
        let row = format!("| `{}` | {} | ", rule.id, rule.level.word());
        assert!(PAGE.contains(&row), "docs/howto/hunt.md lacks {row}");
    }
}
