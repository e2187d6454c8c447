//! An export: runs and contents in one file, for another user. `docs/formats/export.md` draws it.
//!
//! ```text
//!  0  8  "bsexport"     8  4  version: 1     12  4  0
//! 16     one zstd frame of sections:
//!        kind u8, bytes of the name u16, name, bytes of the body u64, body, BLAKE3 of all of this
//!        the last: kind 0, no name, no body
//! ```
//!
//! Numbers are little-endian. Invariant: a reader that reaches the last section without an error
//! has the bytes that were written. The reader does not trust the file: names are only names, and
//! lengths are only bounds.

use std::io::{self, BufReader, ErrorKind, Read, Write};

const MAGIC: &[u8; 8] = b"bsexport";
const VERSION: u32 = 1;
const LEVEL: i32 = 3;

/// Longest name of a section, in bytes.
const NAME: usize = 4096;

/// The kind of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The log of a run. The section's name is the run's id.
    Log,
    /// Facts about contents, and the directory snapshots of runs.
    Facts,
    /// A content. The section's name is its digest.
    Content,
    /// The owner's name for a run, and the owner's note. The section's name is the run's id.
    Label,
    /// Annotations of a run with their history, as lines of JSON.
    Annotations,
    /// SSH signatures of a run. The section's name is the run's id.
    Signatures,
}

/// Every kind by its number.
const KINDS: [(u8, Kind); 6] = [
    (1, Kind::Log),
    (2, Kind::Facts),
    (3, Kind::Content),
    (4, Kind::Label),
    (5, Kind::Annotations),
    (6, Kind::Signatures),
];

/// Writes an export.
pub struct Writer<W: Write> {
    out: zstd::stream::write::Encoder<'static, W>,
}

impl<W: Write> Writer<W> {
    /// Begins an export.
    pub fn new(mut out: W) -> io::Result<Writer<W>> {
        out.write_all(MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        out.write_all(&[0; 4])?;
        let mut out = zstd::stream::write::Encoder::new(out, LEVEL)?;
        out.include_checksum(true)?;
        Ok(Writer { out })
    }

    /// Appends a section of exactly `size` bytes.
    pub fn section(
        &mut self,
        kind: Kind,
        name: &str,
        size: u64,
        body: &mut dyn Read,
    ) -> io::Result<()> {
        let number = KINDS
            .iter()
            .find(|(_, k)| *k == kind)
            .map_or(0, |(number, _)| *number);
        self.write(number, name, size, body)
    }

    fn write(&mut self, kind: u8, name: &str, size: u64, body: &mut dyn Read) -> io::Result<()> {
        let mut head = vec![kind];
        head.extend((name.len() as u16).to_le_bytes());
        head.extend(name.as_bytes());
        head.extend(size.to_le_bytes());
        let mut hash = blake3::Hasher::new();
        hash.update(&head);
        self.out.write_all(&head)?;
        let mut both = Tee {
            out: &mut self.out,
            hash: &mut hash,
        };
        let written = io::copy(&mut body.take(size), &mut both)?;
        if written != size {
            return Err(io::Error::new(
                ErrorKind::UnexpectedEof,
                "it became shorter while it was read",
            ));
        }
        self.out.write_all(hash.finalize().as_bytes())
    }

    /// Ends the export, and returns its destination.
    pub fn finish(mut self) -> io::Result<W> {
        self.write(0, "", 0, &mut io::empty())?;
        self.out.finish()
    }
}

struct Tee<'a, W> {
    out: &'a mut W,
    hash: &'a mut blake3::Hasher,
}

impl<W: Write> Write for Tee<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Reads an export.
pub struct Reader<R: Read> {
    input: zstd::stream::read::Decoder<'static, BufReader<R>>,
}

/// The head of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// `None` if a newer program wrote it. The section can be skipped.
    pub kind: Option<Kind>,
    /// Its name, which is untrusted: check it before use.
    pub name: String,
    /// Bytes of its body.
    pub size: u64,
}

impl<R: Read> Reader<R> {
    /// Starts reading.
    pub fn new(mut input: R) -> io::Result<Reader<R>> {
        let mut head = [0; 16];
        input
            .read_exact(&mut head)
            .map_err(|_| invalid("it is no export of backstory"))?;
        if !head.starts_with(MAGIC) {
            return Err(invalid("it is no export of backstory"));
        }
        if head[8..12] != VERSION.to_le_bytes() || head[12..] != [0; 4] {
            return Err(invalid(
                "it was written by a newer backstory; upgrade this one",
            ));
        }
        let input = zstd::stream::read::Decoder::new(input)?.single_frame();
        Ok(Reader { input })
    }

