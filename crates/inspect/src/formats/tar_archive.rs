//! Tar archives, also gzipped: members with their sizes and digests.

use std::io::{self, Read as _};

use flate2::read::MultiGzDecoder;
use serde_json::json;
use tar::Archive;

use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent};

pub struct TarArchive;

/// The most bytes that an archive may unpack to.
const LARGEST: u64 = 1 << 30;

/// The most members.
const MEMBERS: usize = 100_000;

impl Inspector for TarArchive {
    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        match content.bytes.starts_with(&[0x1f, 0x8b]) {
            true => members(MultiGzDecoder::new(content.bytes).take(LARGEST)),
            false => members(content.bytes.take(LARGEST)),
        }
    }
}

fn members(reader: impl io::Read) -> Read<FileFacts> {
    let mut archive = Archive::new(reader);
    let mut all = Vec::new();
    for entry in archive.entries().map_err(UnreadableContent::of)? {
        let mut entry = entry.map_err(UnreadableContent::of)?;
        if all.len() == MEMBERS {
            let why = format!("it has more than {MEMBERS} members");
            return Err(UnreadableContent(why));
        }
        let header = entry.header();
        let mode = header.mode().map_err(UnreadableContent::of)?;
        let kind = match header.entry_type() {
            kind if kind.is_file() => "file",
            kind if kind.is_dir() => "directory",
            kind if kind.is_symlink() => "symbolic link",
            kind if kind.is_hard_link() => "hard link",
            _ => "other",
        };
        let mut told = json!({"type": kind, "mode": format!("{:04o}", mode & 0o7777)});
        if let Some(target) = entry.link_name_bytes() {
            told["target"] = json!(String::from_utf8_lossy(&target));
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if kind == "file" {
            told["size"] = json!(entry.size());
            let mut digest = blake3::Hasher::new();
            io::copy(&mut entry, &mut digest).map_err(UnreadableContent::of)?;
            told["blake3"] = json!(digest.finalize().to_hex().as_str());
        }
        all.push((name, told));
    }
    let mut facts = FileFacts::default();
    facts.parts(("member", "members"), all);
    Ok(facts)
}
