//! The parts of a 64-bit ELF file that the loader acts on (`elf(5)`).
//!
//! In: a whole file. Out: segments, libraries, imported names and the starts of functions. Every
//! number is checked, so any bytes are valid input.
//!
//! Absent on purpose: section headers, which the loader ignores, and 32-bit files.

/// Most entries of a table that are read. No known program has more.
const MOST_ENTRIES: u64 = 4_000_000;

/// The file contradicts itself, or ends too early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("its {0} cannot be read")]
pub struct Damaged(pub &'static str);

/// A part of a file that the loader maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The address of the first byte, as the file was linked.
    pub address: u64,
    /// The position of that byte in the file.
    pub offset: u64,
    /// The bytes in the file. The loader appends zeros, which are no code.
    pub bytes: &'a [u8],
    /// The segment can be executed.
    pub executable: bool,
    /// The segment can be written to.
    pub writable: bool,
    /// The loader appends zeros: variables of the program, or its code to be.
    pub has_zeros: bool,
}

/// A dynamically linked program or library of x86-64.
#[derive(Debug, Clone, Default)]
pub struct Object<'a> {
    /// `PT_INTERP`, without its NUL.
    pub interpreter: Option<&'a [u8]>,
    /// `PT_LOAD`.
    pub segments: Vec<Segment<'a>>,
    /// The entry point.
    pub entry: u64,
    /// `DT_NEEDED`, in order.
    pub needed: Vec<&'a [u8]>,
    /// `DT_SONAME`.
    pub soname: Option<&'a [u8]>,
    /// `DT_RPATH` or `DT_RUNPATH`: the loader looks in further directories. `DF_1_NODEFLIB`: it
    /// leaves out the usual ones.
    pub has_run_path: bool,
    /// A running process can load it: it is linked as a library, and does not forbid it.
    pub can_be_loaded: bool,
    /// `DT_AUDIT`, `DT_DEPAUDIT`, `DT_FILTER` or `DT_AUXILIARY`: the loader loads further files.
    pub has_filter: bool,
    /// `DT_PREINIT_ARRAY`, or a function whose address a function chooses: code runs before any
    /// constructor.
    pub has_early_code: bool,
    /// Memory is writable and executable at once: a segment, the stack, or code that relocations
    /// change.
    pub has_writable_code: bool,
    /// The names that other libraries must define.
    pub imports: Vec<&'a [u8]>,
    /// The names that it defines, with their addresses.
    pub exports: Vec<(&'a [u8], u64)>,
    /// The addresses at which functions begin, in order, from `PT_GNU_EH_FRAME`.
    pub functions: Vec<u64>,
    /// For each of them, the address of its description in `.eh_frame`.
    descriptions: Vec<u64>,
}

mod tag {
    pub const NEEDED: u64 = 1;
    pub const PLTRELSZ: u64 = 2;
    pub const STRTAB: u64 = 5;
    pub const SYMTAB: u64 = 6;
    pub const RELA: u64 = 7;
    pub const RELASZ: u64 = 8;
    pub const STRSZ: u64 = 10;
    pub const SONAME: u64 = 14;
    pub const RPATH: u64 = 15;
    pub const JMPREL: u64 = 23;
    pub const RUNPATH: u64 = 29;
    pub const TEXTREL: u64 = 22;
    pub const FLAGS: u64 = 30;
    pub const PREINIT_ARRAY: u64 = 32;
    pub const GNU_HASH: u64 = 0x6fff_fef5;
    pub const DEPAUDIT: u64 = 0x6fff_fefb;
    pub const AUDIT: u64 = 0x6fff_fefc;
    pub const FLAGS_1: u64 = 0x6fff_fffb;
    pub const AUXILIARY: u64 = 0x7fff_fffd;
    pub const FILTER: u64 = 0x7fff_ffff;
}

