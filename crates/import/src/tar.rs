//! The headers of tar archives.
//!
//! In: a block. Out: the name, size and kind of a member, as ustar, GNU tar and `tar-rs` write
//! them.
//!
//! Absent: links and extended headers. Their blocks are passed over like those of other members.

/// The size of a block.
pub(crate) const BLOCK: usize = 512;

/// True if a block is a header: it has the magic of ustar or of GNU tar.
pub(crate) fn is_header(block: &[u8; BLOCK]) -> bool {
    &block[257..262] == b"ustar"
}

/// The name in a header.
pub(crate) fn name(block: &[u8; BLOCK]) -> &[u8] {
    let name = &block[..100];
    let end = memchr::memchr(0, name).unwrap_or(name.len());
    let name = &name[..end];
    name.strip_prefix(b"./").unwrap_or(name)
}

/// True for the header of a regular file.
pub(crate) fn is_file(block: &[u8; BLOCK]) -> bool {
    matches!(block[156], b'0' | 0)
}

/// The bytes that a content of `size` bytes takes: whole blocks.
pub(crate) fn padded(size: u64) -> u64 {
    size.div_ceil(BLOCK as u64).saturating_mul(BLOCK as u64)
}

/// The size in a header: octal, or binary if the first bit is set. `None` at the end.
pub(crate) fn size(block: &[u8; BLOCK]) -> Option<u64> {
    if block.iter().all(|byte| *byte == 0) {
        return None;
    }
    let field = &block[124..136];
    if field[0] & 0x80 != 0 {
        let bytes = field[4..].try_into().ok()?;
        return Some(u64::from_be_bytes(bytes));
    }
    let digits = std::str::from_utf8(field).ok()?;
    u64::from_str_radix(digits.trim_matches(['\0', ' ']), 8).ok()
}
