//! Compares two decoded images by their pixels.
//!
//! Texts inside an image, such as the program that drew it, are not compared. Two images with the
//! same pixels look the same.

use backstory_comparison::{ImageDifference, PixelBox};
use image::DynamicImage;

/// Compares two images. Images with another form of pixels are compared as red, green, blue and
/// opacity of 8 bits each.
pub fn compare(a: &DynamicImage, b: &DynamicImage) -> ImageDifference {
    let (size, other) = ((a.width(), a.height()), (b.width(), b.height()));
    match a.color() == b.color() {
        true => {
            let width = usize::from(a.color().bytes_per_pixel());
            compare_values((size, a.as_bytes()), (other, b.as_bytes()), width)
        }
        false => compare_values((size, &a.to_rgba8()), (other, &b.to_rgba8()), 4),
    }
}

/// Compares two pictures of `width` bytes for each pixel. Each has its size and its bytes.
pub fn compare_values(
    (a, a_bytes): ((u32, u32), &[u8]),
    (b, b_bytes): ((u32, u32), &[u8]),
    width: usize,
) -> ImageDifference {
    let mut found = ImageDifference {
        a,
        b,
        differing: None,
        within: None,
    };
    if a != b {
        return found;
    }
    let box_of = differing(a_bytes, b_bytes, width, a.0);
    found.differing = Some(box_of.count);
    found.within = box_of.corners.map(|(left, top, right, bottom)| PixelBox {
        left,
        top,
        width: right - left + 1,
        height: bottom - top + 1,
    });
    found
}

/// Differing pixels, and the corners of the smallest box around them: left, top, right, bottom.
#[derive(Default)]
struct DifferingPixels {
    count: u64,
    corners: Option<(u32, u32, u32, u32)>,
}

/// `bytes`: those of a pixel. `width`: pixels of a row.
fn differing(a: &[u8], b: &[u8], bytes: usize, width: u32) -> DifferingPixels {
    let mut found = DifferingPixels::default();
    let pairs = a.chunks_exact(bytes).zip(b.chunks_exact(bytes));
    let width = u64::from(width).max(1);
    for (at, _) in (0u64..).zip(pairs).filter(|(_, (x, y))| x != y) {
        found.count += 1;
        let (x, y) = ((at % width) as u32, (at / width) as u32);
        let (left, top, right, bottom) = found.corners.unwrap_or((x, y, x, y));
        found.corners = Some((left.min(x), top.min(y), right.max(x), bottom.max(y)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{GrayImage, Luma, RgbImage};

    fn white(size: (u32, u32), black: &[(u32, u32)]) -> DynamicImage {
        let mut image = GrayImage::from_pixel(size.0, size.1, Luma([255]));
        for (x, y) in black {
            image.put_pixel(*x, *y, Luma([0]));
        }
        image.into()
    }

    #[test]
    fn differing_pixels_are_counted_and_enclosed() {
        let a = white((10, 8), &[(1, 1)]);
        let b = white((10, 8), &[(1, 1), (3, 2), (6, 5)]);
        let found = compare(&a, &b);
        assert_eq!(found.differing, Some(2));
        assert_eq!(found.share(), Some(2.0 / 80.0));
        let within = found.within.unwrap();
        assert_eq!(
            (within.left, within.top, within.width, within.height),
            (3, 2, 4, 4)
        );
    }

    #[test]
    fn pixels_of_another_form_are_the_same_if_they_look_the_same() {
        let grey = white((4, 4), &[]);
        let colour: DynamicImage = RgbImage::from_pixel(4, 4, image::Rgb([255; 3])).into();
        assert_eq!(compare(&grey, &colour).differing, Some(0));
    }

    #[test]
    fn images_of_two_sizes_have_no_common_pixels() {
        let found = compare(&white((4, 4), &[]), &white((4, 5), &[]));
        assert_eq!((found.a, found.b, found.differing), ((4, 4), (4, 5), None));
    }
}
