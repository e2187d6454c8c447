//! Tar archives, also compressed: members with their sizes and digests.

use backstory_inspection::file_parts::{PartAnswer, PartName};
use serde_json::json;

use super::tar_stream::{self, FILE, TarStream};
use crate::parts::tar_member;
use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent};

pub struct TarArchive;

/// The most members.
const MEMBERS: usize = 100_000;

impl Inspector for TarArchive {
    fn part(&self, content: NamedContent<'_>, name: &PartName) -> PartAnswer {
        tar_member::find(content.bytes, name)
    }

    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        let mut stream = TarStream::open(content.bytes)?;
        let mut all = Vec::new();
        for entry in stream.archive.entries().map_err(UnreadableContent::of)? {
            let mut entry = entry.map_err(UnreadableContent::of)?;
            if all.len() == MEMBERS {
                let why = format!("it has more than {MEMBERS} members");
                return Err(UnreadableContent(why));
            }
            let header = entry.header();
            let mode = header.mode().map_err(UnreadableContent::of)?;
            let kind = tar_stream::kind(header.entry_type());
            let mut told = json!({"type": kind, "mode": format!("{:04o}", mode & 0o7777)});
            if let Some(target) = entry.link_name_bytes() {
                told["target"] = json!(String::from_utf8_lossy(&target));
            }
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            if kind == FILE {
                told["size"] = json!(entry.size());
                told["blake3"] = json!(tar_stream::digest(&mut entry)?.to_hex().as_str());
            }
            all.push((name, told));
        }
        let mut facts = FileFacts::default();
        facts.value("compression", stream.compression);
        facts.parts(("member", "members"), all);
        Ok(facts)
    }
}
