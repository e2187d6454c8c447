//! Files of the formats whose readers this project wrote. The first byte chooses the inspector, the
//! rest is the content. A pack of git gets the right checksum.

use backstory_inspect::{NamedContent, PartName, by_name};
use sha1::{Digest, Sha1};

/// Inspectors, each with the name of a file that it takes.
const OWN: &[(&str, &str)] = &[
    ("pickle", "a.pkl"),
    ("sql", "a.sql"),
    ("git", "a/.git/objects/ab/cd"),
    ("git", "a/.git/refs/heads/main"),
    ("pack", "a.pack"),
    ("text", "a.py"),
    ("csv", "a.csv"),
    ("ipynb", "a.ipynb"),
    ("sqlite-wal", "a.db-wal"),
    ("json", "a.json"),
    ("json", "a.jsonl"),
    ("toml", "a.toml"),
];

/// Inspects the content, compares it with its first half, and asks for parts of it.
pub fn run(data: &[u8]) {
    let Some((choice, content)) = data.split_first() else {
        return;
    };
    let (inspector, name) = OWN[usize::from(*choice) % OWN.len()];
    let Some(inspector) = by_name(inspector) else {
        panic!("there is no inspector {inspector}");
    };
    let (whole, half) = (signed(content), signed(&content[..content.len() / 2]));
    let key = ["a".to_owned()];
    let named = |bytes| NamedContent {
        name,
        bytes,
        key: &key,
    };
    let _ = inspector.facts(named(&whole));
    let _ = inspector.changes(named(&half), named(&whole));
    let cells = ["B2", "1.source"].map(|name| PartName::Cell(name.to_owned()));
    let members = ["[0].a", "a[0]", "0a"].map(|name| PartName::Member(name.to_owned()));
    for part in cells.iter().chain(&members) {
        let place = inspector.part(named(&whole), part).unwrap_or_default();
        let mut ranges = place.ranges.iter();
        assert!(ranges.all(|range| range.start <= range.end && range.end <= whole.len()));
    }
}

/// The content of a pack or an index with the right checksum in its last bytes. Other contents stay
/// as they are.
fn signed(content: &[u8]) -> Vec<u8> {
    let mut content = content.to_vec();
    let is_packed = content.starts_with(b"PACK") || content.starts_with(b"\xfftOc");
    if let Some(body) = content.len().checked_sub(20).filter(|_| is_packed) {
        let checksum = Sha1::digest(&content[..body]);
        content[body..].copy_from_slice(&checksum);
    }
    content
}
