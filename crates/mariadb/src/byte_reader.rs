//! Reads numbers and texts of the server's formats, which are little-endian.
//!
//! Invariant: nothing is read beyond the end. Each read says `None` there.

/// The rest of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByteReader<'a>(pub(crate) &'a [u8]);

impl<'a> ByteReader<'a> {
    /// So many bytes.
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(first)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    /// A number of up to eight bytes.
    pub(crate) fn number(&mut self, bytes: usize) -> Option<u64> {
        let taken = self.take(bytes)?.iter().rev();
        Some(taken.fold(0, |all, byte| all << 8 | u64::from(*byte)))
    }

    /// A number of up to eight bytes, the highest first.
    pub(crate) fn big_endian(&mut self, bytes: usize) -> Option<u64> {
        let taken = self.take(bytes)?.iter();
        Some(taken.fold(0, |all, byte| all << 8 | u64::from(*byte)))
    }

    /// A number whose first byte tells its length.
    pub(crate) fn length(&mut self) -> Option<usize> {
        let number = match self.byte()? {
            0xfc => self.number(2)?,
            0xfd => self.number(3)?,
            0xfe => self.number(8)?,
            0xfb | 0xff => return None,
            small => u64::from(small),
        };
        usize::try_from(number).ok()
    }

    /// The bytes before the next zero, which is taken, too.
    pub(crate) fn until_nul(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let text = self.take(end)?;
        self.byte()?;
        Some(text)
    }
}
