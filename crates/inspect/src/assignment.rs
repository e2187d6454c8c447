//! Finds settings among changed lines: `dt = 0.1` that became `dt = 0.01`.

use backstory_comparison::{LineMark, TextDifference};

/// A setting that has another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedSetting {
    /// The name before `=` or `:`.
    pub name: String,
    /// The value before.
    pub from: String,
    /// The value after.
    pub to: String,
}

/// The settings that changed: names that removed lines and added lines assign once each.
pub fn changed(difference: &TextDifference) -> Vec<ChangedSetting> {
    let of = |wanted: LineMark| -> Vec<(String, String)> {
        let lines = difference.hunks.iter().flat_map(|hunk| &hunk.lines);
        lines
            .filter(|(mark, _)| *mark == wanted)
            .filter_map(|(_, line)| assigned(&String::from_utf8_lossy(line)))
            .collect()
    };
    let (removed, added) = (of(LineMark::Removed), of(LineMark::Added));
    let only = |all: &[(String, String)], name: &str| -> Option<String> {
        let mut values = all.iter().filter(|(other, _)| other == name);
        let value = values.next()?.1.clone();
        values.next().is_none().then_some(value)
    };
    let mut found = Vec::new();
    for (name, from) in &removed {
        let unique = only(&removed, name).and(only(&added, name));
        if let Some(to) = unique.filter(|to| to != from) {
            found.push(ChangedSetting {
                name: name.clone(),
                from: from.clone(),
                to,
            });
        }
    }
    found
}

/// The name and the value of a line `name = value` or `name: value`, as programs and settings write
/// it.
fn assigned(line: &str) -> Option<(String, String)> {
    let line = line.trim().trim_end_matches([',', ';']);
    let at = line.find(['=', ':'])?;
    let (name, value) = (&line[..at], &line[at + 1..]);
    let name = name.trim().trim_matches(['"', '\'']);
    let is_name = |char: char| char.is_alphanumeric() || "_-.".contains(char);
    let is_named = !name.is_empty() && name.len() <= 40 && name.chars().all(is_name);
    let value = value.trim();
    let is_value = !value.is_empty() && value.chars().count() <= 40 && !value.starts_with('=');
    (is_named && is_value).then(|| (name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstory_comparison::{ContentDifference, compare};

    fn settings(old: &str, new: &str) -> Vec<String> {
        let ContentDifference::Text(text) = compare(old.as_bytes(), new.as_bytes()) else {
            panic!("texts are compared by lines");
        };
        let all = changed(&text).into_iter();
        all.map(|one| format!("{} {} {}", one.name, one.from, one.to))
            .collect()
    }

    #[test]
    fn a_setting_with_another_value_is_found_in_programs_and_settings() {
        assert_eq!(
            settings("dt = 0.1\nn = 3\n", "dt = 0.01\nn = 3\n"),
            ["dt 0.1 0.01"]
        );
        assert_eq!(settings("  \"n\": 1,\n", "  \"n\": 2,\n"), ["n 1 2"]);
        assert_eq!(
            settings("const int n=1;\n", "const int n=2;\n"),
            Vec::<String>::new()
        );
        assert_eq!(settings("a = 1\na = 2\n", "a = 3\n"), Vec::<String>::new());
        assert_eq!(settings("if a == 1\n", "if a == 2\n"), Vec::<String>::new());
    }
}
