//! Shortens two long values to the part in which they differ.

/// The most characters of a value that is shown whole.
const WHOLE: usize = 60;

/// Characters before and after the first difference.
const AROUND: usize = 20;

/// Two values for one line. If one of them is long, the common beginning and end are left out. A
/// long difference is cut.
pub fn excerpts(a: &str, b: &str) -> (String, String) {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().max(b.len()) <= WHOLE {
        return (a.into_iter().collect(), b.into_iter().collect());
    }
    let same = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let start = same.saturating_sub(AROUND);
    let rest = a.len().min(b.len()) - same;
    let ends = a.iter().rev().zip(b.iter().rev()).take(rest);
    let tail = ends.take_while(|(a, b)| a == b).count();
    let shown = |all: &[char]| {
        let changed = all.len() - tail;
        let end = (changed + AROUND).min(start + WHOLE).min(all.len());
        let part: String = all[start..end.max(start)].iter().collect();
        let before = if start > 0 { "…" } else { "" };
        let after = if end < all.len() { "…" } else { "" };
        format!("{before}{part}{after}")
    };
    (shown(&a), shown(&b))
}

#[cfg(test)]
mod tests {
    use super::excerpts;

    #[test]
    fn a_long_value_is_shown_where_it_differs() {
        let of = |a: &str, b: &str| excerpts(a, b);
        assert_eq!(of("0.1", "0.01"), ("0.1".into(), "0.01".into()));
        let long = "x".repeat(100_000);
        let (a, b) = of(&format!("{long}A{long}"), &format!("{long}ü{long}"));
        let x = "x".repeat(20);
        assert_eq!(a, format!("…{x}A{x}…"));
        assert_eq!(b, format!("…{x}ü{x}…"));
        assert_eq!(of(&long, ""), (format!("{}…", "x".repeat(60)), "".into()));
        let (a, b) = of(&long, &format!("{long}{long}"));
        assert!(a.ends_with(&x) && b.chars().count() < 70, "{a} {b}");
    }
}
