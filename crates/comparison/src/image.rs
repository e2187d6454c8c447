//! How two images differ. Crate `inspect` decodes the images and compares them.

use serde::{Deserialize, Serialize};

/// The difference between two images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
