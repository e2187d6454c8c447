//! A loose object: a file with a zlib stream of `KIND SIZE\0` and the content.

use std::io::{self, BufReader, Read};
use std::path::Path;

use backstory_files::regular;
use flate2::bufread::ZlibDecoder;

use crate::object::{Kind, Object, damaged};

/// The most bytes before the content.
const HEAD: usize = 32;

/// Opens the loose object at a path.
pub fn open(path: &Path) -> io::Result<Object> {
    let mut bytes = ZlibDecoder::new(BufReader::new(regular::open(path)?));
    let mut head = Vec::with_capacity(HEAD);
    loop {
        let mut byte = [0];
        bytes.read_exact(&mut byte)?;
        match byte {
            [0] => break,
            _ if head.len() == HEAD => return Err(damaged("an object of git has no head")),
            [byte] => head.push(byte),
        }
    }
    let (kind, size) =
        parse(&head).ok_or_else(|| damaged("the head of an object of git is damaged"))?;
    Ok(Object::stored(kind, size, bytes))
}

fn parse(head: &[u8]) -> Option<(Kind, u64)> {
    let (kind, size) = std::str::from_utf8(head).ok()?.split_once(' ')?;
    let kind = match kind {
        "commit" => Kind::Commit,
        "tree" => Kind::Tree,
        "blob" => Kind::Blob,
        "tag" => Kind::Tag,
        _ => return None,
    };
    Some((kind, size.parse().ok()?))
}
