//! A member of a tar archive: its bytes, and the digest of its content.
//!
//! In a compressed archive, all bytes are the finest true answer.

use backstory_inspection::file_parts::{NoPart, PartAnswer, PartName, PartPlace};

use super::{absent, no_file};
use crate::UnreadableContent;
use crate::formats::tar_stream::{self, FILE, TarStream};

/// The place of a member. Of several members with one name, it is that of the last one, which stays
/// when the archive is unpacked.
///
/// # Errors
/// The content is no archive, or has no such member, or the member is no file.
pub fn find(content: &[u8], name: &PartName) -> PartAnswer {
    let PartName::Member(name) = name else {
        return Err(NoPart::OtherKind);
    };
    let mut stream = TarStream::open(content)?;
    let is_compressed = !stream.compression.is_empty();
    let mut found = Err(absent(format!("the archive has no member `{name}`")));
    for entry in stream.archive.entries().map_err(UnreadableContent::of)? {
        let mut entry = entry.map_err(UnreadableContent::of)?;
        if plain(&String::from_utf8_lossy(&entry.path_bytes())) != plain(name) {
            continue;
        }
        let kind = tar_stream::kind(entry.header().entry_type());
        if kind != FILE {
            let target = entry.link_name_bytes();
            let target = target.as_deref().map(String::from_utf8_lossy);
            found = Err(no_file(name, kind, target.as_deref()));
            continue;
        }
        let start = entry.raw_file_position();
        let end = start.saturating_add(entry.size());
        let place = match is_compressed {
            true => PartPlace {
                within: Some("all of the compressed archive".to_owned()),
                ..PartPlace::exact(0..content.len())
            },
            false => PartPlace::exact(start as usize..end as usize),
        };
        found = Ok(PartPlace {
            content: Some(*tar_stream::digest(&mut entry)?.as_bytes()),
            ..place
        });
    }
    found
}

/// A name without the `./` or `/` that tar may have before it, and the `/` behind a directory.
fn plain(name: &str) -> &str {
    name.trim_start_matches("./").trim_matches('/')
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn packed() -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        for (name, content) in [
            ("a.txt", "first\n"),
            ("dir/b.txt", "two\n"),
            ("a.txt", "l\n"),
        ] {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            archive
                .append_data(&mut header, name, content.as_bytes())
                .unwrap();
        }
        let mut link = tar::Header::new_gnu();
        link.set_entry_type(tar::EntryType::Link);
        link.set_size(0);
        link.set_mode(0o644);
        archive.append_link(&mut link, "link", "a.txt").unwrap();
        archive.into_inner().unwrap()
    }

    fn asked(content: &[u8], name: &str) -> PartAnswer {
        find(content, &PartName::Member(name.to_owned()))
    }

    fn digest(content: &[u8]) -> Option<[u8; 32]> {
        Some(*blake3::hash(content).as_bytes())
    }

    #[test]
    fn a_member_has_its_bytes_and_the_digest_of_its_content() {
        let archive = packed();
        let place = asked(&archive, "./dir/b.txt").unwrap();
        assert_eq!(archive[place.ranges[0].clone()], *b"two\n");
        assert_eq!((place.within, place.content), (None, digest(b"two\n")));
        // Of two members with one name, the second one is unpacked last.
        assert_eq!(asked(&archive, "a.txt").unwrap().content, digest(b"l\n"));
    }

    #[test]
    fn a_member_of_a_compressed_archive_has_its_digest_and_all_bytes() {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(&packed()).unwrap();
        let archive = packer.finish().unwrap();
        let place = asked(&archive, "dir/b.txt").unwrap();
        assert_eq!(place.ranges[0], 0..archive.len());
        assert!(place.within.unwrap().contains("compressed"));
        assert_eq!(place.content, digest(b"two\n"));
    }

    #[test]
    fn a_name_that_is_no_file_of_the_archive_has_no_place() {
        let archive = packed();
        let absent = |name: &str, says: &str| match asked(&archive, name) {
            Err(NoPart::Absent(why)) => assert!(why.contains(says), "{why}"),
            other => panic!("{name}: {other:?}"),
        };
        absent("c.txt", "no member `c.txt`");
        absent("link", "hard link to `a.txt`");
        let cell = find(&archive, &PartName::Cell("B2".to_owned()));
        assert_eq!(cell, Err(NoPart::OtherKind));
    }
}
