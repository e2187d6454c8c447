//! Deltas of git: instructions that make a content from another one.
//!
//! A delta begins with the sizes of both contents. An instruction below 0x80 inserts so many bytes,
//! which follow it. Another one copies from the base; its bits say which bytes of the offset and
//! of the size follow.

/// Why a delta has no further byte that it needs.
const CUT: &str = "it ends too early";

/// The number of bytes that a delta makes, as it states.
///
/// # Errors
/// The delta ends before.
pub fn result_size(mut delta: &[u8]) -> Result<usize, &'static str> {
    size(&mut delta).ok_or(CUT)?;
    size(&mut delta).ok_or(CUT)
}

/// Applies a delta. No content of more than `largest` bytes is made.
///
/// # Errors
/// Why the delta cannot be applied to this base.
pub fn applied(base: &[u8], delta: &[u8], largest: usize) -> Result<Vec<u8>, &'static str> {
    let mut rest = delta;
    if size(&mut rest).ok_or(CUT)? != base.len() {
        return Err("its base has another size");
    }
    let expected = size(&mut rest).ok_or(CUT)?;
    if expected > largest {
        return Err("it makes too many bytes");
    }
    let mut made = Vec::with_capacity(expected.min(1 << 20));
    while let Some((&instruction, behind)) = rest.split_first() {
        rest = behind;
        let piece = match instruction {
            0 => return Err("it has an unknown instruction"),
            1..=0x7f => {
                let inserted = rest.split_at_checked(usize::from(instruction));
                let (inserted, behind) = inserted.ok_or(CUT)?;
                rest = behind;
                inserted
            }
            _ => {
                let at = sparse(&mut rest, instruction & 15, 4).ok_or(CUT)?;
                let length = sparse(&mut rest, instruction >> 4 & 7, 3).ok_or(CUT)?;
                let length = if length == 0 { 0x10000 } else { length };
                let piece = base.get(at..).and_then(|from| from.get(..length));
                piece.ok_or("it copies what its base does not have")?
            }
        };
        made.extend_from_slice(piece);
        if made.len() > expected {
            return Err("it makes more bytes than it says");
        }
    }
    match made.len() == expected {
        true => Ok(made),
        false => Err("it makes fewer bytes than it says"),
    }
}

/// A number in groups of 7 bits, the least first.
fn size(rest: &mut &[u8]) -> Option<usize> {
    let mut number = 0;
    for shift in (0..35).step_by(7) {
        let (&byte, behind) = rest.split_first()?;
        *rest = behind;
        number |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// A number of which only the bytes stand there whose bits are set, the least first.
fn sparse(rest: &mut &[u8], bits: u8, bytes: u8) -> Option<usize> {
    let mut number = 0;
    for at in (0..bytes).filter(|at| bits >> at & 1 == 1) {
        let (&byte, behind) = rest.split_first()?;
        *rest = behind;
        number |= usize::from(byte) << (8 * at);
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delta_copies_from_its_base_and_inserts() {
        let delta = [4, 5, 0x91, 1, 3, 2, b'x', b'y'];
        assert_eq!(applied(b"abcd", &delta, 100).unwrap(), b"bcdxy");
        assert_eq!(result_size(&delta), Ok(5));
    }

    #[test]
    fn a_delta_that_lies_is_refused() {
        for (delta, why) in [
            (
                &[4, 5, 0x91, 2, 3][..],
                "it copies what its base does not have",
            ),
            (&[4, 5, 1, b'x'], "it makes fewer bytes than it says"),
            (&[4, 0, 1, b'x'], "it makes more bytes than it says"),
            (&[3, 1, 1, b'x'], "its base has another size"),
            (&[4, 5, 0], "it has an unknown instruction"),
            (&[4, 5, 5, b'x'], "it ends too early"),
            (
                &[4, 0xff, 0xff, 0xff, 0xff, 0x0f],
                "it makes too many bytes",
            ),
            (&[4, 0x80], "it ends too early"),
        ] {
            assert_eq!(applied(b"abcd", delta, 100).unwrap_err(), why, "{delta:?}");
        }
    }
}
