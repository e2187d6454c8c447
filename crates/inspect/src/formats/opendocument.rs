//! OpenDocument texts (.odt): author and other properties, and paragraphs.

use backstory_inspection::file_parts::{PartAnswer, PartName};

use super::markup::{DocumentParts, texts_of};
use crate::parts::document_paragraph;
use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent};

pub struct OpenDocument;

/// The member with the text, and the elements that are paragraphs.
const TEXT: &str = "content.xml";
const PARAGRAPHS: [&str; 2] = ["p", "h"];

/// Properties of `meta.xml`, and the words for them.
const PROPERTIES: &[(&str, &str)] = &[
    ("initial-creator", "author"),
    ("creator", "last_modified_by"),
    ("title", "title"),
    ("subject", "subject"),
    ("keyword", "keywords"),
    ("editing-cycles", "revision"),
    ("creation-date", "created"),
    ("date", "modified"),
    ("generator", "program"),
];

impl Inspector for OpenDocument {
    fn part(&self, content: NamedContent<'_>, name: &PartName) -> PartAnswer {
        document_paragraph::place(content.bytes, name, TEXT, &PARAGRAPHS)
    }

    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        let mut document = DocumentParts::open(content.bytes)?;
        let mut facts = FileFacts::default();
        properties(&mut document, &mut facts)?;
        let Some(body) = document.text(TEXT)? else {
            return Err(UnreadableContent(format!("it has no member {TEXT}")));
        };
        let paragraphs = texts_of(&body, &PARAGRAPHS, &["tab", "line-break", "s"])?;
        facts.text(("paragraph", "paragraphs"), paragraphs);
        Ok(facts)
    }
}

/// The properties of any OpenDocument file.
pub(super) fn properties(document: &mut DocumentParts<'_>, facts: &mut FileFacts) -> Read<()> {
    document.properties("meta.xml", PROPERTIES, facts)
}
