//! Texts: their lines, and the settings in them.

use backstory_comparison::{ContentDifference, WireBytes, compare, is_text, is_utf16, lines};
use backstory_inspection::file_parts::{NoPart, PartAnswer, PartName};
use backstory_inspection::format_answer::{LARGEST, TextLines};
use backstory_inspection::question::Portion;
use serde_json::json;

use crate::changes::{FileChanges, text_changes};
use crate::parts::delimited_cell;
use crate::tables::{ViewBudget, delimited_rows};
use crate::text_encoding::decoded;
use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent, assignment};

pub struct PlainText;

/// The most bytes of a line in a view.
const LONGEST_LINE: usize = 10_000;

impl Inspector for PlainText {
    /// A text of any name may be a table.
    fn part(&self, content: NamedContent<'_>, name: &PartName) -> PartAnswer {
        match name {
            PartName::Member(_) => Err(NoPart::OtherKind),
            PartName::Cell(_) => {
                delimited_cell::place(content.bytes, name, delimited_rows::guessed_separator)
            }
        }
    }

    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        let bytes = decoded(content.bytes);
        if !is_text(&bytes) {
            return Err(UnreadableContent("it is not a text".to_owned()));
        }
        let mut facts = FileFacts::default();
        let all = lines(&bytes);
        let text = String::from_utf8_lossy(&bytes);
        facts.value("lines", all.len());
        facts.value("words", text.split_whitespace().count());
        facts.value("encoding", encoding(content.bytes));
        let returns = all.iter().filter(|line| line.ends_with(b"\r")).count();
        let endings = match returns {
            0 => "LF",
            _ if returns == all.len() => "CRLF",
            _ => "mixed",
        };
        facts.value("line_endings", endings);
        facts.value("ends_with_newline", bytes.ends_with(b"\n"));
        Ok(facts)
    }

    fn changes(&self, old: NamedContent<'_>, new: NamedContent<'_>) -> Read<FileChanges> {
        let mut changes = FileChanges::default();
        let encodings = (encoding(old.bytes), encoding(new.bytes));
        if encodings.0 != encodings.1 && (is_utf16(old.bytes) || is_utf16(new.bytes)) {
            changes.say(format!("encoding {} → {}", encodings.0, encodings.1));
        }
        // A table is compared by its lines here.
        match compare(&decoded(old.bytes), &decoded(new.bytes)) {
            ContentDifference::Same => {}
            ContentDifference::Text(text) => {
                text_changes(&text, ("line", "lines"), &mut changes);
                changes.settings(&assignment::changed(&text));
                if text.removed == 0 && text.added == 0 {
                    changes.say("only the newline at the end differs");
                }
            }
            other => {
                changes.say(other.summary(&|name| String::from_utf8_lossy(name).into_owned()));
                changes.detail("compared", &json!("as bytes"));
            }
        }
        Ok(changes)
    }

    fn text(&self, content: NamedContent<'_>) -> Read<Vec<u8>> {
        let text = decoded(content.bytes);
        match is_text(&text) && text.len() <= LARGEST {
            true => Ok(text.into_owned()),
            false => Err(UnreadableContent(format!(
                "it is no text, or one of more than {} MiB",
                LARGEST >> 20
            ))),
        }
    }

    fn lines(&self, content: NamedContent<'_>, part: Portion) -> Read<TextLines> {
        let text = decoded(content.bytes);
        let all = lines(&text);
        let mut found = TextLines {
            total: all.len(),
            ..TextLines::default()
        };
        let mut budget = ViewBudget::default();
        for line in all.iter().skip(part.first).take(part.limit) {
            let shown = &line[..line.len().min(LONGEST_LINE)];
            if !budget.takes(shown.len()) {
                break;
            }
            found.cut |= shown.len() < line.len();
            found.lines.push(WireBytes::from(shown));
        }
        Ok(found)
    }
}

fn encoding(content: &[u8]) -> &'static str {
    match content {
        bytes if is_utf16(bytes) && bytes[0] == 0xff => "UTF-16LE",
        bytes if is_utf16(bytes) => "UTF-16BE",
        bytes if bytes.is_ascii() => "ASCII",
        bytes if std::str::from_utf8(bytes).is_ok() => "UTF-8",
        _ => "unknown, not UTF-8",
    }
}
