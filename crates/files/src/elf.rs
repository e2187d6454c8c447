//! The headers of an ELF program, read from the program's first bytes (`elf(5)`).
//!
//! In: the beginning of a file. Out: its machine and its segments. Every number is checked, so any
//! bytes are valid input.
//!
//! Absent on purpose: big-endian files, sections, and opening anything.

/// [`Segment::kind`] of the dynamic loader's path (`PT_INTERP`).
pub const INTERPRETER: u64 = 3;
/// [`Segment::kind`] of notes (`PT_NOTE`).
pub const NOTE: u64 = 4;
/// [`ElfHead::machine`] of x86-64 (`EM_X86_64`).
pub const X86_64: u64 = 62;

/// The beginning of a little-endian ELF file.
#[derive(Debug, Clone, Copy)]
pub struct ElfHead<'a> {
    head: &'a [u8],
    wide: bool,
}

/// One entry of the table of segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// `PT_*`.
    pub kind: u64,
    /// Offset of the segment's bytes in the file.
    pub offset: u64,
    /// Number of the segment's bytes in the file.
    pub size: u64,
}

impl<'a> ElfHead<'a> {
    /// `None` for a file that is not a little-endian ELF file.
    pub fn new(head: &'a [u8]) -> Option<ElfHead<'a>> {
        let wide = match head.get(..6)? {
            [0x7f, b'E', b'L', b'F', 2, 1] => true,
            [0x7f, b'E', b'L', b'F', 1, 1] => false,
            _ => return None,
        };
        Some(ElfHead { head, wide })
    }

    /// True for ELF-64, false for ELF-32.
    pub fn is_wide(&self) -> bool {
        self.wide
    }

    /// The number of the machine that the program is for; `None` if the header is cut before it.
    pub fn machine(&self) -> Option<u64> {
        self.number(18, 2)
    }

    /// The entries of the table of segments. `None` for each entry that lies beyond the bytes read.
    pub fn segments(&self) -> impl Iterator<Item = Option<Segment>> + use<'a> {
        let elf = *self;
        let fields = match self.wide {
            true => [(32, 8), (54, 2), (56, 2)],
            false => [(28, 4), (42, 2), (44, 2)],
        };
        let [table, size, count] =
            fields.map(|(at, bytes)| self.number(at, bytes).unwrap_or_default());
        (0..count).map(move |n| elf.segment(table.checked_add(n * size)?))
    }

    fn segment(&self, at: u64) -> Option<Segment> {
        let at = usize::try_from(at).ok()?;
        let (offset, size) = match self.wide {
            true => ((8, 8), (32, 8)),
            false => ((4, 4), (16, 4)),
        };
        let number = |(from, bytes): (usize, usize)| self.number(at.checked_add(from)?, bytes);
        Some(Segment {
            kind: number((0, 4))?,
            offset: number(offset)?,
            size: number(size)?,
        })
    }

    /// The segment's bytes; `None` if they lie beyond the bytes read.
    pub fn bytes(&self, segment: Segment) -> Option<&'a [u8]> {
        let from = usize::try_from(segment.offset).ok()?;
        let end = from.checked_add(usize::try_from(segment.size).ok()?)?;
        self.head.get(from..end)
    }

    fn number(&self, at: usize, bytes: usize) -> Option<u64> {
        let field = self.head.get(at..at.checked_add(bytes)?)?;
        let digits = field.iter().rev();
        Some(digits.fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
    }
}
