//! The type of a content, guessed from its first bytes and from the file's name.
//!
//! Only types that a browser draws without executing anything are named to it. SVG is one of them:
//! the answer's policy forbids its scripts. Everything else is bytes to a browser.

/// The bytes that are looked at.
pub const HEAD: usize = 8192;

/// A type of content, as far as this server shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaType {
    /// An image of pixels, with its media type.
    Image(&'static str),
    /// An image of shapes.
    Svg,
    /// A table of text, with its separator.
    Table(u8),
    /// A table in columns.
    Parquet,
    /// A Jupyter notebook.
    Notebook,
    /// A text without NUL bytes.
    Text,
    /// A text in UTF-16.
    Utf16,
    /// Anything else.
    Binary,
}

/// The first bytes of images.
const IMAGES: [(&[u8], &str); 5] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
];

impl MediaType {
    /// Guesses the type. `head` has the first [`HEAD`] bytes.
    pub fn of(name: &[u8], head: &[u8]) -> MediaType {
        let name = name.to_ascii_lowercase();
        let ends = |endings: &[&[u8]]| endings.iter().any(|ending| name.ends_with(ending));
        let is_text = backstory_comparison::is_text(head);
        if let Some((_, image)) = IMAGES.iter().find(|(begin, _)| head.starts_with(begin))
            && !(is_text && *image == "image/bmp")
        {
            return MediaType::Image(image);
        }
        if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP") {
            return MediaType::Image("image/webp");
        }
        match () {
            () if head.starts_with(b"PAR1") => MediaType::Parquet,
            () if backstory_comparison::is_utf16(head) => MediaType::Utf16,
            () if !is_text => MediaType::Binary,
            () if ends(&[b".svg"]) => MediaType::Svg,
            () if ends(&[b".ipynb"]) => MediaType::Notebook,
            () if ends(&[b".csv"]) => MediaType::Table(b','),
            () if ends(&[b".tsv", b".tab"]) => MediaType::Table(b'\t'),
            () => MediaType::Text,
        }
    }

    /// The name that a browser is given with the bytes.
    pub fn for_browser(self) -> &'static str {
        match self {
            MediaType::Image(name) => name,
            MediaType::Svg => "image/svg+xml",
            _ => "application/octet-stream",
        }
    }

    /// The name for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            MediaType::Image(name) => name,
            MediaType::Svg => "image/svg+xml",
            MediaType::Table(b'\t') => "text/tab-separated-values",
            MediaType::Table(_) => "text/csv",
            MediaType::Parquet => "application/vnd.apache.parquet",
            MediaType::Notebook => "application/x-ipynb+json",
            MediaType::Text => "text/plain",
            MediaType::Utf16 => "text/plain; charset=utf-16",
            MediaType::Binary => "application/octet-stream",
        }
    }

    /// The views of such a content, the best first.
    pub fn views(self) -> &'static [&'static str] {
        match self {
            MediaType::Image(_) => &["image", "hex"],
            MediaType::Svg => &["image", "text", "hex"],
            MediaType::Table(_) => &["table", "text", "hex"],
            MediaType::Parquet => &["table", "hex"],
            MediaType::Notebook => &["notebook", "text", "hex"],
            MediaType::Text | MediaType::Utf16 => &["text", "hex"],
            MediaType::Binary => &["hex"],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_follows_from_the_bytes_before_the_name() {
        let of = |name: &str, head: &[u8]| MediaType::of(name.as_bytes(), head).name();
        assert_eq!(of("x.csv", b"\x89PNG\r\n\x1a\n"), "image/png");
        assert_eq!(of("x.CSV", b"a,b\n"), "text/csv");
        assert_eq!(of("x", b"PAR1\0"), "application/vnd.apache.parquet");
        assert_eq!(of("x.svg", b"<svg onload='x'>"), "image/svg+xml");
        assert_eq!(of("BM.txt", b"BMW is a text"), "text/plain");
        assert_eq!(of("x.html", b"<script>"), "text/plain");
        assert_eq!(of("x.txt", b"\xff\xfea\0"), "text/plain; charset=utf-16");
        assert_eq!(
            MediaType::of(b"x.html", b"<script>").for_browser(),
            "application/octet-stream"
        );
    }
}
