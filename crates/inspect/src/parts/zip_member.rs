//! A member of a zip archive, and ranges within members. Office documents are such archives.

use std::ops::Range;

use backstory_inspection::file_parts::{NoPart, PartAnswer, PartName, PartPlace};

use super::{absent, listed, no_file, unreadable};
use crate::formats::markup::{DocumentParts, MemberPlace};

/// The place of a part of an archive that has no parts but its members, with the digest of the
/// member's content.
///
/// # Errors
/// As [`place`], and for a member that is a link.
pub fn of_archive(content: &[u8], name: &PartName) -> PartAnswer {
    match name {
        PartName::Cell(_) => Err(NoPart::OtherKind),
        PartName::Member(member) => {
            let mut archive = DocumentParts::open(content)?;
            let place = self::member(&mut archive, member)?;
            if place.is_link {
                let target = archive.link_target(member);
                return Err(no_file(member, "symbolic link", target.as_deref()));
            }
            Ok(PartPlace {
                content: archive.digest(member),
                ..PartPlace::exact(place.data)
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

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write as _};

    use zip::write::SimpleFileOptions;

    use super::*;

    #[test]
    fn a_link_is_no_file_of_the_archive_and_its_target_is_named() {
        let mut packer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default();
        packer.start_file("a.txt", options).unwrap();
        packer.write_all(b"one\n").unwrap();
        packer.add_symlink("link", "a.txt", options).unwrap();
        let archive = packer.finish().unwrap().into_inner();
        let asked = |name: &str| of_archive(&archive, &PartName::Member(name.to_owned()));
        let digest = *blake3::hash(b"one\n").as_bytes();
        assert_eq!(asked("a.txt").unwrap().content, Some(digest));
        let why = "`link` is no file (symbolic link to `a.txt`)".to_owned();
        assert_eq!(asked("link"), Err(NoPart::Absent(why)));
    }
}
