//! The size of an image. A browser draws the image itself.

use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use super::formats;

/// The size of an image, as far as its first bytes tell.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct ImageView {
    /// Pixels in a row.
    pub width: Option<u32>,
    /// Rows.
    pub height: Option<u32>,
}

impl ImageView {
    /// The size by a worker. It is unknown without one, and for an image whose size is not in its
    /// first bytes.
    pub fn of(name: &[u8], head: &[u8]) -> ImageView {
        let size = formats().image_size(name, head).ok();
        ImageView {
            width: size.map(|(width, _)| width),
            height: size.map(|(_, height)| height),
        }
    }
}
