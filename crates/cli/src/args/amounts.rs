//! Ages, sizes and ranges as users write them: `30d`, `20G`, `5-9`.

use std::str::FromStr;

/// Seconds, from a number and a unit.
pub fn age(text: &str) -> Result<i64, String> {
    let units = [
        ("s", 1),
        ("m", 60),
        ("h", 3600),
        ("d", 86_400),
        ("w", 604_800),
    ];
    let (number, unit) =
        text.split_at(text.len() - text.chars().next_back().map_or(0, char::len_utf8));
    let unit = units.iter().find(|(name, _)| *name == unit);
    match (number.parse::<u32>(), unit) {
        (Ok(number), Some((_, seconds))) => Ok(i64::from(number) * seconds),
        _ => Err("give a number and a unit: s, m, h, d or w, as in 30d".to_owned()),
    }
}

/// Bytes, from a number and perhaps a unit.
pub fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text[digits.len()..].trim_end_matches(['i', 'B']) {
        "" => 0,
        "k" | "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => 64,
    };
    let bytes = digits.parse::<u64>().ok().filter(|_| shift < 64);
    bytes
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| "give a number of bytes, perhaps with k, M, G or T, as in 20G".to_owned())
}

/// The first and the last number of a range, as in `100-120`; of `7` both are 7.
pub fn range<N: FromStr + PartialOrd>(text: &str) -> Option<(N, N)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_sizes_have_units() {
        assert_eq!((age("30d"), age("2w")), (Ok(2_592_000), Ok(1_209_600)));
        assert_eq!(
            (size("20G"), size("7"), size("1KiB")),
            (Ok(20 << 30), Ok(7), Ok(1024))
        );
        for wrong in ["", "d", "-1d", "1y", "1.5h", "ä"] {
            assert!(age(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "G", "-1", "1X", "99999999T", "ä"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
