//! The numbers and strings of a file.

/// A position in unchecked bytes. Each read returns `None` at the end, or if a number is too long.
#[derive(Debug)]
pub struct Numbers<'b> {
    bytes: &'b [u8],
    pub at: usize,
}

impl<'b> Numbers<'b> {
    pub fn new(bytes: &'b [u8], at: usize) -> Numbers<'b> {
        Numbers { bytes, at }
    }

    pub fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub fn next(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub fn take<const N: usize>(&mut self) -> Option<[u64; N]> {
        let mut all = [0; N];
        for value in &mut all {
            *value = self.next()?;
        }
        Some(all)
    }

    pub fn string(&mut self) -> Option<&'b [u8]> {
        let length = usize::try_from(self.next()?).ok()?;
        let end = self.at.checked_add(length)?;
        let text = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(text)
    }
}
