//! OpenDocument texts (.odt): author and other properties, and paragraphs.

use backstory_inspection::file_parts::{PartAnswer, PartName};

use super::markup::{DocumentParts, leaves, texts_of};
use crate::parts::zip_member;
use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent};

pub struct OpenDocument;

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
        zip_member::of_archive(content.bytes, name)
    }

    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        let mut document = DocumentParts::open(content.bytes)?;
        let mut facts = FileFacts::default();
        properties(&mut document, &mut facts)?;
        let Some(body) = document.text("content.xml")? else {
            return Err(UnreadableContent("it has no member content.xml".to_owned()));
        };
        let paragraphs = texts_of(&body, &["p", "h"], &["tab", "line-break", "s"])?;
        facts.text(("paragraph", "paragraphs"), paragraphs);
        Ok(facts)
    }
}

/// The properties of any OpenDocument file.
pub(super) fn properties(document: &mut DocumentParts<'_>, facts: &mut FileFacts) -> Read<()> {
    let Some(meta) = document.text("meta.xml")? else {
        return Ok(());
    };
    for (name, text) in leaves(&meta)? {
        if let Some((_, word)) = PROPERTIES.iter().find(|(known, _)| *known == name) {
            facts.value(word, text);
        }
    }
    Ok(())
}
