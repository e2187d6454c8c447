//! Reads XML as a sequence of elements and texts, and members of the zip archive that an office
//! document is.

use std::io::{Cursor, Read as _};

use quick_xml::Reader;
use quick_xml::events::Event;
use zip::ZipArchive;

use crate::{Read, UnreadableContent};

/// The most bytes of one member. A small archive may contain a member of any size.
const LARGEST_MEMBER: u64 = 48 << 20;

/// The archive of an office document.
pub struct DocumentParts<'d> {
    archive: ZipArchive<Cursor<&'d [u8]>>,
}

impl<'d> DocumentParts<'d> {
    pub fn open(bytes: &'d [u8]) -> Read<DocumentParts<'d>> {
        let archive = ZipArchive::new(Cursor::new(bytes)).map_err(UnreadableContent::of)?;
        Ok(DocumentParts { archive })
    }

    /// A member as text. `None` if the archive has no such member.
    pub fn text(&mut self, name: &str) -> Read<Option<String>> {
        let mut member = match self.archive.by_name(name) {
            Ok(member) => member.take(LARGEST_MEMBER),
            Err(zip::result::ZipError::FileNotFound) => return Ok(None),
            Err(error) => return Err(UnreadableContent(format!("{name}: {error}"))),
        };
        let mut bytes = Vec::new();
        member
            .read_to_end(&mut bytes)
            .map_err(|error| UnreadableContent(format!("{name}: {error}")))?;
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }
}

/// A step through an XML text. Names have no namespace prefix.
#[derive(Debug, PartialEq, Eq)]
pub enum Markup {
    /// An element begins.
    Begin(String),
    /// An element ends. Empty elements end, too.
    End(String),
    /// Text, with its references resolved.
    Text(String),
}

/// Calls `visit` for each step.
///
/// # Errors
/// The text is not well-formed.
pub fn walk(xml: &str, mut visit: impl FnMut(Markup)) -> Read<()> {
    let mut reader = Reader::from_str(xml);
    reader.config_mut().expand_empty_elements = true;
    let local = |name: &str| name.rsplit(':').next().unwrap_or_default().to_owned();
    loop {
        match reader.read_event().map_err(UnreadableContent::of)? {
            Event::Start(element) => visit(Markup::Begin(local(element.name().as_ref()))),
            Event::End(element) => visit(Markup::End(local(element.name().as_ref()))),
            Event::Text(text) => visit(Markup::Text((*text).to_owned())),
            Event::CData(text) => visit(Markup::Text((*text).to_owned())),
            Event::GeneralRef(reference) => {
                let char = reference.resolve_char_ref().ok().flatten();
                let known = char.map(String::from).or_else(|| {
                    quick_xml::escape::resolve_predefined_entity(&reference).map(str::to_owned)
                });
                visit(Markup::Text(known.unwrap_or_default()));
            }
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

/// The text of each of these elements, in order. An element within another of them ends the outer
/// one's text.
pub fn texts_of(xml: &str, elements: &[&str], breaks: &[&str]) -> Read<Vec<String>> {
    let mut all = Vec::new();
    let mut open: Vec<String> = Vec::new();
    walk(xml, |step| match step {
        Markup::Begin(name) if elements.contains(&&*name) => open.push(String::new()),
        Markup::Begin(name) if breaks.contains(&&*name) => {
            if let Some(text) = open.last_mut() {
                text.push(' ');
            }
        }
        Markup::End(name) if elements.contains(&&*name) => all.extend(open.pop()),
        Markup::Text(text) => {
            if let Some(last) = open.last_mut() {
                last.push_str(&text);
            }
        }
        _ => {}
    })?;
    Ok(all)
}

/// The text of each element that contains no other, with the element's name: properties of a
/// document.
pub fn leaves(xml: &str) -> Read<Vec<(String, String)>> {
    let mut all = Vec::new();
    let mut current: Option<(String, String)> = None;
    walk(xml, |step| match step {
        Markup::Begin(name) => current = Some((name, String::new())),
        Markup::Text(text) => {
            if let Some((_, so_far)) = &mut current {
                so_far.push_str(&text);
            }
        }
        Markup::End(_) => all.extend(current.take()),
    })?;
    Ok(all)
}
