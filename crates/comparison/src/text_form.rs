//! Whether a content is a text, by its first bytes.

/// The bytes that are looked at, as git looks at them.
const LOOKED_AT: usize = 8000;

/// True for a content without NUL bytes in its first 8000 bytes, as git decides it.
pub fn is_text(content: &[u8]) -> bool {
    !content[..content.len().min(LOOKED_AT)].contains(&0)
}

/// True for a text in UTF-16 with a byte order mark. Its letters of ASCII have NUL bytes.
pub fn is_utf16(content: &[u8]) -> bool {
    let is_marked = content.starts_with(b"\xff\xfe") || content.starts_with(b"\xfe\xff");
    // The mark of UTF-32 begins with that of UTF-16.
    is_marked && !content.starts_with(b"\xff\xfe\0\0") && !is_text(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_no_nul_byte_or_is_marked_as_utf16() {
        assert!(is_text(b"a\xff\n") && !is_text(b"a\0"));
        assert!(is_utf16(b"\xff\xfea\0") && is_utf16(b"\xfe\xff\0a"));
        assert!(!is_utf16(b"\xff\xfe\0\0a\0\0\0") && !is_utf16(b"\xff\xfeab"));
    }
}
