//! A column: numbers of one meaning, one after another, in as many bits each as most of them need.
//!
//! ```text
//! column     := head  base  bits  [exceptions]            nothing at all if there are no numbers
//! head       := code of the width * 4 | HALVED | PATCHED   widths 0 … 56, then 64 (code 57)
//! bits       := (number - base), the low `width` bits of each, little-endian, one after another
//! exceptions := how many  (gap to the exception before  bits above the width)*
//! ```
//!
//! If all numbers are even, they are halved first (`HALVED`): zigzagged numbers that are never negative. The width is the one that takes the
//! fewest bytes; numbers that need more are patched up (`PATCHED`).

use super::{Put, Take};
use crate::Result;

/// More numbers than this are never in one column; who reads more reads damage.
pub const MOST: usize = 4096;

const HALVED: u8 = 1;
const PATCHED: u8 = 2;
const WIDE: u32 = 56;

/// How long a number is as a varint, from its bits.
fn varint(bits: u32) -> usize {
    bits.div_ceil(7).max(1) as usize
}

/// The width that takes the fewest bytes: how many numbers there are of each length in bits.
fn best_width(lengths: &[usize; 65], count: usize) -> u32 {
    let longest = (0..=64)
        .rev()
        .find(|&l| lengths[l as usize] > 0)
        .unwrap_or(0);
    let cost = |width: u32| {
        let patched: usize = (width + 1..=longest)
            .map(|length| lengths[length as usize] * (1 + varint(length - width)))
            .sum();
        (count * width as usize).div_ceil(8) + patched + usize::from(patched > 0)
    };
    let widths = (0..=longest.min(WIDE)).chain((longest > WIDE).then_some(64));
    widths.min_by_key(|&width| cost(width)).unwrap_or(64)
}

/// Appends a column. At most [`MOST`] numbers.
pub fn put(out: &mut Vec<u8>, numbers: &[u64]) {
    let Some(&base) = numbers.iter().min() else {
        return;
    };
    let halved = numbers.iter().all(|number| number & 1 == 0);
    let shift = u32::from(halved);
    let above = |number: u64| (number - base) >> shift;
    let mut lengths = [0usize; 65];
    for &number in numbers {
        lengths[(64 - above(number).leading_zeros()) as usize] += 1;
    }
    let width = best_width(&lengths, numbers.len());
    let patched: usize = lengths[width as usize + 1..].iter().sum();
    let code = width.min(WIDE + 1) as u8;
    out.push(code * 4 + if halved { HALVED } else { 0 } + if patched > 0 { PATCHED } else { 0 });
    out.number(base >> shift);
    let (mut held, mut filled) = (0u128, 0);
    let mask = low(width);
    for &number in numbers {
        held |= u128::from(above(number) & mask) << filled;
        filled += width;
        while filled >= 8 {
            out.push(held as u8);
            held >>= 8;
            filled -= 8;
        }
    }
    if filled > 0 {
        out.push(held as u8);
    }
    if patched > 0 {
        out.number(patched as u64);
        let mut next = 0;
        for (at, &number) in numbers.iter().enumerate() {
            let high = above(number) & !mask;
            if high != 0 {
                out.number((at - next) as u64);
                out.number(high >> width);
                next = at + 1;
            }
        }
    }
}

/// That many low bits.
fn low(width: u32) -> u64 {
    u64::MAX.checked_shr(64 - width).unwrap_or(0)
}

/// Reads a column of `count` numbers.
pub fn take(take: &mut Take<'_>, count: usize) -> Result<Vec<u64>> {
    let Some(Column {
        head,
        width,
        base,
        bits,
    }) = take_head(take, count)?
    else {
        return Ok(Vec::new());
    };
    let mut numbers = unpack(bits, width, count);
    if head & PATCHED != 0 {
        let mut next = 0usize;
        for _ in 0..take.number()? {
            let gap = usize::try_from(take.number()?).unwrap_or(usize::MAX);
            let high = take.number()?;
            let number = numbers
                .get_mut(next.saturating_add(gap))
                .ok_or_else(|| take.damaged())?;
            *number |= high.checked_shl(width).unwrap_or(0);
            next = next.saturating_add(gap).saturating_add(1);
        }
    }
    let shift = u32::from(head & HALVED != 0);
    for number in &mut numbers {
        *number = number.wrapping_add(base).wrapping_shl(shift);
    }
    Ok(numbers)
}

/// A column before its patches.
struct Column<'c> {
    head: u8,
    /// Of a number, in bits.
    width: u32,
    /// The smallest number, which is taken off all.
    base: u64,
    bits: &'c [u8],
}

/// What comes before the patches of a column; nothing if there is none.
fn take_head<'c>(take: &mut Take<'c>, count: usize) -> Result<Option<Column<'c>>> {
    if count == 0 {
        return Ok(None);
    }
    if count > MOST {
        return Err(take.damaged());
    }
    let head = take.byte()?;
    let width = match u32::from(head / 4) {
        width if width <= WIDE => width,
        width if width == WIDE + 1 => 64,
        _ => return Err(take.damaged()),
    };
    let base = take.number()?;
    let bits = take.exactly((count * width as usize).div_ceil(8))?;
    Ok(Some(Column {
        head,
        width,
        base,
        bits,
    }))
}

