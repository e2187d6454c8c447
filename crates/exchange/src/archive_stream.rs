//! An archive in frames: pieces, then an end. The reader of an archive may read ahead, so that it
//! must not see the frames behind.

use std::io::{self, Read, Write};

use crate::frame::{self, Kind, LONGEST_PIECE};
use crate::message::shortened;
use crate::{Error, Result};

/// How much of an archive is skipped after it was refused, in bytes. A longer rest ends the
/// connection.
const MOST_SKIPPED: u64 = 64 << 20;

/// Writes an archive as frames.
pub struct ArchiveWriter<'a> {
    out: &'a mut dyn Write,
    piece: Vec<u8>,
    failed: Option<Error>,
}

impl<'a> ArchiveWriter<'a> {
    pub fn new(out: &'a mut dyn Write) -> ArchiveWriter<'a> {
        ArchiveWriter {
            out,
            piece: Vec::with_capacity(LONGEST_PIECE),
            failed: None,
        }
    }

    /// Writes the archive by `write`, then its end, or the reason why it is not complete.
    pub fn send(mut self, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
        let written = write(&mut self);
        if let Some(lost) = self.failed {
            return Err(lost);
        }
        match &written {
            Ok(()) => {
                if !self.piece.is_empty() {
                    frame::write(self.out, Kind::Piece, &self.piece)?;
                }
                frame::write(self.out, Kind::End, b"")?;
            }
            Err(error) => {
                let why = backstory_vocabulary::error_chain(error);
                let why = shortened(&why, 4096);
                frame::write(self.out, Kind::Abort, why.as_bytes())?;
            }
        }
        frame::flush(self.out)?;
        written
    }
}

impl Write for ArchiveWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(LONGEST_PIECE - self.piece.len());
        self.piece.extend(&bytes[..taken]);
        if self.piece.len() == LONGEST_PIECE {
            if let Err(error) = frame::write(self.out, Kind::Piece, &self.piece) {
                self.failed = Some(error);
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            self.piece.clear();
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads an archive from frames.
pub struct ArchiveReader<'a> {
    input: &'a mut dyn Read,
    piece: Vec<u8>,
    at: usize,
    /// The end was read.
    over: bool,
    /// The stream cannot be used any more, or the other side gave up.
    failed: Option<Error>,
}

impl<'a> ArchiveReader<'a> {
    pub fn new(input: &'a mut dyn Read) -> ArchiveReader<'a> {
        ArchiveReader {
            input,
            piece: Vec::new(),
            at: 0,
            over: false,
            failed: None,
        }
    }

    /// Skips the rest, so that the next frame is a message again. `taken` is what the reader of the
    /// archive returned. A failure of the stream counts more.
    pub fn end<T>(mut self, taken: Result<T>) -> Result<T> {
        let (mut skipped, mut buffer) = (0, vec![0; LONGEST_PIECE]);
        while self.failed.is_none() && !self.over {
            skipped += self.read(&mut buffer).unwrap_or(0) as u64;
            if skipped > MOST_SKIPPED {
                let why = "an archive does not end".to_owned();
                self.failed = Some(Error::Protocol(why));
            }
        }
        match self.failed {
            Some(failed) => Err(failed),
            None => taken,
        }
    }

    fn next(&mut self) -> Result<()> {
        match frame::read(self.input)? {
            Some((Kind::Piece, piece)) => (self.piece, self.at) = (piece, 0),
            Some((Kind::End, _)) => self.over = true,
            Some((Kind::Abort, why)) => {
                self.over = true;
                let why = String::from_utf8_lossy(&why).into_owned();
                return Err(Error::OtherSide(why));
            }
            Some((Kind::Message, _)) => {
                return Err(Error::Protocol("a message is within an archive".into()));
            }
            None => return Err(Error::Connection("the connection ended".into())),
        }
        Ok(())
    }
}

impl Read for ArchiveReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.piece.len() && !self.over {
            if self.failed.is_some() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            if let Err(error) = self.next() {
                self.failed = Some(error);
                return Err(io::ErrorKind::BrokenPipe.into());
            }
        }
        let taken = buffer.len().min(self.piece.len() - self.at);
        buffer[..taken].copy_from_slice(&self.piece[self.at..self.at + taken]);
        self.at += taken;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_of_any_length_comes_back_and_the_next_frame_follows() {
        for length in [
            0,
            1,
            LONGEST_PIECE - 1,
            LONGEST_PIECE,
            3 * LONGEST_PIECE + 7,
        ] {
            let archive: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let mut bytes = Vec::new();
            let writer = ArchiveWriter::new(&mut bytes);
            writer
                .send(|out| {
                    out.write_all(&archive).unwrap();
                    Ok(())
                })
                .unwrap();
            frame::write(&mut bytes, Kind::Message, b"next").unwrap();
            let mut input: &mut dyn Read = &mut bytes.as_slice();
            let mut reader = ArchiveReader::new(&mut input);
            let mut read = vec![0; length / 2];
            reader.read_exact(&mut read).unwrap();
            assert_eq!(read, archive[..length / 2]);
            reader.end(Ok(())).unwrap();
            let next = frame::read(&mut input).unwrap();
            assert_eq!(next, Some((Kind::Message, b"next".to_vec())));
        }
    }

    #[test]
    fn an_archive_that_was_given_up_reports_why() {
        let mut bytes = Vec::new();
        let writer = ArchiveWriter::new(&mut bytes);
        let failed = writer.send(|_| Err(Error::Refused("the content is damaged".into())));
        assert!(matches!(failed, Err(Error::Refused(_))));
        let mut input = bytes.as_slice();
        let mut reader = ArchiveReader::new(&mut input);
        assert!(reader.read(&mut [0]).is_err());
        let reported = reader.end(Ok(())).unwrap_err().to_string();
        assert!(reported.contains("the content is damaged"), "{reported}");
    }

    #[test]
    fn an_archive_without_an_end_is_given_up() {
        struct Endless(Vec<u8>, usize);
        impl Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                for byte in buffer.iter_mut() {
                    *byte = self.0[self.1 % self.0.len()];
                    self.1 += 1;
                }
                Ok(buffer.len())
            }
        }
        let mut piece = Vec::new();
        frame::write(&mut piece, Kind::Piece, &[7; LONGEST_PIECE]).unwrap();
        let mut input = Endless(piece, 0);
        let ended = ArchiveReader::new(&mut input).end(Ok(()));
        assert!(matches!(ended, Err(Error::Protocol(_))));
    }
}
