//! Reading an export ends with its content or an error, whichever bytes it holds. The store takes
//! any facts from it.
//!
//! The first byte of the input selects the rest:
//!
//! - even: sections (kind, length of the name in one byte, of the body in two, name, body)
//! - odd: the bytes of an export after the first 16

use super::place;
use backstory_contents::transfer::{Kind, Reader, Writer};
use backstory_store::facts::{self, Journal};
use backstory_store::{Home, SqliteStore, catch_up};
use std::io::{self, Write};

/// More than the sections of an input hold, and less than a hostile export of a few bytes can
/// expand to.
const MOST: usize = 1 << 20;

/// Takes this many bytes and no more.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST {
            return Err(io::Error::other("enough"));
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads the export, and takes its facts.
pub fn run(data: &[u8]) {
    let Some((&mode, rest)) = data.split_first() else {
        return;
    };
    let (export, written) = match mode % 2 {
        0 => made(rest),
        _ => {
            let empty = Writer::new(Vec::new())
                .and_then(Writer::finish)
                .expect("an export");
            ([&empty[..16], rest].concat(), None)
        }
    };
    let Ok(mut reader) = Reader::new(&export[..]) else {
        return;
    };
    let mut sections = 0;
    let whole = loop {
        match reader.next(|_| Ok(Bounded(Vec::new()))) {
            Ok(Some((section, body))) => {
                sections += 1;
                if section.kind == Some(Kind::Facts) {
                    take_up(&body.0);
                }
            }
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    if let Some(written) = written {
        assert!(
            whole && sections == written,
            "what was written does not come back"
        );
    }
}

/// An export of these sections, and how many there are.
fn made(mut rest: &[u8]) -> (Vec<u8>, Option<usize>) {
    let mut writer = Writer::new(Vec::new()).expect("an export");
    let mut sections = 0;
    while let Some(([kind, name, low, high], after)) = rest.split_first_chunk::<4>() {
        let (name, after) = after.split_at(usize::from(*name).min(after.len()));
        let (body, after) =
            after.split_at(usize::from(u16::from_le_bytes([*low, *high])).min(after.len()));
        let kind = [Kind::Log, Kind::Facts, Kind::Content, Kind::Label][usize::from(*kind) % 4];
        let body = if kind == Kind::Facts {
            summed(body)
        } else {
            body.to_vec()
        };
        let name = String::from_utf8_lossy(name);
        writer
            .section(kind, &name, body.len() as u64, &mut &body[..])
            .expect("written");
        (rest, sections) = (after, sections + 1);
    }
    (writer.finish().expect("written"), Some(sections))
}

/// Repairs the length and the checksum before every record, because no mutation gets past them.
fn summed(body: &[u8]) -> Vec<u8> {
    const FRAME: usize = 10;
    let mut bytes = body.to_vec();
    let mut at = 0;
    while at + FRAME <= bytes.len() {
        if !bytes[at..].starts_with(b"bf") {
            at += 1;
            continue;
        }
        let length =
            u32::from_le_bytes([bytes[at + 2], bytes[at + 3], bytes[at + 4], bytes[at + 5]])
                as usize;
        let end = at + FRAME + length.min(bytes.len() - at - FRAME);
        let sum = crc32fast::hash(&bytes[at + FRAME..end]);
        bytes[at + 2..at + 6].copy_from_slice(&((end - at - FRAME) as u32).to_le_bytes());
        bytes[at + 6..at + FRAME].copy_from_slice(&sum.to_le_bytes());
        at = end;
    }
    bytes
}

fn take_up(body: &[u8]) {
    let learned = facts::from_bytes(body);
    assert_eq!(
        facts::from_bytes(&facts::to_bytes(&learned)),
        learned,
        "told once more it is something else"
    );
    let place = place::new();
    let home = Home::open(place.path()).expect("a home");
    let mut store = SqliteStore::open(&home).expect("a store");
    Journal::open(&home.facts_path())
        .and_then(|mut journal| journal.append(&learned))
        .expect("appended");
    // An impossible fact is an error, not a panic.
    let _ = catch_up(&home, &mut store);
}
