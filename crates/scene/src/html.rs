//! A page as HTML: one file that needs no other and runs no script. In: a page. Out: text.
//!
//! Invariant: every text is escaped, so recorded bytes are never markup.

use std::fmt::Write;

use crate::page::{Page, PageLine};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;\
    padding:0 1rem;color:#1c1c1c;background:#fff}h1{font-size:1.5rem}h2{font-size:1.15rem;\
    border-top:1px solid #ccc;padding-top:1rem}h1,h2,dd,li{overflow-wrap:anywhere}\
    dl{display:grid;grid-template-columns:8rem 1fr;gap:.3rem 1rem;margin:0}dt{color:#555}\
    dd{margin:0}ul{margin:.2rem 0;padding-left:1.2rem}code,pre{font-family:ui-monospace,monospace;\
    font-size:.9em}pre{background:#f4f4f4;padding:.6rem;overflow:auto;margin:.2rem 0;\
    white-space:pre-wrap;overflow-wrap:anywhere}.limit{color:#7a4b00}@media \
    (prefers-color-scheme:dark){body{color:#e6e6e6;background:#181818}pre{background:#262626}\
    dt{color:#aaa}.limit{color:#e0b060}}";

/// Writes the page.
pub fn html(page: &Page) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(page, &mut text);
    text
}

fn write(page: &Page, out: &mut String) -> std::fmt::Result {
    let title = safe(&page.title);
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
         'unsafe-inline'\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>{title}</h1>"
    )?;
    for note in &page.notes {
        writeln!(out, "<p>{}</p>", safe(note))?;
    }
    for section in &page.sections {
        writeln!(out, "<section>\n<h2>{}</h2>\n<dl>", safe(&section.heading))?;
        lines(&section.lines, out)?;
        writeln!(out, "</dl>")?;
        for line in &section.lines {
            if let PageLine::Limit(sentence) = line {
                writeln!(out, "<p class=\"limit\">{}</p>", safe(sentence))?;
            }
        }
        writeln!(out, "</section>")?;
    }
    writeln!(out, "</body>\n</html>")
}

/// The facts. Items and bytes stand within the value of the fact before them.
fn lines(lines: &[PageLine], out: &mut String) -> std::fmt::Result {
    let (mut in_value, mut in_list) = (false, false);
    for line in lines {
        let is_item = matches!(line, PageLine::Item(_));
        if in_list && !is_item {
            write!(out, "</ul>")?;
            in_list = false;
        }
        match line {
            PageLine::Fact(name, value) => {
                write!(out, "{}<dt>{name}</dt><dd>", end(in_value))?;
                write!(out, "<code>{}</code>", safe(value))?;
                in_value = true;
            }
            PageLine::Item(text) => {
                if !in_list {
                    write!(out, "<ul>")?;
                }
                in_list = true;
                write!(out, "<li><code>{}</code></li>", safe(text))?;
            }
            PageLine::Bytes(lines) => write!(out, "<pre>{}</pre>", safe(&lines.join("\n")))?,
            PageLine::Command(name, command) => {
                write!(out, "{}<dt>{name}</dt><dd>", end(in_value))?;
                write!(out, "<pre>{}</pre>", safe(command))?;
                in_value = true;
            }
            PageLine::Limit(_) => {}
        }
    }
    if in_list {
        write!(out, "</ul>")?;
    }
    writeln!(out, "{}", end(in_value))
}

fn end(in_value: bool) -> &'static str {
    if in_value { "</dd>\n" } else { "" }
}

/// Text without markup.
fn safe(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::html;
    use crate::markdown::markdown;
    use crate::page::{Page, PageLine, Section};

    fn page(text: &str) -> Page {
        Page {
            title: text.to_owned(),
            notes: Vec::new(),
            sections: vec![Section {
                heading: text.to_owned(),
                lines: vec![
                    PageLine::Fact("files", text.to_owned()),
                    PageLine::Item(text.to_owned()),
                    PageLine::Bytes(vec![text.to_owned()]),
                    PageLine::Command("again", text.to_owned()),
                ],
            }],
        }
    }

    #[test]
    fn recorded_text_is_never_markup() {
        let text = html(&page("<script>x</script><img src=x onerror='y'>\" &amp;"));
        assert!(
            !text.contains("<script") && !text.contains("<img"),
            "{text}"
        );
        assert_eq!(text.matches("&lt;script&gt;").count(), 7, "{text}");
        let text = markdown(&page("``` <b> [a](javascript:x) `"));
        let outside = text.replace("``` <b> [a](javascript:x) `", "");
        assert!(!outside.contains("<b>"), "{text}");
        assert!(text.contains("```` ``` <b>"), "{text}");
        assert!(text.contains("\n    ````text\n    ``` <b>"), "{text}");
    }
}
