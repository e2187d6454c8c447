//! The debugging information of a file, unit by unit.

use std::borrow::Cow;

use gimli::{DwarfSections, EndianSlice, RunTimeEndian};
use object::{Object, ObjectSection};

/// A part of a section.
pub(crate) type Slice<'a> = EndianSlice<'a, RunTimeEndian>;
/// An entry of a unit.
pub(crate) type Entry<'a> = gimli::DebuggingInformationEntry<Slice<'a>>;

/// The most units of DWARF that are read.
const UNITS: usize = 100_000;

/// The byte order of a file.
pub(crate) fn endian(file: &object::File<'_>) -> RunTimeEndian {
    match file.is_little_endian() {
        true => RunTimeEndian::Little,
        false => RunTimeEndian::Big,
    }
}

/// Calls `read` with each unit. Damaged debugging information has fewer of them.
pub(crate) fn for_each_unit(
    file: &object::File<'_>,
    mut read: impl FnMut(&gimli::Dwarf<Slice<'_>>, &gimli::Unit<Slice<'_>>),
) {
    let section = |id: gimli::SectionId| -> Result<Cow<'_, [u8]>, gimli::Error> {
        let found = file.section_by_name(id.name());
        let data = found.and_then(|section| section.uncompressed_data().ok());
        Ok(data.unwrap_or_default())
    };
    let Ok(sections) = DwarfSections::load(section) else {
        return;
    };
    let dwarf = sections.borrow(|section| EndianSlice::new(section, endian(file)));
    let mut units = dwarf.units();
    for _ in 0..UNITS {
        let Ok(Some(header)) = units.next() else {
            break;
        };
        if let Ok(unit) = dwarf.unit(header) {
            read(&dwarf, &unit);
        }
    }
}
