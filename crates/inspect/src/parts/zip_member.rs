//! A member of a zip archive, and ranges within members. Office documents are such archives.

use std::ops::Range;

use backstory_inspection::file_parts::{NoPart, PartAnswer, PartName, PartPlace};

use super::{absent, listed, unreadable};
use crate::formats::markup::{DocumentParts, MemberPlace};

/// The place of a part of an archive that has no parts but its members, with the digest of the
/// member's content.
///
/// # Errors
/// As [`place`].
pub fn of_archive(content: &[u8], name: &PartName) -> PartAnswer {
    match name {
        PartName::Cell(_) => Err(NoPart::OtherKind),
        PartName::Member(member) => {
            let digest = DocumentParts::open(content)?.digest(member);
            Ok(PartPlace {
                content: digest,
                ..place(content, member)?
            })
        }
    }
}

/// The place of a member's data.
///
/// # Errors
/// The content is no archive, or has no such member.
pub fn place(content: &[u8], name: &str) -> PartAnswer {
    let member = member(&mut DocumentParts::open(content)?, name)?;
    Ok(PartPlace::exact(member.data))
}

fn member(document: &mut DocumentParts<'_>, name: &str) -> Result<MemberPlace, NoPart> {
    let found = document.place(name)?;
    found.ok_or_else(|| absent(format!("the archive has no member `{name}`")))
}

/// A member that is read as XML.
pub struct XmlMember {
    name: String,
    place: MemberPlace,
    /// Its text.
    pub text: String,
}

impl XmlMember {
    /// Reads a member of a document.
    ///
    /// # Errors
    /// It is not there, or damaged, or too large.
    pub fn read(document: &mut DocumentParts<'_>, name: &str) -> Result<XmlMember, NoPart> {
        let place = member(document, name).map_err(|error| match error {
            NoPart::Absent(why) => unreadable(why),
            other => other,
        })?;
        if !place.is_whole {
            return Err(unreadable(format!("{name} is too large")));
        }
        let text = document.text(name)?.unwrap_or_default();
        Ok(XmlMember {
            name: name.to_owned(),
            place,
            text,
        })
    }
}

/// The place of a part that lies in these ranges of members. A compressed member counts as a whole.
pub fn within(content: &[u8], parts: &[(XmlMember, Range<usize>)]) -> PartAnswer {
    let mut place = PartPlace::default();
    let mut compressed = Vec::new();
    for (member, inner) in parts {
        let data = &member.place.data;
        if !member.place.is_stored {
            place.ranges.push(data.clone());
            compressed.push(member.name.clone());
            continue;
        }
        // A text whose damaged characters were replaced has other offsets.
        if content.get(data.clone()) != Some(member.text.as_bytes()) {
            return Err(unreadable(format!("{} is not in UTF-8", member.name)));
        }
        let range = data.start + inner.start..data.start + inner.end;
        place.ranges.push(range);
    }
    place.within = (!compressed.is_empty()).then(|| {
        let plural = if compressed.len() == 1 { "" } else { "s" };
        format!(
            "all of the compressed member{plural} {}",
            listed(&compressed)
        )
    });
    Ok(place)
}
