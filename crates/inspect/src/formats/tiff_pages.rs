//! The pages of a TIFF file.
//!
//! The library `image` decodes the first page of a file only. So it gets the file with another
//! head, which names the wanted page as the first. Pixels that have no colours, as heights and
//! measurements of microscopes, are read as values.

use std::io::{self, BufRead, Cursor, Seek, SeekFrom};

use image::ImageError;
use image::codecs::tiff::TiffDecoder;
use tiff::decoder::{Decoder, DecodingResult, Limits};
use tiff::{TiffError, TiffResult};

use super::decoded_picture::{LARGEST, Picture, PixelValues, decoded};
use crate::{Read, UnreadableContent};

/// The first bytes of TIFF files, in both orders of bytes: with offsets of 4 bytes, and of 8.
const MAGIC: [&[u8]; 4] = [b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"];

/// True if a content begins as a TIFF file.
pub(super) fn is_tiff(bytes: &[u8]) -> bool {
    MAGIC.iter().any(|magic| bytes.starts_with(magic))
}

/// Width and height of the first page.
pub(super) fn size(bytes: &[u8]) -> Read<(u32, u32)> {
    let size = Decoder::new(Cursor::new(bytes)).and_then(|mut decoder| decoder.dimensions());
    size.map_err(UnreadableContent::of)
}

/// The offsets of the pages. The library refuses a circle of pages.
pub(super) fn pages(bytes: &[u8]) -> Read<Vec<u64>> {
    let find = || -> TiffResult<Vec<u64>> {
        let mut decoder = Decoder::new(Cursor::new(bytes))?;
        let mut pages = Vec::new();
        loop {
            pages.extend(decoder.ifd_pointer().map(|pointer| pointer.0));
            if !decoder.more_images() {
                return Ok(pages);
            }
            decoder.next_image()?;
        }
    };
    find().map_err(UnreadableContent::of)
}

/// The picture of the page at an offset.
pub(super) fn picture(bytes: &[u8], page: u64) -> Read<Picture> {
    let decoder = TiffDecoder::new(PageReader::new(bytes, page));
    match decoder.and_then(decoded) {
        Ok(picture) => Ok(Picture::Coloured(picture)),
        Err(ImageError::Unsupported(_)) => values(bytes, page),
        Err(error) => Err(UnreadableContent::of(error)),
    }
}

fn values(bytes: &[u8], page: u64) -> Read<Picture> {
    let read = || -> TiffResult<_> {
        let mut limits = Limits::default();
        limits.decoding_buffer_size = LARGEST as usize;
        limits.intermediate_buffer_size = LARGEST as usize;
        let mut decoder = Decoder::new(PageReader::new(bytes, page))?.with_limits(limits);
        let mut found = DecodingResult::U8(Vec::new());
        let layout = decoder.read_image_to_buffer(&mut found)?;
        Ok((decoder.dimensions()?, layout, found))
    };
    let (size, layout, mut found) = match read() {
        Ok(read) => read,
        Err(TiffError::UnsupportedError(why)) => return Ok(Picture::Undecoded(why.to_string())),
        Err(error) => return Err(UnreadableContent::of(error)),
    };
    let bytes = found.as_buffer(0).as_bytes().to_vec();
    let pixels = (size.0 as usize).saturating_mul(size.1 as usize);
    let width = bytes.len() / pixels.max(1);
    // Pixels of less than a byte share bytes, and planes have the parts of a pixel apart.
    let is_whole = width > 0 && width.saturating_mul(pixels) == bytes.len();
    if layout.planes > 1 || !is_whole {
        let why = "they have less than a byte each, or planes";
        return Ok(Picture::Undecoded(why.to_owned()));
    }
    Ok(Picture::Values(PixelValues { size, width, bytes }))
}

/// A TIFF file whose head names another page as the first.
struct PageReader<'c> {
    head: Vec<u8>,
    bytes: &'c [u8],
    at: u64,
}

impl PageReader<'_> {
    fn new(bytes: &[u8], page: u64) -> PageReader<'_> {
        let is_big = matches!(bytes.get(2..4), Some(b"+\0" | b"\0+"));
        let is_little = bytes.starts_with(b"I");
        let offset = match (is_big, is_little) {
            (true, true) => page.to_le_bytes().to_vec(),
            (true, false) => page.to_be_bytes().to_vec(),
            (false, true) => (page as u32).to_le_bytes().to_vec(),
            (false, false) => (page as u32).to_be_bytes().to_vec(),
        };
        // The offset of the first page stands at 4, or at 8.
        let same = bytes.get(..offset.len().max(4)).unwrap_or(bytes);
        PageReader {
            head: [same, &offset].concat(),
            bytes,
            at: 0,
        }
    }
}

impl BufRead for PageReader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let at = usize::try_from(self.at).unwrap_or(usize::MAX);
        let head = self.head.get(at..).unwrap_or_default();
        Ok(match head.is_empty() {
            true => self.bytes.get(at..).unwrap_or_default(),
            false => head,
        })
    }

    fn consume(&mut self, number: usize) {
        self.at = self.at.saturating_add(number as u64);
    }
}

impl io::Read for PageReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let number = self.fill_buf()?.read(buffer)?;
        self.consume(number);
        Ok(number)
    }
}

impl Seek for PageReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let moved = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => (self.bytes.len() as u64).checked_add_signed(by),
        };
        self.at = moved.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