const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const PT_INTERP: u64 = 3;
const PT_GNU_EH_FRAME: u64 = 0x6474_e550;
const PT_GNU_STACK: u64 = 0x6474_e551;
/// Bits of a segment's flags.
const EXECUTABLE: u64 = 1;
const WRITABLE: u64 = 2;
/// `DF_TEXTREL`
const CHANGES_CODE: u64 = 4;
/// `DF_1_NODEFLIB`
const NO_USUAL_DIRECTORIES: u64 = 0x800;
/// `DF_1_NOOPEN` and `DF_1_PIE`
const NOT_LOADED: u64 = 0x40 | 0x800_0000;
/// `ET_DYN`
const LIBRARY: u64 = 3;
/// `R_X86_64_IRELATIVE`
const IRELATIVE: u64 = 37;
/// `STT_GNU_IFUNC`
const IFUNC: u8 = 10;

/// True for a little-endian 64-bit ELF file of x86-64.
pub(crate) fn is_wide(file: &[u8]) -> bool {
    file.starts_with(b"\x7fELF\x02\x01") && number(file, 18, 2) == Some(62)
}

pub(crate) fn number(bytes: &[u8], at: u64, size: usize) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let field = bytes.get(at..at.checked_add(size)?)?;
    Some(
        field
            .iter()
            .rev()
            .fold(0, |sum, &b| sum << 8 | u64::from(b)),
    )
}

pub(crate) fn slice(bytes: &[u8], at: u64, size: u64) -> Option<&[u8]> {
    let at = usize::try_from(at).ok()?;
    bytes.get(at..at.checked_add(usize::try_from(size).ok()?)?)
}

/// The entries of the dynamic section that are used.
#[derive(Default)]
struct Dynamic {
    strings: Option<u64>,
    strings_size: u64,
    symbols: Option<u64>,
    hash: Option<u64>,
    needed: Vec<u64>,
    soname: Option<u64>,
    relocations: Vec<(u64, u64)>,
}

impl<'a> Object<'a> {
    /// Reads a file.
    ///
    /// # Errors
    /// The file is no 64-bit ELF file of x86-64, or a part of it lies outside of it.
    pub fn parse(file: &'a [u8]) -> Result<Object<'a>, Damaged> {
        if !is_wide(file) {
            return Err(Damaged("header"));
        }
        let head = |at, size| number(file, at, size).ok_or(Damaged("header"));
        let (table, size, count) = (head(32, 8)?, head(54, 2)?, head(56, 2)?);
        let mut object = Object {
            entry: head(24, 8)?,
            // Without a statement about the stack, the kernel and the loader make it executable.
            has_writable_code: true,
            can_be_loaded: head(16, 2)? == LIBRARY,
            ..Object::default()
        };
        let mut writable_segment = false;
        let (mut dynamic, mut frames) = (None, None);
        for n in 0..count {
            let at = table.checked_add(n * size).ok_or(Damaged("header"))?;
            let field = |from: u64, size| {
                number(file, at.saturating_add(from), size).ok_or(Damaged("header"))
            };
            let (kind, flags) = (field(0, 4)?, field(4, 4)?);
            writable_segment |= kind == PT_LOAD && flags & 3 == EXECUTABLE | WRITABLE;
            if kind == PT_GNU_STACK {
                object.has_writable_code = flags & EXECUTABLE != 0;
            }
            let (offset, address, length) = (field(8, 8)?, field(16, 8)?, field(32, 8)?);
            if !matches!(kind, PT_LOAD | PT_DYNAMIC | PT_INTERP | PT_GNU_EH_FRAME) {
                continue;
            }
            let bytes = slice(file, offset, length).ok_or(Damaged("table of segments"))?;
            match kind {
                PT_LOAD => object.segments.push(Segment {
                    address,
                    offset,
                    bytes,
                    executable: flags & EXECUTABLE != 0,
                    writable: flags & WRITABLE != 0,
                    has_zeros: field(40, 8)? != length,
                }),
                PT_DYNAMIC => dynamic = Some(bytes),
                PT_INTERP => object.interpreter = Some(bytes.strip_suffix(b"\0").unwrap_or(bytes)),
                _ => frames = Some((address, bytes)),
            }
        }
        object.has_writable_code |= writable_segment;
        if let Some(bytes) = dynamic {
            object.read_dynamic(bytes)?;
        }
        if let Some((address, bytes)) = frames {
            (object.functions, object.descriptions) = functions(address, bytes);
        }
        Ok(object)
    }

    /// The bytes that the loader maps at an address.
    pub(crate) fn at(&self, address: u64, size: u64) -> Option<&'a [u8]> {
        self.segments
            .iter()
            .find_map(|segment| slice(segment.bytes, address.checked_sub(segment.address)?, size))
    }

