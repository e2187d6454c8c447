//! One picture, decoded within the limit of memory.

use image::{DynamicImage, ImageDecoder, ImageResult, Limits};

/// The most memory of a decoded picture.
pub(super) const LARGEST: u64 = 96 << 20;

/// A decoded picture.
pub(super) enum Picture {
    /// One whose pixels have colours.
    Coloured(DynamicImage),
    /// One whose pixels are measured values.
    Values(PixelValues),
    /// One whose pixels the library does not decode, with the reason.
    Undecoded(String),
}

/// The values of a picture's pixels.
pub(super) struct PixelValues {
    pub size: (u32, u32),
    /// The bytes of one pixel.
    pub width: usize,
    pub bytes: Vec<u8>,
}

/// The limits of a decoder.
pub(super) fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.max_alloc = Some(LARGEST);
    limits
}

/// Decodes a picture within the limits.
pub(super) fn decoded(mut decoder: impl ImageDecoder) -> ImageResult<DynamicImage> {
    let mut limits = limits();
    limits.reserve(decoder.total_bytes())?;
    decoder.set_limits(limits)?;
    DynamicImage::from_decoder(decoder)
}
