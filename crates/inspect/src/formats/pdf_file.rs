//! PDF files: properties, pages, and the lines of their text.
//!
//! Text has the order of the instructions that draw it. Absent: text in pictures, and files whose
//! content needs a password.

use lopdf::{Dictionary, Document, LoadOptions, Object, decode_text_string};

use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent};

pub struct PdfFile;

/// The most bytes that a stream may unpack to.
const LARGEST: usize = 32 << 20;

/// The most pages whose text is read.
const PAGES: usize = 2000;

/// Properties of a document, with the names that facts have.
const PROPERTIES: &[(&[u8], &str)] = &[
    (b"Title", "title"),
    (b"Author", "author"),
    (b"Subject", "subject"),
    (b"Keywords", "keywords"),
    (b"Creator", "creator"),
    (b"Producer", "producer"),
    (b"CreationDate", "created"),
    (b"ModDate", "modified"),
];

impl Inspector for PdfFile {
    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        let options = LoadOptions::with_max_decompressed_size(LARGEST);
        let document = Document::load_mem_with_options(content.bytes, options);
        let document = document.map_err(UnreadableContent::of)?;
        if document.is_encrypted() {
            return Err(UnreadableContent("it needs a password".to_owned()));
        }
        let mut facts = FileFacts::default();
        facts.value("version", document.version.as_str());
        if let Some(properties) = properties(&document) {
            for (key, name) in PROPERTIES {
                let value = properties.get_deref(key, &document);
                let text = value.and_then(decode_text_string);
                facts.value(name, text.unwrap_or_default());
            }
        }
        let pages = document.get_pages();
        facts.value("pages", pages.len());
        let (mut lines, mut unread) = (Vec::new(), 0);
        for &page in pages.keys().take(PAGES) {
            match document.extract_text_with_limit(&[page], LARGEST) {
                Ok(text) => lines.extend(text.lines().filter_map(line)),
                Err(_) => unread += 1,
            }
        }
        if unread > 0 {
            facts.value("unread_pages", unread);
        }
        facts.text(("line", "lines"), lines);
        Ok(facts)
    }
}

fn properties(document: &Document) -> Option<&Dictionary> {
    let found = document.trailer.get_deref(b"Info", document);
    found.and_then(Object::as_dict).ok()
}

/// A line without the space around it. `None` if nothing is left.
fn line(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
