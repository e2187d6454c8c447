//! Parts of an output that differ each time: digits of dates, times and random numbers.
//!
//! In: two texts from their first difference on. Out: how many digits are a volatile part.

/// Bytes behind the difference in which a date or time shows.
const CONTEXT: usize = 16;
/// Hexadecimal digits in a row that count as random.
const RANDOM_DIGITS: usize = 6;

/// The number of digits at the start of both texts that are a volatile part. 0 if both texts differ
/// in more than digits.
pub fn volatile_digits(recorded: &[u8], came: &[u8]) -> usize {
    let came = &came[..came.len().min(recorded.len())];
    if !looks_volatile(recorded, came) {
        return 0;
    }
    let both = recorded.iter().zip(came);
    both.take_while(|(a, b)| a.is_ascii_hexdigit() && b.is_ascii_hexdigit())
        .count()
}

/// True if two texts are equal but for digits that are a part of a date, a time, or a long random
/// number. A single counter is no volatile part.
fn looks_volatile(recorded: &[u8], came: &[u8]) -> bool {
    let length = recorded.len().min(came.len());
    let (recorded, came) = (&recorded[..length], &came[..length]);
    let shape = |bytes: &[u8]| -> Vec<u8> {
        let digit = |byte: &u8| byte.is_ascii_hexdigit();
        let one = |byte: &u8| if digit(byte) { b'0' } else { *byte };
        bytes.iter().map(one).collect()
    };
    if !came.first().is_some_and(u8::is_ascii_hexdigit) || shape(recorded) != shape(came) {
        return false;
    }
    let run = came
        .iter()
        .take_while(|byte| byte.is_ascii_hexdigit())
        .count();
    run >= RANDOM_DIGITS || has_time(&came[..length.min(CONTEXT)])
}

/// True if a text has `:dd` or a year as a word.
fn has_time(text: &[u8]) -> bool {
    let digits = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_digit);
    let minute = text.windows(3).any(|at| at[0] == b':' && digits(&at[1..]));
    minute
        || text
            .windows(5)
            .any(|at| at.starts_with(b" 20") && digits(&at[3..]))
}

#[cfg(test)]
mod tests {
    use super::looks_volatile;

    #[test]
    fn dates_and_random_digits_are_volatile_and_counters_are_not() {
        assert!(looks_volatile(b"4 UTC 2026\n", b"5 UTC 2026\n"));
        assert!(looks_volatile(b"9:51:15 GMT", b"8:02:44 GMT"));
        assert!(looks_volatile(b"deadbeef01\n", b"0123456789\n"));
        assert!(!looks_volatile(b"2:2qer", b"1:2qer"));
        assert!(!looks_volatile(b"17\n", b"18\n"));
        assert!(!looks_volatile(b"4 UTC 2026", b"4 of them!"));
    }
}