    fn word(&self, address: u64, size: usize) -> Option<u64> {
        number(self.at(address, size as u64)?, 0, size)
    }

    fn read_dynamic(&mut self, bytes: &[u8]) -> Result<(), Damaged> {
        let mut found = Dynamic::default();
        let (mut rela, mut plt) = ((0, 0), (0, 0));
        for entry in bytes.chunks_exact(16) {
            let (Some(tag), Some(value)) = (number(entry, 0, 8), number(entry, 8, 8)) else {
                break;
            };
            match tag {
                0 => break,
                tag::NEEDED => found.needed.push(value),
                tag::SONAME => found.soname = Some(value),
                tag::STRTAB => found.strings = Some(value),
                tag::STRSZ => found.strings_size = value,
                tag::SYMTAB => found.symbols = Some(value),
                tag::GNU_HASH => found.hash = Some(value),
                tag::RELA => rela.0 = value,
                tag::RELASZ => rela.1 = value,
                tag::JMPREL => plt.0 = value,
                tag::PLTRELSZ => plt.1 = value,
                tag::RPATH | tag::RUNPATH => self.has_run_path = true,
                tag::FLAGS_1 => {
                    self.has_run_path |= value & NO_USUAL_DIRECTORIES != 0;
                    self.can_be_loaded &= value & NOT_LOADED == 0;
                }
                tag::AUDIT | tag::DEPAUDIT | tag::FILTER | tag::AUXILIARY => self.has_filter = true,
                tag::PREINIT_ARRAY => self.has_early_code = true,
                tag::TEXTREL => self.has_writable_code = true,
                tag::FLAGS => self.has_writable_code |= value & CHANGES_CODE != 0,
                _ => {}
            }
        }
        found.relocations = vec![rela, plt];
        self.read_names(&found)
    }

