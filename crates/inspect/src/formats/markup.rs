//! Reads XML as a sequence of elements and texts, and members of the zip archive that an office
//! document is.

use std::io::{self, Cursor, Read as _};
use std::ops::{ControlFlow, Range};

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use zip::{CompressionMethod, ZipArchive};

use crate::{FileFacts, Read, UnreadableContent};

/// The most bytes of one member. A small archive may contain a member of any size.
const LARGEST_MEMBER: u64 = 48 << 20;

/// The most bytes of the target of a link (`PATH_MAX`).
const LONGEST_TARGET: u64 = 4096;

/// The archive of an office document.
pub struct DocumentParts<'d> {
    archive: ZipArchive<Cursor<&'d [u8]>>,
    /// The bytes of the archive.
    length: usize,
}

impl<'d> DocumentParts<'d> {
    pub fn open(bytes: &'d [u8]) -> Read<DocumentParts<'d>> {
        let archive = ZipArchive::new(Cursor::new(bytes)).map_err(UnreadableContent::of)?;
        Ok(DocumentParts {
            archive,
            length: bytes.len(),
        })
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

    /// Adds the texts of a member's elements as facts. `words`: the names of these elements, and
    /// those of the facts.
    pub fn properties(
        &mut self,
        member: &str,
        words: &[(&str, &str)],
        facts: &mut FileFacts,
    ) -> Read<()> {
        let Some(member) = self.text(member)? else {
            return Ok(());
        };
        for (name, text) in leaves(&member)? {
            if let Some((_, word)) = words.iter().find(|(known, _)| *known == name) {
                facts.value(word, text);
            }
        }
        Ok(())
    }

    /// BLAKE3 of a member. `None` if it is not there, or cannot be unpacked: it is encrypted,
    /// damaged or too large.
    pub fn digest(&mut self, name: &str) -> Option<[u8; 32]> {
        let number = self.archive.index_for_name(name)?;
        let mut member = self.archive.by_index(number).ok()?.take(LARGEST_MEMBER + 1);
        let mut digest = blake3::Hasher::new();
        let length = io::copy(&mut member, &mut digest).ok()?;
        (length <= LARGEST_MEMBER).then(|| *digest.finalize().as_bytes())
    }

    /// The target of a member that is a symbolic link. `None` as of [`Self::digest`].
    pub fn link_target(&mut self, name: &str) -> Option<String> {
        let number = self.archive.index_for_name(name)?;
        let mut member = self.archive.by_index(number).ok()?.take(LONGEST_TARGET);
        let mut target = Vec::new();
        member.read_to_end(&mut target).ok()?;
        Some(String::from_utf8_lossy(&target).into_owned())
    }

    /// Where a member's data lie. `None` if the archive has no such member.
    pub fn place(&mut self, name: &str) -> Read<Option<MemberPlace>> {
        let Some(number) = self.archive.index_for_name(name) else {
            return Ok(None);
        };
        let damaged = |why: &dyn std::fmt::Display| UnreadableContent(format!("{name}: {why}"));
        let member = self.archive.by_index_raw(number);
        let member = member.map_err(|error| damaged(&error))?;
        let start = member.data_start();
        let start = start.ok_or_else(|| damaged(&"it has no data"))?;
        let end = start.checked_add(member.compressed_size());
        let end = end.filter(|end| *end <= self.length as u64);
        let end = end.ok_or_else(|| damaged(&"it ends behind the end of the archive"))?;
        Ok(Some(MemberPlace {
            data: start as usize..end as usize,
            is_stored: member.compression() == CompressionMethod::Stored && !member.encrypted(),
            is_whole: member.size() <= LARGEST_MEMBER,
            is_link: member.is_symlink(),
        }))
    }
}

/// The data of a member within its archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberPlace {
    /// Their bytes.
    pub data: Range<usize>,
    /// They are the member itself, and not a compressed form of it.
    pub is_stored: bool,
    /// [`DocumentParts::text`] reads all of it.
    pub is_whole: bool,
    /// The member is a symbolic link. Its data are the target.
    pub is_link: bool,
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
    let mut reader = reader(xml);
    loop {
        match reader.read_event().map_err(UnreadableContent::of)? {
            Event::Start(element) => {
                visit(Markup::Begin(local(element.name().as_ref()).to_owned()))
            }
            Event::End(element) => visit(Markup::End(local(element.name().as_ref()).to_owned())),
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

fn reader(xml: &str) -> Reader<&[u8]> {
    let mut reader = Reader::from_str(xml);
    reader.config_mut().expand_empty_elements = true;
    reader
}

/// A name without its namespace prefix.
fn local(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or_default()
}

/// A tag, and where it is in the text.
pub enum PlacedTag<'t> {
    /// The start of an element, and the offset behind it.
    Begin(&'t BytesStart<'t>, usize),
    /// The end of an element with this name, and its offset.
    End(&'t str, usize),
}

impl PlacedTag<'_> {
    /// The name of the element.
    pub fn name(&self) -> &str {
        match self {
            PlacedTag::Begin(element, _) => local(element.name().into_inner()),
            PlacedTag::End(name, _) => local(name),
        }
    }
}

/// An attribute of an element, by its name without a namespace prefix.
pub fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut attributes = element.attributes();
    let mut all = attributes.with_checks(false).flatten();
    let found = all.find(|one| local(one.key.as_ref()) == name)?;
    Some(
        found
            .normalized_value(XmlVersion::Implicit1_0)
            .ok()?
            .into_owned(),
    )
}

/// Calls `visit` for each tag, until it breaks.
///
/// # Errors
/// The text is not well-formed up to there.
pub fn walk_tags<B>(
    xml: &str,
    mut visit: impl FnMut(PlacedTag<'_>) -> ControlFlow<B>,
) -> Read<Option<B>> {
    let mut reader = reader(xml);
    let mut depth = 0usize;
    loop {
        let before = reader.buffer_position() as usize;
        let flow = match reader.read_event().map_err(UnreadableContent::of)? {
            Event::Start(element) => {
                depth += 1;
                visit(PlacedTag::Begin(
                    &element,
                    reader.buffer_position() as usize,
                ))
            }
            Event::End(element) => {
                depth = depth.saturating_sub(1);
                visit(PlacedTag::End(element.name().as_ref(), before))
            }
            Event::Eof if depth > 0 => {
                return Err(UnreadableContent("it ends within an element".to_owned()));
            }
            Event::Eof => return Ok(None),
            _ => ControlFlow::Continue(()),
        };
        if let ControlFlow::Break(found) = flow {
            return Ok(Some(found));
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
fn leaves(xml: &str) -> Read<Vec<(String, String)>> {
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
