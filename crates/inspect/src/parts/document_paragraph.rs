//! A paragraph of a document (.docx, .odt): `paragraphs[3]`, as its facts list them.
//!
//! The text of a document is one member of an archive. It is compressed, so that all of its data
//! are the finest true answer. In an archive that stores its members, it is the paragraph.

use std::ops::{ControlFlow, Range};

use backstory_inspection::file_parts::{NoPart, PartAnswer, PartName, PartPlace};

use super::absent;
use super::member_path::{MemberPath, PathStep};
use super::zip_member::{self, XmlMember};
use crate::formats::markup::{DocumentParts, PlacedTag, walk_tags};

/// The name of the list.
const PARAGRAPHS: &str = "paragraphs";

/// The place of a paragraph, or of a member of the archive. `member` has the text, and paragraphs
/// are these elements.
///
/// # Errors
/// A cell is meant, or the document has no such paragraph or member, or is damaged.
pub fn place(content: &[u8], name: &PartName, member: &str, elements: &[&str]) -> PartAnswer {
    let PartName::Member(text) = name else {
        return Err(NoPart::OtherKind);
    };
    let number = match MemberPath::read(text).map(|path| path.0).as_deref() {
        Ok([PathStep::Name(list), PathStep::Item(number)]) if list == PARAGRAPHS => *number,
        _ => return zip_member::of_archive(content, name),
    };
    let body = XmlMember::read(&mut DocumentParts::open(content)?, member)?;
    let range = nth_paragraph(&body.text, elements, number)?;
    let range = range.map_err(|count| {
        absent(format!(
            "the document has {count} paragraphs, and none with the number {number}"
        ))
    })?;
    Ok(PartPlace {
        name: Some(text.clone()),
        ..zip_member::within(content, &[(body, range)])?
    })
}

/// The inner range of a paragraph, in the order of their ends. `Err`: the number of paragraphs.
fn nth_paragraph(
    xml: &str,
    elements: &[&str],
    number: usize,
) -> Result<Result<Range<usize>, usize>, NoPart> {
    let (mut open, mut count) = (Vec::new(), 0);
    let found = walk_tags(xml, |tag| {
        if !elements.contains(&tag.name()) {
            return ControlFlow::Continue(());
        }
        match tag {
            PlacedTag::Begin(_, behind) => open.push(behind),
            PlacedTag::End(_, before) => {
                if let Some(start) = open.pop() {
                    if count == number {
                        return ControlFlow::Break(start..before);
                    }
                    count += 1;
                }
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(found.ok_or(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_count_as_their_texts_do() {
        let xml = "<d><p>one</p><t><p>two<b><p>inside</p></b></p></t><p/><p>last</p></d>";
        let text = |number| Ok::<_, NoPart>(nth_paragraph(xml, &["p"], number)?.map(|at| &xml[at]));
        assert_eq!(text(0), Ok(Ok("one")));
        assert_eq!(text(1), Ok(Ok("inside")));
        assert_eq!(text(2), Ok(Ok("two<b><p>inside</p></b>")));
        assert_eq!(text(4), Ok(Ok("last")));
        assert_eq!(text(5), Ok(Err(5)));
        let texts = crate::formats::markup::texts_of(xml, &["p"], &[]).unwrap();
        assert_eq!(texts, ["one", "inside", "two", "", "last"]);
    }
}