    /// The next section, or `None` after the last. Its body is copied to the writer that `place`
    /// returns. The body is valid only if this returns without an error.
    pub fn next<W: Write>(
        &mut self,
        place: impl FnOnce(&Section) -> io::Result<W>,
    ) -> io::Result<Option<(Section, W)>> {
        let mut hash = blake3::Hasher::new();
        let kind = self.take::<1>(&mut hash)?[0];
        let length = u16::from_le_bytes(self.take(&mut hash)?) as usize;
        if length > NAME {
            return Err(invalid("it is damaged"));
        }
        let mut name = vec![0; length];
        self.input.read_exact(&mut name).map_err(cut)?;
        hash.update(&name);
        let size = u64::from_le_bytes(self.take(&mut hash)?);
        if kind == 0 {
            self.sum(&hash)?;
            // The checksum of the frame lies after the last section.
            return match self.input.read(&mut [0])? {
                0 => Ok(None),
                _ => Err(invalid("it is damaged")),
            };
        }
        let section = Section {
            kind: KINDS
                .iter()
                .find(|(number, _)| *number == kind)
                .map(|(_, kind)| *kind),
            name: String::from_utf8(name).map_err(|_| invalid("it is damaged"))?,
            size,
        };
        let mut out = place(&section)?;
        let mut both = Tee {
            out: &mut out,
            hash: &mut hash,
        };
        let copied = io::copy(&mut (&mut self.input).take(size), &mut both)?;
        if copied != size {
            return Err(cut(ErrorKind::UnexpectedEof.into()));
        }
        self.sum(&hash)?;
        Ok(Some((section, out)))
    }

    fn take<const N: usize>(&mut self, hash: &mut blake3::Hasher) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes).map_err(cut)?;
        hash.update(&bytes);
        Ok(bytes)
    }

    fn sum(&mut self, hash: &blake3::Hasher) -> io::Result<()> {
        let mut sum = [0; 32];
        self.input.read_exact(&mut sum).map_err(cut)?;
        match *hash.finalize().as_bytes() == sum {
            true => Ok(()),
            false => Err(invalid("it is damaged")),
        }
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.to_owned())
}

fn cut(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::UnexpectedEof => invalid("it is cut off"),
        _ => invalid("it is damaged"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export() -> Vec<u8> {
        let mut writer = Writer::new(Vec::new()).unwrap();
        writer
            .section(Kind::Log, "abc", 5, &mut &b"hello"[..])
            .unwrap();
        writer
            .section(Kind::Content, "", 0, &mut io::empty())
            .unwrap();
        writer
            .section(Kind::Facts, "x", 3000, &mut &[7; 3000][..])
            .unwrap();
        writer.finish().unwrap()
    }

    fn read(bytes: &[u8]) -> io::Result<Vec<(Section, Vec<u8>)>> {
        let mut reader = Reader::new(bytes)?;
        let mut all = Vec::new();
        while let Some(one) = reader.next(|_| Ok(Vec::new()))? {
            all.push(one);
        }
        Ok(all)
    }

    #[test]
    fn sections_come_back_as_they_were_written() {
        let all = read(&export()).unwrap();
        let told: Vec<_> = all
            .iter()
            .map(|(s, body)| (s.kind, s.name.as_str(), body.len()))
            .collect();
        let expected = [
            (Some(Kind::Log), "abc", 5),
            (Some(Kind::Content), "", 0),
            (Some(Kind::Facts), "x", 3000),
        ];
        assert_eq!(told, expected);
        assert_eq!(all[0].1, b"hello");
    }

    #[test]
    fn a_cut_or_changed_export_is_an_error_never_another_export() {
        let whole = export();
        let good = read(&whole).unwrap();
        for cut in 0..whole.len() {
            assert!(read(&whole[..cut]).is_err(), "cut at {cut}");
        }
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            // Some bits of the compressor's format have no meaning. The bytes read are the same.
            assert!(
                read(&flipped).is_err() || read(&flipped).unwrap() == good,
                "bit {bit}"
            );
        }
    }
}
