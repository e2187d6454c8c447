//! The pictures of an image file: one, the pages of a TIFF file, or the frames of an animation.
//!
//! In: the bytes of a file. Out: its format, the number of its pictures, and each picture, decoded.
//!
//! Invariant: pictures are decoded one after the other, each within the limit of memory. Absent:
//! the frames of an animated PNG file after the first.

use std::io::Cursor;

use image::codecs::{gif::GifDecoder, webp::WebPDecoder};
use image::{AnimationDecoder, DynamicImage, ImageDecoder, ImageFormat, ImageReader, ImageResult};

use super::decoded_picture::{Picture, decoded, limits};
use super::tiff_pages;
use crate::{Read, UnreadableContent};

/// The pictures of a file, in order.
pub(super) type Pictures<'c> = Box<dyn Iterator<Item = Read<Picture>> + 'c>;

/// The words for one picture and for many, and their number, if a format may have several.
pub(super) type PictureNumber = Option<(&'static str, &'static str, u64)>;

/// The format of an image.
pub(super) fn format_of(bytes: &[u8]) -> Read<ImageFormat> {
    match tiff_pages::is_tiff(bytes) {
        true => Ok(ImageFormat::Tiff),
        false => image::guess_format(bytes).map_err(UnreadableContent::of),
    }
}

/// Width and height of the first picture.
pub(super) fn size(bytes: &[u8]) -> Read<(u32, u32)> {
    match format_of(bytes)? {
        ImageFormat::Tiff => tiff_pages::size(bytes),
        format => {
            let reader = ImageReader::with_format(Cursor::new(bytes), format);
            reader.into_dimensions().map_err(UnreadableContent::of)
        }
    }
}

/// The number of pictures.
pub(super) fn number(bytes: &[u8]) -> Read<PictureNumber> {
    let frames = |number| Some(("frame", "frames", number));
    Ok(match format_of(bytes)? {
        ImageFormat::Tiff => Some(("page", "pages", tiff_pages::pages(bytes)?.len() as u64)),
        ImageFormat::Gif => frames(frames_of_gif(bytes).map_err(UnreadableContent::of)?),
        ImageFormat::WebP => {
            let decoder = image_webp::WebPDecoder::new(Cursor::new(bytes));
            let decoder = decoder.map_err(UnreadableContent::of)?;
            // A picture that is no animation has no frames.
            frames(u64::from(decoder.num_frames().max(1)))
        }
        _ => None,
    })
}

fn frames_of_gif(bytes: &[u8]) -> Result<u64, gif::DecodingError> {
    let mut options = gif::DecodeOptions::new();
    options.skip_frame_decoding(true);
    let mut decoder = options.read_info(bytes)?;
    let mut number = 0;
    while decoder.next_frame_info()?.is_some() {
        number += 1;
    }
    Ok(number)
}

/// All pictures.
pub(super) fn pictures(bytes: &[u8]) -> Read<Pictures<'_>> {
    let cursor = Cursor::new(bytes);
    match format_of(bytes)? {
        ImageFormat::Tiff => {
            let pages = tiff_pages::pages(bytes)?.into_iter();
            Ok(Box::new(pages.map(|page| tiff_pages::picture(bytes, page))))
        }
        ImageFormat::Gif => animation(GifDecoder::new(cursor)),
        ImageFormat::WebP => {
            let decoder = WebPDecoder::new(cursor).map_err(UnreadableContent::of)?;
            match decoder.has_animation() {
                true => animation(Ok(decoder)),
                false => Ok(one(decoded(decoder))),
            }
        }
        format => {
            let mut reader = ImageReader::with_format(cursor, format);
            reader.limits(limits());
            Ok(one(reader.decode()))
        }
    }
}

fn one<'c>(picture: ImageResult<DynamicImage>) -> Pictures<'c> {
    let picture = picture.map(Picture::Coloured);
    Box::new(std::iter::once(picture.map_err(UnreadableContent::of)))
}

/// The frames of an animation. Each has the size of the whole animation.
fn animation<'c, D>(decoder: ImageResult<D>) -> Read<Pictures<'c>>
where
    D: ImageDecoder + AnimationDecoder<'c> + 'c,
{
    let limited = decoder.and_then(|mut decoder| {
        let (width, height) = decoder.dimensions();
        // A frame has four bytes for each pixel.
        limits().reserve(4 * u64::from(width) * u64::from(height))?;
        decoder.set_limits(limits())?;
        Ok(decoder)
    });
    let frames = limited.map_err(UnreadableContent::of)?.into_frames();
    Ok(Box::new(frames.map(|frame| {
        let frame = frame.map_err(UnreadableContent::of)?;
        Ok(Picture::Coloured(frame.into_buffer().into()))
    })))
}
