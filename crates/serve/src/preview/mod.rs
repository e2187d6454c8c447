//! Contents as people look at them: lines, tables, images, notebooks, bytes. In: an open content.
//! Out: a part of it as plain data.
//!
//! Invariant: nothing of a content is interpreted beyond its form, and no format is read in this
//! process: a worker does (crate `inspection`).

mod hex;
mod image;
mod notebook;
mod table;
mod text;

pub use hex::HexView;
pub use image::ImageView;
pub use notebook::NotebookView;
pub use table::TableView;
pub use text::TextView;

use backstory_inspection::{FormatReader, LARGEST_CONTENT, Trouble};

use crate::problem::{Answer, Problem};
use crate::readers::PATIENCE;
use crate::version_bytes::VersionBytes;

/// The most bytes of a content that are looked through for lines.
const MOST: u64 = 64 << 20;

/// The whole content, which a worker can read.
///
/// # Errors
///
/// A bad request, if the content is too large for a worker.
fn whole(content: VersionBytes) -> Answer<Vec<u8>> {
    let name = String::from_utf8_lossy(&content.path).into_owned();
    let bytes = content.read_all(LARGEST_CONTENT as u64)?;
    bytes.ok_or_else(|| {
        Problem::bad_request(format!(
            "{name} is not shown by its kind, because it has more than {} MiB: look at its bytes",
            LARGEST_CONTENT >> 20
        ))
    })
}

/// A worker for one view.
fn formats() -> FormatReader {
    FormatReader::new().within(PATIENCE)
}

fn not_shown(trouble: Trouble) -> Problem {
    Problem::bad_request(trouble.to_string())
}
