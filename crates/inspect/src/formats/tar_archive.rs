//! Tar archives, also compressed: members with their sizes and digests.
//!
//! | compression | first bytes | decoder |
//! | --- | --- | --- |
//! | gzip | `1f 8b` | `flate2` |
//! | bzip2 | `BZh` | `bzip2` |
//! | xz | `fd 37 7a 58 5a 00` | `lzma-rust2` |
//! | zstd | `28 b5 2f fd` | `zstd` |

use std::io::{self, Read as _};

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use serde_json::json;
use tar::Archive;

use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent};

pub struct TarArchive;

/// The most bytes that an archive may unpack to.
const LARGEST: u64 = 1 << 30;

/// The most memory of the dictionary of xz, in KiB.
const DICTIONARY: u32 = 80 << 10;

/// The most members.
const MEMBERS: usize = 100_000;

impl Inspector for TarArchive {
    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        let bytes = content.bytes;
        let (compression, unpacked): (_, Box<dyn io::Read>) = match bytes {
            [0x1f, 0x8b, ..] => ("gzip", Box::new(MultiGzDecoder::new(bytes))),
            [b'B', b'Z', b'h', ..] => ("bzip2", Box::new(MultiBzDecoder::new(bytes))),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
                let reader = XzReader::new_mem_limit(bytes, true, DICTIONARY);
                ("xz", Box::new(reader))
            }
            [0x28, 0xb5, 0x2f, 0xfd, ..] => {
                let reader = zstd::Decoder::new(bytes).map_err(UnreadableContent::of)?;
                ("zstd", Box::new(reader))
            }
            _ => ("", Box::new(bytes)),
        };
        members(compression, unpacked.take(LARGEST))
    }
}

fn members(compression: &str, reader: impl io::Read) -> Read<FileFacts> {
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
    facts.value("compression", compression);
    facts.parts(("member", "members"), all);
    Ok(facts)
}