/// Goes past a column of `count` numbers.
pub fn skip(take: &mut Take<'_>, count: usize) -> Result<()> {
    if let Some(column) = take_head(take, count)?
        && column.head & PATCHED != 0
    {
        for _ in 0..take.number()? {
            take.number()?;
            take.number()?;
        }
    }
    Ok(())
}

/// `count` numbers of `width` bits each; `bits` has so many. Most columns are read eight bytes at a time.
fn unpack(bits: &[u8], width: u32, count: usize) -> Vec<u64> {
    let mut numbers = Vec::with_capacity(count);
    let (mask, step) = (low(width), width as usize);
    if width > WIDE {
        let whole = bits.chunks_exact(8).map(word);
        numbers.extend(whole.take(count));
        return numbers;
    }
    // Where eight bytes from a number's first on are there: as no number begins later in its byte than at bit 7, they hold all of it.
    let safe = match bits.len().checked_sub(8) {
        Some(last) if step > 0 => count.min((last * 8 + 7) / step + 1),
        _ => 0,
    };
    numbers.extend((0..safe).map(|at| word(&bits[at * step / 8..]) >> (at * step % 8) & mask));
    let mut end = [0u8; 16];
    let from = (safe * step / 8).min(bits.len());
    let rest = bits.len() - from;
    end[..rest].copy_from_slice(&bits[from..]);
    let end = u128::from_le_bytes(end);
    let numbers_left = (safe..count).map(|at| (end >> (at * step - from * 8)) as u64 & mask);
    numbers.extend(numbers_left);
    numbers
}

/// The first eight bytes.
fn word(bytes: &[u8]) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&bytes[..8]);
    u64::from_le_bytes(first)
}

/// A column that is read from its beginning.
#[derive(Debug)]
pub struct Reader {
    numbers: std::vec::IntoIter<u64>,
    what: &'static str,
}

impl Reader {
    /// Reads a column of `count` numbers; `what` names it should more be asked for.
    pub fn new(from: &mut Take<'_>, count: usize, what: &'static str) -> Result<Reader> {
        Ok(Reader {
            numbers: take(from, count)?.into_iter(),
            what,
        })
    }

    /// The next number.
    pub fn number(&mut self) -> Result<u64> {
        let what = self.what;
        self.numbers
            .next()
            .ok_or_else(|| crate::Error::Damaged(what))
    }

    /// The next number, which was zigzagged.
    pub fn signed(&mut self) -> Result<i64> {
        self.number().map(super::unzigzag)
    }

    /// The next number, if it fits 32 bits.
    pub fn small(&mut self) -> Result<u32> {
        u32::try_from(self.number()?).map_err(|_| crate::Error::Damaged(self.what))
    }

    /// The next number, as a place or a length.
    pub fn size(&mut self) -> Result<usize> {
        usize::try_from(self.number()?).map_err(|_| crate::Error::Damaged(self.what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn size(numbers: &[u64]) -> usize {
        let mut out = Vec::new();
        put(&mut out, numbers);
        out.len()
    }

    proptest! {
        #[test]
        fn a_column_comes_back_as_it_was(
            mut numbers in proptest::collection::vec(prop_oneof![0u64..3, 0u64..5000, any::<u64>()], 0..300),
            halve: bool,
        ) {
            if halve {
                numbers.iter_mut().for_each(|n| *n &= !1);
            }
            let mut out = Vec::new();
            put(&mut out, &numbers);
            let mut from = Take::new(&out, "test");
            prop_assert_eq!(take(&mut from, numbers.len()).unwrap(), &numbers[..]);
            prop_assert!(from.is_empty());
            let mut past = Take::new(&out, "test");
            skip(&mut past, numbers.len()).unwrap();
            prop_assert!(past.is_empty());
        }

        #[test]
        fn any_bytes_are_a_column_or_an_error(noise: Vec<u8>, count in 0usize..10_000) {
            let _ = take(&mut Take::new(&noise, "test"), count);
        }
    }

    #[test]
    fn numbers_of_every_width_come_back_as_they_were() {
        for width in 0..=64 {
            for count in [1usize, 2, 7, 8, 9, 63, 64, 65, 300] {
                let most = u64::MAX.checked_shr(64 - width).unwrap_or(0);
                let numbers: Vec<u64> = (0..count as u64)
                    .map(|n| {
                        if n % 2 == 0 {
                            0
                        } else {
                            most - n.min(most) / 2
                        }
                    })
                    .collect();
                let mut out = Vec::new();
                put(&mut out, &numbers);
                assert_eq!(
                    take(&mut Take::new(&out, "test"), count).unwrap(),
                    numbers,
                    "{width}"
                );
            }
        }
    }

    #[test]
    fn what_does_not_vary_takes_no_room() {
        assert_eq!(size(&[7; 128]), 2);
        assert_eq!(size(&[]), 0);
    }

    #[test]
    fn a_few_large_numbers_do_not_make_the_others_large() {
        let mut numbers = [1; 128];
        (numbers[3], numbers[100], numbers[0]) = (1 << 62, 1 << 40, 0);
        assert!(size(&numbers) < 40, "{}", size(&numbers));
    }
}
