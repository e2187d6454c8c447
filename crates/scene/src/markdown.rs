//! A page as Markdown. In: a page. Out: text.
//!
//! Invariant: recorded text stands in code only, so none of it is markup.

use std::fmt::Write;

use crate::page::{Page, PageLine};

/// Writes the page.
pub fn markdown(page: &Page) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(page, &mut text);
    text
}

fn write(page: &Page, out: &mut String) -> std::fmt::Result {
    writeln!(out, "# {}", code(&page.title))?;
    for note in &page.notes {
        writeln!(out, "\n{note}")?;
    }
    for section in &page.sections {
        writeln!(out, "\n## {}\n", code(&section.heading))?;
        for line in &section.lines {
            match line {
                PageLine::Fact(name, value) => writeln!(out, "- {name}: {}", code(value))?,
                PageLine::Item(text) => writeln!(out, "    - {}", code(text))?,
                PageLine::Bytes(lines) => block(lines, out)?,
                PageLine::Command(name, command) => {
                    writeln!(out, "- {name}:")?;
                    block(std::slice::from_ref(command), out)?;
                }
                PageLine::Limit(sentence) => writeln!(out, "\n{sentence}")?,
            }
        }
    }
    Ok(())
}

/// Text in backticks, more of them than the text has in a row.
fn code(text: &str) -> String {
    let fence = "`".repeat(longest(text) + 1);
    let space = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{space}{text}{space}{fence}")
}

fn longest(text: &str) -> usize {
    let runs = text.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or(0)
}

/// A fenced block within a list item.
fn block(lines: &[String], out: &mut String) -> std::fmt::Result {
    let most = lines.iter().map(|line| longest(line)).max().unwrap_or(0);
    let fence = "`".repeat(most.max(2) + 1);
    writeln!(out, "\n    {fence}text")?;
    for line in lines {
        writeln!(out, "    {line}")?;
    }
    writeln!(out, "    {fence}\n")
}
