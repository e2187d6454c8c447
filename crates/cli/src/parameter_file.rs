//! Reads parameters and metrics of a run from the files that programs have for them.
//!
//! In: YAML, JSON, TOML or CSV, by the name's ending. Out: names and values as text, with nested
//! names joined by points: `model.lr = 0.1`. A list is one value, as JSON. Of CSV, the last row
//! counts: it has the last step of a training. Numbers stay as the file spells them, if the format
//! lets them.

use std::path::Path;

use backstory_files::regular;
use yaml_rust2::{Yaml, YamlLoader};

/// Most values of one file.
const MOST: usize = 10_000;

/// Longest file in bytes.
const LONGEST: usize = 16 << 20;

/// The values in a file, in its order.
///
/// # Errors
///
/// A sentence that names the file.
pub fn read(path: &Path) -> Result<Vec<(String, String)>, String> {
    let fail = |why: &str| format!("cannot read values from {}: {why}", path.display());
    let bytes = regular::read(path).map_err(|error| fail(&error.to_string()))?;
    if bytes.len() > LONGEST {
        return Err(fail("it has more than 16 MB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| fail("it is not UTF-8"))?;
    let ending = path.extension().and_then(|ending| ending.to_str());
    let mut values = Vec::new();
    match ending.map(str::to_ascii_lowercase).as_deref() {
        Some("json") => {
            let value = serde_json::from_str(&text).map_err(|e| fail(&e.to_string()))?;
            json("", &value, &mut values);
        }
        Some("toml") => {
            let table: toml::Table = toml::from_str(&text).map_err(|e| fail(e.message()))?;
            let value = serde_json::to_value(table).map_err(|e| fail(&e.to_string()))?;
            json("", &value, &mut values);
        }
        Some("yaml" | "yml") => {
            let documents = YamlLoader::load_from_str(&text).map_err(|e| fail(&e.to_string()))?;
            for document in &documents {
                yaml("", document, &mut values);
            }
        }
        Some("csv" | "tsv") => values = last_row(&text, ending == Some("tsv")),
        _ => return Err(fail("its name must end in .yaml, .json, .toml or .csv")),
    }
    if values.len() > MOST {
        return Err(fail("it has more than 10,000 values"));
    }
    Ok(values)
}

fn joined(name: &str, part: &str) -> String {
    match name {
        "" => part.to_owned(),
        name => format!("{name}.{part}"),
    }
}

/// The name of a document that is one value.
fn named(name: &str) -> String {
    if name.is_empty() { "value" } else { name }.to_owned()
}

fn json(name: &str, value: &serde_json::Value, into: &mut Vec<(String, String)>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (part, value) in fields {
                json(&joined(name, part), value, into);
            }
        }
        serde_json::Value::String(text) => into.push((named(name), text.clone())),
        other => into.push((named(name), other.to_string())),
    }
}

fn yaml(name: &str, value: &Yaml, into: &mut Vec<(String, String)>) {
    match value {
        Yaml::Hash(fields) => {
            for (part, value) in fields {
                let part = scalar(part).unwrap_or_default();
                yaml(&joined(name, &part), value, into);
            }
        }
        Yaml::Array(_) => into.push((named(name), as_json(value).to_string())),
        Yaml::BadValue | Yaml::Alias(_) => {}
        other => into.push((named(name), scalar(other).unwrap_or_default())),
    }
}

fn scalar(value: &Yaml) -> Option<String> {
    match value {
        Yaml::Real(text) | Yaml::String(text) => Some(text.clone()),
        Yaml::Integer(number) => Some(number.to_string()),
        Yaml::Boolean(value) => Some(value.to_string()),
        Yaml::Null => Some("null".to_owned()),
        _ => None,
    }
}

fn as_json(value: &Yaml) -> serde_json::Value {
    match value {
        Yaml::Array(items) => items.iter().map(as_json).collect(),
        Yaml::Hash(fields) => fields
            .iter()
            .map(|(key, value)| (scalar(key).unwrap_or_default(), as_json(value)))
            .collect(),
        Yaml::Integer(number) => (*number).into(),
        Yaml::Boolean(value) => (*value).into(),
        Yaml::Real(text) => serde_json::from_str(text).unwrap_or_else(|_| text.as_str().into()),
        Yaml::Null => serde_json::Value::Null,
        other => scalar(other).unwrap_or_default().into(),
    }
}

/// The last row of a table, by the names of its first row.
fn last_row(text: &str, tabs: bool) -> Vec<(String, String)> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let names = lines
        .next()
        .map(|line| cells(line, tabs))
        .unwrap_or_default();
    let values = lines
        .next_back()
        .map(|line| cells(line, tabs))
        .unwrap_or_default();
    names.into_iter().zip(values).collect()
}

/// The cells of a line (RFC 4180). A cell in quotes may contain the separator, but no line end.
fn cells(line: &str, tabs: bool) -> Vec<String> {
    let separator = if tabs { '\t' } else { ',' };
    let mut cells = vec![String::new()];
    let mut quoted = false;
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        let cell = cells.len() - 1;
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                cells[cell].push('"');
            }
            '"' => quoted = !quoted,
            c if c == separator && !quoted => cells.push(String::new()),
            c => cells[cell].push(c),
        }
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(name: &str, text: &str) -> Vec<(String, String)> {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join(name);
        std::fs::write(&path, text).unwrap();
        read(&path).unwrap()
    }

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        list.iter().map(own).collect()
    }

    #[test]
    fn nested_names_are_joined_and_numbers_stay_as_written() {
        let wanted = pairs(&[
            ("model.lr", "1e-3"),
            ("model.layers", "[1,2]"),
            ("seed", "7"),
        ]);
        let yaml = "model:\n  lr: 1e-3\n  layers: [1, 2]\nseed: 7\n";
        assert_eq!(values("p.yaml", yaml), wanted);
        let toml = "seed = 7\n[model]\nname = \"a b\"\n";
        assert_eq!(
            values("p.toml", toml),
            pairs(&[("model.name", "a b"), ("seed", "7")])
        );
        assert_eq!(
            values("p.json", "{\"a\": {\"b\": true}, \"c\": null}"),
            pairs(&[("a.b", "true"), ("c", "null")])
        );
    }

    #[test]
    fn the_last_row_of_a_table_counts() {
        let csv = "step,\"loss, mean\",acc\n1,2.0,0.5\n2,1.5,0.75\n\n";
        let wanted = pairs(&[("step", "2"), ("loss, mean", "1.5"), ("acc", "0.75")]);
        assert_eq!(values("m.csv", csv), wanted);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        assert!(
            read(Path::new("/no/such.yaml"))
                .unwrap_err()
                .contains("/no/such.yaml")
        );
    }
}
