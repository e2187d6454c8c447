//! Words that several parts of a report share.

use backstory_workflow::shell::quote;

/// `1 file`, `2 files`
pub fn counted(number: usize, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    }
}

/// Arguments as a shell line.
pub fn line(arguments: &[Vec<u8>]) -> String {
    let words: Vec<String> = arguments.iter().map(|word| quote(word)).collect();
    words.join(" ")
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
