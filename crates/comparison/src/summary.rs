//! A difference in one line, for people.

use backstory_vocabulary::{counted, grouped};

use crate::{
    BinaryDifference, ContentDifference, ImageDifference, TableDifference, TextDifference,
};

/// The most names of columns in a summary.
const NAMED: usize = 3;

impl ContentDifference {
    /// The difference in one line. `printable` writes the name of a column.
    pub fn summary(&self, printable: &dyn Fn(&[u8]) -> String) -> String {
        match self {
            ContentDifference::Same => "same content".to_owned(),
            ContentDifference::Text(text) => of_text(text),
            ContentDifference::Table(table) => of_table(table, printable),
            ContentDifference::Image(image) => of_image(image),
            ContentDifference::Binary(binary) => of_binary(binary),
        }
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

fn of_table(table: &TableDifference, printable: &dyn Fn(&[u8]) -> String) -> String {
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
    let told = match parts.is_empty() {
        true => "the same cells, written in another form".to_owned(),
        false => parts.join(", "),
    };
    match &table.key_not_used_because {
        Some(why) => format!(
            "{told}; the key was not used, because {}",
            printable(why.as_bytes())
        ),
        None => told,
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
