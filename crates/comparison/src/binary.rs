//! Compares two contents byte by byte.

/// The difference between two contents of an unknown form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BinaryDifference {
    /// Bytes of the first content.
    pub a: u64,
    /// Bytes of the second content.
    pub b: u64,
    /// The offset of the first byte that differs. If one content begins with all of the other, the
    /// length of the shorter.
    pub first: u64,
    /// The number of differing bytes, if both have the same length.
    pub differing: Option<u64>,
}

/// Compares two contents.
pub fn compare(a: &[u8], b: &[u8]) -> BinaryDifference {
    let pairs = || a.iter().zip(b);
    let first = pairs().position(|(x, y)| x != y);
    let same_length = a.len() == b.len();
    BinaryDifference {
        a: a.len() as u64,
        b: b.len() as u64,
        first: first.unwrap_or(a.len().min(b.len())) as u64,
        differing: same_length.then(|| pairs().filter(|(x, y)| x != y).count() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differing_bytes_are_counted_and_the_first_is_found() {
        let of = |a: &[u8], b: &[u8]| (compare(a, b).first, compare(a, b).differing);
        assert_eq!(of(b"abcd", b"axcx"), (1, Some(2)));
        assert_eq!(of(b"abcd", b"ab"), (2, None));
        assert_eq!(of(b"", b"x"), (0, None));
    }
}
