//! The size of an image, from its first bytes.

use serde::Serialize;
use utoipa::ToSchema;

/// The size of an image, as far as its first bytes tell.
#[derive(Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct ImageView {
    /// Pixels in a row.
    pub width: Option<u32>,
    /// Rows.
    pub height: Option<u32>,
}

impl ImageView {
    /// Reads the size of a PNG, GIF, BMP or JPEG image.
    pub fn of(head: &[u8]) -> ImageView {
        let found = match head {
            [0x89, b'P', ..] => big(head, 16).zip(big(head, 20)),
            [b'G', b'I', b'F', ..] => little16(head, 6).zip(little16(head, 8)),
            [b'B', b'M', ..] => little(head, 18).zip(little(head, 22)),
            [0xff, 0xd8, ..] => jpeg(head),
            _ => None,
        };
        ImageView {
            width: found.map(|(width, _)| width),
            height: found.map(|(_, height)| height),
        }
    }
}

/// The size in the first frame header (SOF) of a JPEG image.
fn jpeg(head: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let marker = *head.get(at + 1)?;
        let is_frame = (0xc0..=0xcf).contains(&marker) && ![0xc4, 0xc8, 0xcc].contains(&marker);
        if is_frame {
            return Some((big16(head, at + 7)?, big16(head, at + 5)?));
        }
        at += 2 + big16(head, at + 2)? as usize;
    }
}

fn bytes<const N: usize>(head: &[u8], at: usize) -> Option<[u8; N]> {
    head.get(at..at + N)?.try_into().ok()
}

fn big(head: &[u8], at: usize) -> Option<u32> {
    bytes(head, at).map(u32::from_be_bytes)
}

fn little(head: &[u8], at: usize) -> Option<u32> {
    bytes(head, at).map(u32::from_le_bytes)
}

fn big16(head: &[u8], at: usize) -> Option<u32> {
    bytes(head, at).map(u16::from_be_bytes).map(u32::from)
}

fn little16(head: &[u8], at: usize) -> Option<u32> {
    bytes(head, at).map(u16::from_le_bytes).map(u32::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_read_from_the_header_and_a_cut_header_has_none() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x07\0\0\0\x05";
        let size = |head: &[u8]| (ImageView::of(head).width, ImageView::of(head).height);
        assert_eq!(size(png), (Some(7), Some(5)));
        assert_eq!(size(b"GIF89a\x07\0\x05\0"), (Some(7), Some(5)));
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08\0\x05\0\x07";
        assert_eq!(size(jpeg), (Some(7), Some(5)));
        assert_eq!(size(&jpeg[..10]), (None, None));
        assert_eq!(size(&png[..18]), (None, None));
    }
}
