//! Prints what differs between two contents: a summary in one line, then the changed lines or
//! cells.

use std::io::{self, Write};

use backstory_comparison::{ContentDifference, LineMark, excerpts};

use crate::json::Value;
use crate::text::line::{cut, printable};
use crate::text::style::{Role, Style};

/// The width of a printed line of a text.
const WIDTH: usize = 110;

/// The difference in one line.
pub fn summary(content: &ContentDifference) -> String {
    content.summary(&printable)
}

/// Prints the changed lines or cells, at most `most` lines. Returns the number of printed lines.
pub fn body(
    content: &ContentDifference,
    most: usize,
    style: Style,
    out: &mut impl Write,
) -> io::Result<usize> {
    let mut lines: Vec<(Option<Role>, String)> = Vec::new();
    match content {
        ContentDifference::Text(text) => {
            for hunk in &text.hunks {
                let span = |(from, count): (usize, usize)| match count {
                    1 => from.to_string(),
                    _ => format!("{from},{count}"),
                };
                let head = format!("@@ -{} +{} @@", span(hunk.a), span(hunk.b));
                lines.push((Some(Role::Dim), head));
                for (mark, line) in &hunk.lines {
                    let role = match mark {
                        LineMark::Both => None,
                        LineMark::Removed => Some(Role::Bad),
                        LineMark::Added => Some(Role::Good),
                    };
                    lines.push((role, format!("{}{}", mark.sign(), printable(line))));
                }
            }
        }
        ContentDifference::Table(table) => {
            for cell in &table.cells {
                let [row, column, a, b] =
                    [&cell.row, &cell.column, &cell.a, &cell.b].map(|part| printable(part));
                let (a, b) = if most == usize::MAX {
                    (a, b)
                } else {
                    excerpts(&a, &b)
                };
                lines.push((None, format!("{row}, {column}: {a} → {b}")));
            }
            let of_rows = |keys: &[Vec<u8>], role, verb: &str| -> Vec<(Option<Role>, String)> {
                let keys = keys.iter().map(|key| printable(key));
                keys.map(|key| (Some(role), format!("{key}: row {verb}")))
                    .collect()
            };
            lines.extend(of_rows(&table.keys_removed, Role::Bad, "removed"));
            lines.extend(of_rows(&table.keys_added, Role::Good, "added"));
        }
        _ => {}
    }
    let left = lines.len().saturating_sub(most);
    // One line more is better than the line that says so.
    let shown = if left == 1 {
        lines.len()
    } else {
        lines.len() - left
    };
    for (role, line) in &lines[..shown] {
        let line = match most {
            usize::MAX => line.clone(),
            _ => cut(line, WIDTH),
        };
        let line = role.map_or(line.clone(), |role| style.paint(role, &line));
        writeln!(out, "      {line}")?;
    }
    if shown < lines.len() {
        let more = format!("… {} more lines (--full)", lines.len() - shown);
        writeln!(out, "      {}", style.paint(Role::Dim, &more))?;
    }
    Ok(shown)
}

/// The fields of the difference in JSON. The changed lines only if `full`.
pub fn json(content: &ContentDifference, full: bool) -> Vec<(&'static str, Value)> {
    let mut fields: Vec<(&'static str, Value)> =
        vec![("summary", summary(content).as_str().into())];
    match content {
        ContentDifference::Same => fields.push(("kind", "same".into())),
        ContentDifference::Text(text) => {
            fields.push(("kind", "text".into()));
            fields.push(("lines_removed", text.removed.into()));
            fields.push(("lines_added", text.added.into()));
            if full {
                fields.push(("hunks", Value::Array(text.hunks.iter().map(hunk).collect())));
            }
        }
        ContentDifference::Table(table) => {
            fields.push(("kind", "table".into()));
            let names = |names: &[Vec<u8>]| Value::array(names.iter().map(Vec::as_slice));
            fields.push(("columns_removed", names(&table.columns_removed)));
            fields.push(("columns_added", names(&table.columns_added)));
            fields.push(("rows_removed", table.rows_removed.into()));
            fields.push(("rows_added", table.rows_added.into()));
            fields.push(("rows_changed", table.rows_changed.into()));
            fields.push(("cells_changed", table.cells_changed.into()));
            fields.push(("keys_removed", names(&table.keys_removed)));
            fields.push(("keys_added", names(&table.keys_added)));
            fields.push((
                "key_not_used_because",
                table.key_not_used_because.as_ref().into(),
            ));
        }
        ContentDifference::Image(image) => {
            fields.push(("kind", "image".into()));
            let size = |(width, height): (u32, u32)| Value::array([width, height]);
            fields.push(("size_a", size(image.a)));
            fields.push(("size_b", size(image.b)));
            fields.push(("pixels_differing", image.differing.into()));
            let within = image
                .within
                .map(|within| Value::array([within.left, within.top, within.width, within.height]));
            fields.push(("within", within.unwrap_or(Value::Null)));
        }
        ContentDifference::Binary(binary) => {
            fields.push(("kind", "binary".into()));
            fields.push(("size_a", binary.a.into()));
            fields.push(("size_b", binary.b.into()));
            fields.push(("first_difference", binary.first.into()));
            fields.push(("bytes_differing", binary.differing.into()));
        }
    }
    fields
}

fn hunk(hunk: &backstory_comparison::Hunk) -> Value {
    let span = |(from, count): (usize, usize)| Value::array([from, count]);
    let lines = hunk.lines.iter().map(|(mark, line)| {
        let mut text = vec![mark.sign() as u8];
        text.extend(line);
        Value::Bytes(text)
    });
    Value::Object(vec![
        ("a", span(hunk.a)),
        ("b", span(hunk.b)),
        ("lines", Value::Array(lines.collect())),
    ])
}