    fn read_names(&mut self, dynamic: &Dynamic) -> Result<(), Damaged> {
        const STRINGS: Damaged = Damaged("table of strings");
        let strings = match dynamic.strings {
            Some(address) => self.at(address, dynamic.strings_size).ok_or(STRINGS)?,
            None => &[],
        };
        let name = |at: u64| -> Result<&'a [u8], Damaged> {
            let from = usize::try_from(at).ok().and_then(|at| strings.get(at..));
            let text = from.ok_or(STRINGS)?;
            let end = text.iter().position(|&b| b == 0).ok_or(STRINGS)?;
            Ok(&text[..end])
        };
        self.needed = dynamic
            .needed
            .iter()
            .map(|&at| name(at))
            .collect::<Result<_, _>>()?;
        self.soname = dynamic.soname.map(name).transpose()?;
        let mut highest = 0;
        for &(address, size) in &dynamic.relocations {
            let entries = self.at(address, size);
            let entries = match size {
                0 => &[],
                _ => entries.ok_or(Damaged("table of relocations"))?,
            };
            for entry in entries.chunks_exact(24) {
                let info = number(entry, 8, 8).unwrap_or_default();
                self.has_early_code |= info & 0xffff_ffff == IRELATIVE;
                highest = highest.max(info >> 32);
            }
        }
        let Some(symbols) = dynamic.symbols else {
            return Ok(());
        };
        // Relocations refer to every symbol that this file needs. The hash table has the others.
        let last = highest.max(self.last_hashed(dynamic.hash).unwrap_or_default());
        if last > MOST_ENTRIES {
            return Err(Damaged("table of symbols"));
        }
        let table = self
            .at(symbols, (last + 1) * 24)
            .ok_or(Damaged("table of symbols"))?;
        for symbol in table.chunks_exact(24).skip(1) {
            let (at, kind) = (number(symbol, 0, 4).unwrap_or_default(), symbol[4] & 15);
            match number(symbol, 6, 2) {
                Some(0) => self.imports.push(name(at)?),
                _ => {
                    self.has_early_code |= kind == IFUNC;
                    let address = number(symbol, 8, 8).unwrap_or_default();
                    self.exports.push((name(at)?, address));
                }
            }
        }
        Ok(())
    }

    /// The highest number of a symbol in the table `DT_GNU_HASH`.
    fn last_hashed(&self, hash: Option<u64>) -> Option<u64> {
        let at = hash?;
        let (buckets, first, bloom) = (
            self.word(at, 4)?,
            self.word(at.checked_add(4)?, 4)?,
            self.word(at.checked_add(8)?, 4)?,
        );
        let heads = at.checked_add(16)?.checked_add(bloom.checked_mul(8)?)?;
        let table = self.at(heads, buckets.checked_mul(4)?)?;
        let last = table
            .chunks_exact(4)
            .filter_map(|b| number(b, 0, 4))
            .max()?;
        let chains = heads.checked_add(buckets.checked_mul(4)?)?;
        if last < first {
            return first.checked_sub(1);
        }
        let ends = |symbol: u64| {
            let entry = chains.checked_add((symbol - first).checked_mul(4)?)?;
            Some(self.word(entry, 4)? & 1 != 0)
        };
        for symbol in last..last.saturating_add(MOST_ENTRIES) {
            if ends(symbol)? {
                return Some(symbol);
            }
        }
        None
    }

    /// The number of the function that contains an address, among the starts of functions.
    pub fn function_number(&self, address: u64) -> Option<usize> {
        let after = self.functions.partition_point(|&start| start <= address);
        after.checked_sub(1)
    }

    /// The start of a function and its bytes, as its description for unwinding says. `None`: the
    /// description has another encoding than that of all compilers.
    pub fn function(&self, number: usize) -> Option<(u64, &'a [u8])> {
        let start = *self.functions.get(number)?;
        // Its length, a distance, then the start relative to itself, and the length of the code.
        let place = self.descriptions.get(number)?.checked_add(8)?;
        let relative = (self.word(place, 4)? as u32).cast_signed();
        let length = self.word(place.checked_add(4)?, 4)?;
        let is_usual = place.checked_add_signed(i64::from(relative)) == Some(start);
        let code = self.at(start, length).filter(|_| is_usual)?;
        Some((start, code))
    }

    /// The bytes from the start of the function that contains an address to the end of its segment,
    /// and the start's address.
    pub(crate) fn function_around(&self, address: u64) -> Option<(u64, &'a [u8])> {
        let start = *self.functions.get(self.function_number(address)?)?;
        let segment = self.segments.iter().find(|segment| {
            start >= segment.address && start - segment.address < segment.bytes.len() as u64
        })?;
        let from = usize::try_from(start - segment.address).ok()?;
        Some((start, &segment.bytes[from..]))
    }
}

/// The starts of the functions in the search table of `.eh_frame_hdr`, and the addresses of their
/// descriptions. Empty for another encoding than that of all linkers.
fn functions(address: u64, bytes: &[u8]) -> (Vec<u64>, Vec<u64>) {
    // Version 1; a relative pointer; a count of 4 bytes; signed 4 bytes relative to the header.
    if !bytes.starts_with(&[1, 0x1b, 3, 0x3b]) {
        return (Vec::new(), Vec::new());
    }
    let count = number(bytes, 8, 4).unwrap_or_default().min(MOST_ENTRIES);
    let table = bytes.get(12..).unwrap_or_default().chunks_exact(8);
    let pairs = table.take(count as usize).filter_map(|entry| {
        let place = |at: u64| {
            let offset = number(entry, at, 4)? as u32;
            address.checked_add_signed(i64::from(offset.cast_signed()))
        };
        Some((place(0)?, place(4)?))
    });
    let mut pairs: Vec<(u64, u64)> = pairs.collect();
    pairs.sort_unstable();
    pairs.into_iter().unzip()
}
