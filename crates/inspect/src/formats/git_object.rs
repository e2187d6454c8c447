//! Objects and references of git: what a commit, a tree or a tag says, and which commit a reference
//! names.
//!
//! A loose object is a compressed content with a head: `commit 231\0…`.

use std::io::Read as _;

use flate2::read::ZlibDecoder;
use serde_json::json;

use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent};

pub struct GitObject;

/// The most bytes of an object.
const LARGEST: u64 = 64 << 20;

impl Inspector for GitObject {
    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        match content.name.contains("/objects/") {
            true => object(content.bytes),
            false => reference(content.bytes),
        }
    }
}

fn wrong(why: &str) -> UnreadableContent {
    UnreadableContent(why.to_owned())
}

/// `ref: refs/heads/main`, the id of a commit, or a list of packed references.
fn reference(bytes: &[u8]) -> Read<FileFacts> {
    let text = std::str::from_utf8(bytes).map_err(UnreadableContent::of)?;
    let mut facts = FileFacts::default();
    if let Some(name) = text.strip_prefix("ref: ") {
        facts.value("refers_to", name.trim());
        return Ok(facts);
    }
    if is_id(text.trim()) {
        facts.value("commit", text.trim());
        return Ok(facts);
    }
    let lines = text.lines().filter(|line| !line.starts_with(['#', '^']));
    let packed: Option<Vec<_>> = lines
        .map(|line| {
            let (id, name) = line.split_once(' ')?;
            is_id(id).then(|| (name.to_owned(), json!(id)))
        })
        .collect();
    facts.parts(
        ("reference", "references"),
        packed.ok_or_else(|| wrong("it is no reference of git"))?,
    );
    Ok(facts)
}

fn is_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn object(bytes: &[u8]) -> Read<FileFacts> {
    let mut inside = Vec::new();
    ZlibDecoder::new(bytes)
        .take(LARGEST)
        .read_to_end(&mut inside)
        .map_err(UnreadableContent::of)?;
    let end = inside.iter().position(|&byte| byte == 0);
    let end = end.ok_or_else(|| wrong("the object has no head"))?;
    let head = String::from_utf8_lossy(&inside[..end]).into_owned();
    let body = &inside[end + 1..];
    let (kind, size) = head
        .split_once(' ')
        .ok_or_else(|| wrong("the object has no size"))?;
    if size.parse() != Ok(body.len()) {
        return Err(wrong("the object has another size than its head says"));
    }
    let mut facts = FileFacts::default();
    facts.value("type", kind);
    match kind {
        "commit" | "tag" => message(body, &mut facts),
        "tree" => facts.parts(("entry", "entries"), tree(body)?),
        "blob" => facts.value("size", body.len()),
        _ => return Err(wrong("git has no such type of object")),
    }
    Ok(facts)
}

/// Lines `name value`, an empty line, and a message.
fn message(body: &[u8], facts: &mut FileFacts) {
    let text = String::from_utf8_lossy(body);
    let (head, message) = text.split_once("\n\n").unwrap_or((&text, ""));
    let mut parents = Vec::new();
    for line in head.lines() {
        match line.split_once(' ') {
            Some(("parent", id)) => parents.push(id),
            Some((
                name @ ("tree" | "author" | "committer" | "object" | "type" | "tag" | "tagger"),
                value,
            )) => {
                let name = if name == "type" {
                    "type_of_object"
                } else {
                    name
                };
                facts.value(name, value);
            }
            _ => {}
        }
    }
    if !parents.is_empty() {
        facts.value("parents", json!(parents));
    }
    facts.value("message", message.trim_end());
}

/// Entries `mode name\0` with an id of 20 bytes.
fn tree(mut body: &[u8]) -> Read<Vec<(String, serde_json::Value)>> {
    const ID: usize = 20;
    let mut entries = Vec::new();
    while !body.is_empty() {
        let cut = || wrong("the tree ends within an entry");
        let end = body.iter().position(|&byte| byte == 0).ok_or_else(cut)?;
        let (entry, rest) = body.split_at(end);
        let (id, rest) = rest[1..].split_at_checked(ID).ok_or_else(cut)?;
        let entry = String::from_utf8_lossy(entry);
        let (mode, name) = entry.split_once(' ').ok_or_else(cut)?;
        let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        entries.push((name.to_owned(), json!({"mode": mode, "id": id})));
        body = rest;
    }
    Ok(entries)
}
