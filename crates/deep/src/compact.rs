//! The compact form of the records of a chunk, in which a deep log has them.
//!
//! A record in the arena has 48 bytes, so that a recorder writes it without thinking. Most of them
//! are zeros, or small numbers. In the compact form each number takes as many bytes as it needs:
//!
//! ```text
//! records := (first call time-last took fd result a b parts section* tail)* 0 rest
//! first   := 1 + state + 256·flags        parts := 4·count of sections + kind of tail
//! section := kind arg length bytes        tail  := nothing (0) | length (1) | length bytes (2)
//! ```
//!
//! All numbers are LEB128; `time-last`, `fd`, `result`, `a` and `b` are zigzag. A tail is what a
//! record has behind its sections: zeros (1), or bytes (2). The rest of a chunk is kept as it is.
//!
//! Invariant: [`expanded`] gives back every chunk bit for bit, also one whose process was killed
//! while it wrote. Hostile bytes never become more than its limit.

/// Bytes of a record without its sections, and of the head of a section.
const RECORD: usize = 48;
const SECTION: usize = 8;

/// The tails of a record.
const NO_TAIL: u64 = 0;
pub(crate) const ZEROS: u64 = 1;
pub(crate) const BYTES: u64 = 2;

/// Replaces `to` by the compact form of the records of a chunk.
pub(crate) fn compact(records: &[u8], to: &mut Vec<u8>) {
    to.clear();
    to.reserve(records.len() + 16);
    let (mut rest, mut last) = (records, 0);
    while let Some(record) = first_record(rest) {
        put_record(record, &mut last, to);
        rest = &rest[record.len()..];
    }
    put(to, 0);
    to.extend_from_slice(rest);
}

/// The first record, with its sections. `None` if no whole record follows.
fn first_record(bytes: &[u8]) -> Option<&[u8]> {
    let size = u32_at(bytes, 4)? as usize;
    let is_valid = size >= RECORD && size.is_multiple_of(8);
    bytes.get(..size).filter(|_| is_valid)
}

fn put_record(record: &[u8], last: &mut u64, to: &mut Vec<u8>) {
    let word = |at: usize| u64_at(record, at).unwrap_or_default();
    let half = |at: usize| u32_at(record, at).unwrap_or_default();
    let (first, time) = (half(0), word(8));
    put(to, 1 + u64::from(first & 0xffff));
    put(to, u64::from(first >> 16));
    put(to, zigzag(time.wrapping_sub(*last)));
    put(to, u64::from(half(16)));
    put(
        to,
        zigzag(i64::from(half(20).cast_signed()).cast_unsigned()),
    );
    for at in [24, 32, 40] {
        put(to, zigzag(word(at)));
    }
    *last = time;
    let (mut count, mut at) = (0, RECORD);
    while let Some(end) = section_end(record, at) {
        (count, at) = (count + 1, end);
    }
    let tail = &record[at..];
    let kind = match tail {
        [] => NO_TAIL,
        _ if tail.iter().all(|byte| *byte == 0) => ZEROS,
        _ => BYTES,
    };
    put(to, kind + 4 * count);
    let mut at = RECORD;
    for _ in 0..count {
        let length = half(at + 4);
        put(to, u64::from(half(at) & 0xffff));
        put(to, u64::from(half(at) >> 16));
        put(to, u64::from(length));
        let bytes = at + SECTION..at + SECTION + length as usize;
        to.extend_from_slice(&record[bytes.clone()]);
        at = bytes.end.next_multiple_of(8);
    }
    if kind != NO_TAIL {
        put(to, tail.len() as u64);
    }
    if kind == BYTES {
        to.extend_from_slice(tail);
    }
}

/// Where the section at a position ends, with its padding. `None` if none is there.
fn section_end(record: &[u8], at: usize) -> Option<usize> {
    let kind = u32_at(record, at)? & 0xffff;
    let end = (at + SECTION).checked_add(u32_at(record, at + 4)? as usize)?;
    let padded = end.checked_next_multiple_of(8)?;
    let padding = record.get(end..padded)?;
    (kind != 0 && padding.iter().all(|byte| *byte == 0)).then_some(padded)
}

/// The records of a chunk. `None` if these bytes are not their compact form, or if they are more
/// than `most` bytes.
pub(crate) fn expanded(compact: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut from = Input { bytes: compact };
    let mut to = Vec::with_capacity(most.min(8 * compact.len()));
    let mut last = 0;
    while let Some(first) = from.number()?.checked_sub(1) {
        let first = u16::try_from(first).ok()?;
        take_record(first, &mut from, &mut last, &mut to, most)?;
    }
    let whole = to.len() + from.bytes.len() <= most;
    to.extend_from_slice(from.bytes);
    whole.then_some(to)
}

