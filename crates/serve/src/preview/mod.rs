//! Contents as people look at them: lines, tables, images, notebooks, bytes. In: an open content.
//! Out: a part of it as plain data.
//!
//! Invariant: nothing of a content is interpreted beyond its form. HTML in a notebook stays
//! text.

mod hex;
mod image;
mod notebook;
pub mod parquet_rows;
mod table;
mod text;

pub use hex::HexView;
pub use image::ImageView;
pub use notebook::NotebookView;
pub use table::TableView;
pub use text::TextView;

/// The most bytes of a content that are looked through for lines, rows or cells.
pub const MOST: u64 = 64 << 20;
