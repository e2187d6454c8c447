//! Tests of the first bytes of a file, which tell its format.

/// True if the first byte that is no space begins a JSON object or array, and each text occurs.
pub(crate) fn is_json_with(beginning: &[u8], texts: &[&str]) -> bool {
    let first = beginning.trim_ascii_start().first();
    matches!(first, Some(b'{' | b'['))
        && texts
            .iter()
            .all(|text| memchr::memmem::find(beginning, text.as_bytes()).is_some())
}

/// True if one of the first lines passes a test.
pub(crate) fn has_line(beginning: &[u8], test: impl FnMut(&[u8]) -> bool) -> bool {
    beginning.split(|byte| *byte == b'\n').take(20).any(test)
}