fn take_record(
    first: u16,
    from: &mut Input<'_>,
    last: &mut u64,
    to: &mut Vec<u8>,
    most: usize,
) -> Option<()> {
    let start = to.len();
    if start + RECORD > most {
        return None;
    }
    to.extend_from_slice(&first.to_le_bytes());
    to.extend_from_slice(&u16::try_from(from.number()?).ok()?.to_le_bytes());
    to.extend_from_slice(&[0; 4]); // the size, which follows from the rest
    *last = last.wrapping_add(from.signed()?);
    to.extend_from_slice(&last.to_le_bytes());
    to.extend_from_slice(&u32::try_from(from.number()?).ok()?.to_le_bytes());
    let fd = i32::try_from(from.signed()?.cast_signed()).ok()?;
    to.extend_from_slice(&fd.to_le_bytes());
    for _ in 0..3 {
        to.extend_from_slice(&from.signed()?.to_le_bytes());
    }
    let parts = from.number()?;
    for _ in 0..parts / 4 {
        let (kind, arg) = (u16::try_from(from.number()?).ok()?, from.number()?);
        let length = u32::try_from(from.number()?).ok()?;
        let bytes = from.take(length as usize)?;
        if to.len() + SECTION + bytes.len() > most {
            return None;
        }
        to.extend_from_slice(&kind.to_le_bytes());
        to.extend_from_slice(&u16::try_from(arg).ok()?.to_le_bytes());
        to.extend_from_slice(&length.to_le_bytes());
        to.extend_from_slice(bytes);
        to.resize(to.len().next_multiple_of(8), 0);
    }
    let kind = parts % 4;
    if kind != NO_TAIL {
        let length = usize::try_from(from.number()?).ok()?;
        let end = to.len().checked_add(length).filter(|end| *end <= most)?;
        match kind {
            ZEROS => to.resize(end, 0),
            BYTES => to.extend_from_slice(from.take(length)?),
            _ => return None,
        }
    }
    let size = u32::try_from(to.len() - start).ok()?;
    to[start + 4..start + 8].copy_from_slice(&size.to_le_bytes());
    Some(())
}

/// Bytes of a compact form that are still to be read.
pub(crate) struct Input<'a> {
    pub bytes: &'a [u8],
}

impl<'a> Input<'a> {
    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }

    pub fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<u64> {
        let number = self.number()?;
        Some((number >> 1) ^ (number & 1).wrapping_neg())
    }
}

fn put(to: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Small for numbers near zero, of both signs.
fn zigzag(number: u64) -> u64 {
    (number << 1) ^ (number.cast_signed() >> 63).cast_unsigned()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers without a pattern, the same each time.
    struct Numbers(u64);

    impl Numbers {
        fn next(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        }

        fn below(&mut self, limit: u64) -> u64 {
            self.next() % limit
        }

        fn bytes(&mut self, length: u64) -> Vec<u8> {
            (0..length).map(|_| self.next() as u8).collect()
        }
    }

    /// A record. `ill`: something in it is as no recorder writes it.
    fn record(numbers: &mut Numbers, ill: bool) -> Vec<u8> {
        let mut record = vec![2, 0, numbers.below(40) as u8, 0, 0, 0, 0, 0];
        for _ in 0..5 {
            let bits = numbers.below(65) as u32;
            let number = numbers.next().checked_shr(bits).unwrap_or(0);
            record.extend(number.to_le_bytes());
        }
        for _ in 0..numbers.below(4) {
            let length = numbers.below(30);
            record.extend([1 + numbers.below(9) as u8, 0, numbers.below(5) as u8, 0]);
            record.extend((length as u32).to_le_bytes());
            record.extend(numbers.bytes(length));
            let padded = record.len().next_multiple_of(8);
            record.resize(padded, u8::from(ill && numbers.below(3) == 0));
        }
        record.resize(record.len() + 8 * numbers.below(3) as usize, 0);
        if ill {
            let at = numbers.below(record.len() as u64) as usize;
            record[at] = numbers.next() as u8;
        }
        let size = record.len() as u32 + 8 * u32::from(ill && numbers.below(9) == 0);
        record[4..8].copy_from_slice(&size.to_le_bytes());
        record
    }

    #[test]
    fn every_chunk_comes_back_bit_for_bit() {
        let mut numbers = Numbers(1);
        let mut packed = Vec::new();
        for round in 0..3000 {
            let ill = round % 2 == 1;
            let mut records: Vec<u8> = (0..numbers.below(9))
                .flat_map(|_| record(&mut numbers, ill))
                .collect();
            let length = numbers.below(60);
            records.extend(match numbers.below(3) {
                0 => vec![],
                1 => vec![0; length as usize],
                _ => numbers.bytes(length),
            });
            compact(&records, &mut packed);
            let back = expanded(&packed, records.len());
            assert!(back.as_deref() == Some(&records[..]), "round {round}");
            if let Some(less) = records.len().checked_sub(1) {
                assert_eq!(expanded(&packed, less), None, "round {round}");
            }
        }
    }

    #[test]
    fn hostile_bytes_make_no_more_than_the_limit() {
        let mut numbers = Numbers(2);
        let mut packed = Vec::new();
        for _ in 0..20_000 {
            let records: Vec<u8> = (0..3).flat_map(|_| record(&mut numbers, false)).collect();
            compact(&records, &mut packed);
            for _ in 0..1 + numbers.below(4) {
                let at = numbers.below(packed.len() as u64) as usize;
                packed[at] = numbers.next() as u8;
            }
            let length = numbers.below(packed.len() as u64 + 1) as usize;
            let most = numbers.below(1000) as usize;
            if let Some(made) = expanded(&packed[..length], most) {
                assert!(made.len() <= most);
            }
        }
        // A tail of zeros of any length.
        packed.clear();
        for number in [1, 0, 0, 0, 0, 0, 0, 0, ZEROS, u64::MAX, 0] {
            put(&mut packed, number);
        }
        assert_eq!(expanded(&packed, 1 << 16), None);
    }
}
