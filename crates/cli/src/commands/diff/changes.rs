//! Prints what differs between two contents: a summary in one line, then the changed lines or
//! cells.

use std::io::{self, Write};

use backstory_comparison::{
    BinaryDifference, ContentDifference, ImageDifference, LineMark, TableDifference, TextDifference,
};

use crate::json::Value;
use crate::text::line::{cut, printable};
use crate::text::style::{Role, Style};
use crate::text::words::{counted, grouped};

/// The width of a printed line of a text.
const WIDTH: usize = 110;

/// The most names of columns in a summary.
const NAMED: usize = 3;

/// The difference in one line.
pub fn summary(content: &ContentDifference) -> String {
    match content {
        ContentDifference::Same => "same content".to_owned(),
        ContentDifference::Text(text) => of_text(text),
        ContentDifference::Table(table) => of_table(table),
        ContentDifference::Image(image) => of_image(image),
        ContentDifference::Binary(binary) => of_binary(binary),
    }
}

fn of_text(text: &TextDifference) -> String {
    let lines = |number| counted(number, "line", "lines");
    match (text.removed, text.added) {
        (0, 0) => "only the newline at the end differs".to_owned(),
        (0, added) => format!("{} added", lines(added)),
        (removed, 0) => format!("{} removed", lines(removed)),
        (removed, added) if removed == added => format!("{} of {} changed", removed, lines(text.a)),
        (removed, added) => format!("{} removed, {added} added", lines(removed)),
    }
}

fn of_table(table: &TableDifference) -> String {
    let rows = |number| counted(number, "row", "rows");
    let named = |names: &[Vec<u8>]| {
        let shown = names.iter().take(NAMED).map(|name| printable(name));
        let shown: Vec<String> = shown.collect();
        let more = if names.len() > NAMED { ", …" } else { "" };
        format!("{}{more}", shown.join(", "))
    };
    let mut parts = Vec::new();
    if !table.columns_removed.is_empty() {
        parts.push(format!("column {} removed", named(&table.columns_removed)));
    }
    if !table.columns_added.is_empty() {
        parts.push(format!("column {} added", named(&table.columns_added)));
    }
    if table.rows_removed > 0 {
        parts.push(format!("{} removed", rows(table.rows_removed)));
    }
    if table.rows_added > 0 {
        parts.push(format!("{} added", rows(table.rows_added)));
    }
    if table.cells_changed > 0 {
        let cells = counted(table.cells_changed, "cell", "cells");
        parts.push(format!(
            "{cells} changed in {} of {}",
            table.rows_changed,
            rows(table.a)
        ));
    }
    if table.columns_moved {
        parts.push("columns in another order".to_owned());
    }
    if table.rows_moved {
        parts.push("rows in another order".to_owned());
    }
    match parts.is_empty() {
        true => "the same cells, written in another form".to_owned(),
        false => parts.join(", "),
    }
}

fn of_image(image: &ImageDifference) -> String {
    let size = |(width, height): (u32, u32)| format!("{width}×{height}");
    let Some(share) = image.share() else {
        return format!("image of {} pixels became {}", size(image.a), size(image.b));
    };
    let Some(within) = image.within else {
        return format!(
            "the same {} pixels; only the image's metadata or compression differ",
            size(image.a)
        );
    };
    let percent = share * 100.0;
    let percent = match percent {
        _ if percent < 0.01 => "less than 0.01".to_owned(),
        _ if percent < 1.0 => format!("{percent:.2}"),
        _ => format!("{percent:.1}"),
    };
    format!(
        "image of {}: {percent} % of the pixels differ, within {}×{} pixels at {},{}",
        size(image.a),
        within.width,
        within.height,
        within.left,
        within.top
    )
}

fn of_binary(binary: &BinaryDifference) -> String {
    let first = grouped(binary.first);
    match binary.differing {
        Some(differing) => format!(
            "{} of {} bytes differ, the first at {first}",
            grouped(differing),
            grouped(binary.a)
        ),
        None => format!(
            "{} bytes became {}, the first difference at {first}",
            grouped(binary.a),
            grouped(binary.b)
        ),
    }
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
                lines.push((None, format!("{row}, {column}: {a} → {b}")));
            }
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

/// The difference as JSON. The changed lines only if `full`.
pub fn json(content: &ContentDifference, full: bool) -> Value {
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
    Value::Object(fields)
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
