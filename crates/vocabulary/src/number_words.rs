//! Numbers as people read them: `1 step`, `16,184 files`.

/// A number of things: `1 step`, `16,184 files`.
pub fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), noun(number, one, many))
}

/// The noun in the form that agrees with the number.
pub fn noun<'w>(number: usize, one: &'w str, many: &'w str) -> &'w str {
    if number == 1 { one } else { many }
}

/// A natural number with its thousands set apart: `16,184`.
pub fn grouped(number: impl std::fmt::Display) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
