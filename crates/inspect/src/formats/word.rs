//! Word documents (.docx): authors and other properties, and paragraphs.

use backstory_inspection::file_parts::{PartAnswer, PartName};

use super::markup::{DocumentParts, Markup, texts_of, walk};
use crate::parts::document_paragraph;
use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent};

pub struct WordDocument;

/// The member with the text, and the elements that are paragraphs.
const TEXT: &str = "word/document.xml";
const PARAGRAPHS: [&str; 1] = ["p"];

/// Properties of `docProps/core.xml`, and the words for them.
const PROPERTIES: &[(&str, &str)] = &[
    ("creator", "author"),
    ("lastModifiedBy", "last_modified_by"),
    ("title", "title"),
    ("subject", "subject"),
    ("keywords", "keywords"),
    ("revision", "revision"),
    ("created", "created"),
    ("modified", "modified"),
];

impl Inspector for WordDocument {
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
        let paragraphs = texts_of(
            &without_deletions(&body)?,
            &PARAGRAPHS,
            &["tab", "br", "cr"],
        )?;
        facts.text(("paragraph", "paragraphs"), paragraphs);
        Ok(facts)
    }
}

/// The properties that Office keeps for all its documents.
pub(super) fn properties(document: &mut DocumentParts<'_>, facts: &mut FileFacts) -> Read<()> {
    document.properties("docProps/core.xml", PROPERTIES, facts)
}

/// Checks that the text is well-formed. Texts of deletions that are tracked stand in elements of
/// their own (`delText`), field codes in `instrText`; both are left out.
fn without_deletions(xml: &str) -> Read<String> {
    let mut skipped = 0;
    let mut kept = String::new();
    walk(xml, |step| match step {
        Markup::Begin(name) if name == "delText" || name == "instrText" => skipped += 1,
        Markup::End(name) if name == "delText" || name == "instrText" => skipped -= 1,
        Markup::Begin(name) => kept.push_str(&format!("<{name}>")),
        Markup::End(name) => kept.push_str(&format!("</{name}>")),
        Markup::Text(text) if skipped == 0 => {
            kept.push_str(&quick_xml::escape::escape(text.as_str()));
        }
        Markup::Text(_) => {}
    })?;
    Ok(kept)
}
