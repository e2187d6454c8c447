//! Zip archives: members with their sizes and checksums. Nothing is unpacked.

use std::io::Cursor;

use backstory_inspection::file_parts::{PartAnswer, PartName};
use serde_json::json;
use zip::ZipArchive as Archive;

use crate::parts::zip_member;
use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent};

pub struct ZipArchive;

impl Inspector for ZipArchive {
    fn part(&self, content: NamedContent<'_>, name: &PartName) -> PartAnswer {
        zip_member::of_archive(content.bytes, name)
    }

    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        let mut archive =
            Archive::new(Cursor::new(content.bytes)).map_err(UnreadableContent::of)?;
        let mut members = Vec::new();
        for at in 0..archive.len() {
            let member = archive.by_index_raw(at).map_err(UnreadableContent::of)?;
            let name = String::from_utf8_lossy(member.name_raw()).into_owned();
            let mut told =
                json!({"size": member.size(), "crc32": format!("{:08x}", member.crc32())});
            if member.is_symlink() {
                told["type"] = json!("symbolic link");
            }
            members.push((name, told));
        }
        let mut facts = FileFacts::default();
        facts.value(
            "comment",
            String::from_utf8_lossy(archive.comment()).into_owned(),
        );
        facts.parts(("member", "members"), members);
        Ok(facts)
    }
}
