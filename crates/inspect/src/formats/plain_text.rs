//! Texts: their lines, and the settings in them.

use backstory_comparison::{ContentDifference, compare, lines};
use serde_json::json;

use crate::changes::{FileChanges, text_changes};
use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent, assignment};

pub struct PlainText;

impl Inspector for PlainText {
    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        if !backstory_comparison::is_text(content.bytes) {
            return Err(UnreadableContent("it is not a text".to_owned()));
        }
        let mut facts = FileFacts::default();
        let all = lines(content.bytes);
        let text = String::from_utf8_lossy(content.bytes);
        facts.value("lines", all.len());
        facts.value("words", text.split_whitespace().count());
        let is_utf8 = std::str::from_utf8(content.bytes).is_ok();
        let encoding = match content.bytes {
            bytes if bytes.is_ascii() => "ASCII",
            _ if is_utf8 => "UTF-8",
            _ => "unknown, not UTF-8",
        };
        facts.value("encoding", encoding);
        let returns = all.iter().filter(|line| line.ends_with(b"\r")).count();
        let endings = match returns {
            0 => "LF",
            _ if returns == all.len() => "CRLF",
            _ => "mixed",
        };
        facts.value("line_endings", endings);
        facts.value("ends_with_newline", content.bytes.ends_with(b"\n"));
        Ok(facts)
    }

    fn changes(&self, old: NamedContent<'_>, new: NamedContent<'_>) -> Read<FileChanges> {
        let mut changes = FileChanges::default();
        // The name is left out: a table is compared by its lines here.
        match compare(b"", old.bytes, new.bytes) {
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
}
