//! Words that several parts of a report share.

/// `1 file`, `2 files`
pub fn counted(number: usize, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    }
}

/// A size in bytes.
pub fn size(bytes: u64) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
