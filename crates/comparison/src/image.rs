//! Compares two PNG images by their pixels.
//!
//! Texts inside an image, such as the program that drew it, are not compared. Two images with the
//! same pixels look the same.

use std::io::Cursor;

/// The most pixels of an image that are compared.
const MOST: u64 = 64 << 20;

/// The difference between two images.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ImageDifference {
    /// Width and height of the first image.
    pub a: (u32, u32),
    /// Width and height of the second image.
    pub b: (u32, u32),
    /// Pixels that differ. `None` if the sizes differ.
    pub differing: Option<u64>,
    /// The smallest box around all differing pixels.
    pub within: Option<PixelBox>,
}

impl ImageDifference {
    /// The share of differing pixels, from 0 to 1. `None` if the sizes differ.
    pub fn share(&self) -> Option<f64> {
        let all = u64::from(self.a.0) * u64::from(self.a.1);
        Some(self.differing? as f64 / all.max(1) as f64)
    }
}

/// A box of pixels; x grows to the right, y downwards, both from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PixelBox {
    /// Leftmost column.
    pub left: u32,
    /// Topmost row.
    pub top: u32,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

/// Pixels of 8 bits for each of red, green, blue and opacity.
struct Pixels {
    size: (u32, u32),
    bytes: Vec<u8>,
}

impl Pixels {
    fn read(content: &[u8]) -> Option<Pixels> {
        if !content.starts_with(b"\x89PNG\r\n\x1a\n") {
            return None;
        }
        let mut decoder = png::Decoder::new(Cursor::new(content));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().ok()?;
        let size = (reader.info().width, reader.info().height);
        if u64::from(size.0) * u64::from(size.1) > MOST {
            return None;
        }
        let mut raw = vec![0; reader.output_buffer_size()?];
        let frame = reader.next_frame(&mut raw).ok()?;
        let channels = frame.color_type.samples();
        let mut bytes = Vec::with_capacity(size.0 as usize * size.1 as usize * 4);
        for pixel in raw[..frame.buffer_size()].chunks_exact(channels) {
            bytes.extend(match *pixel {
                [grey] => [grey, grey, grey, 255],
                [grey, opacity] => [grey, grey, grey, opacity],
                [r, g, b] => [r, g, b, 255],
                [r, g, b, opacity] => [r, g, b, opacity],
                _ => return None,
            });
        }
        Some(Pixels { size, bytes })
    }
}

/// Compares two images. `None` if one of them is no PNG image, or is damaged or too large.
pub fn compare(a: &[u8], b: &[u8]) -> Option<ImageDifference> {
    let (a, b) = (Pixels::read(a)?, Pixels::read(b)?);
    let mut found = ImageDifference {
        a: a.size,
        b: b.size,
        differing: None,
        within: None,
    };
    if a.size != b.size {
        return Some(found);
    }
    let (mut count, mut corners) = (0, None);
    let pairs = a.bytes.chunks_exact(4).zip(b.bytes.chunks_exact(4));
    for (at, _) in (0u64..).zip(pairs).filter(|(_, (x, y))| x != y) {
        count += 1;
        let width = u64::from(a.size.0).max(1);
        let (x, y) = ((at % width) as u32, (at / width) as u32);
        let (left, top, right, bottom) = corners.unwrap_or((x, y, x, y));
        corners = Some((left.min(x), top.min(y), right.max(x), bottom.max(y)));
    }
    found.differing = Some(count);
    found.within = corners.map(|(left, top, right, bottom)| PixelBox {
        left,
        top,
        width: right - left + 1,
        height: bottom - top + 1,
    });
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A white image with black pixels, and a text that names its program.
    fn drawn(size: (u32, u32), black: &[(u32, u32)], program: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, size.0, size.1);
        encoder.set_color(png::ColorType::Rgb);
        encoder
            .add_text_chunk("Software".to_owned(), program.to_owned())
            .unwrap();
        let mut pixels = vec![255; (size.0 * size.1 * 3) as usize];
        for (x, y) in black {
            let at = ((y * size.0 + x) * 3) as usize;
            pixels[at..at + 3].fill(0);
        }
        encoder
            .write_header()
            .unwrap()
            .write_image_data(&pixels)
            .unwrap();
        out
    }

    #[test]
    fn differing_pixels_are_counted_and_enclosed() {
        let a = drawn((10, 8), &[(1, 1)], "x");
        let b = drawn((10, 8), &[(1, 1), (3, 2), (6, 5)], "x");
        let found = compare(&a, &b).unwrap();
        assert_eq!(found.differing, Some(2));
        assert_eq!(found.share(), Some(2.0 / 80.0));
        let within = found.within.unwrap();
        assert_eq!(
            (within.left, within.top, within.width, within.height),
            (3, 2, 4, 4)
        );
    }

    #[test]
    fn another_text_in_an_image_is_no_other_pixel() {
        let (a, b) = (drawn((4, 4), &[], "1.0"), drawn((4, 4), &[], "2.0"));
        assert_ne!(a, b);
        assert_eq!(compare(&a, &b).unwrap().differing, Some(0));
    }

    #[test]
    fn images_of_two_sizes_have_no_common_pixels() {
        let found = compare(&drawn((4, 4), &[], "x"), &drawn((4, 5), &[], "x")).unwrap();
        assert_eq!((found.a, found.b, found.differing), ((4, 4), (4, 5), None));
        assert_eq!(compare(b"\x89PNG\r\n\x1a\nnothing", b"x"), None);
    }
}
