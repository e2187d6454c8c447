//! ELF files: build id, needed libraries, symbols, and the compilers that DWARF names.

use std::borrow::Cow;
use std::collections::BTreeSet;

use gimli::{AttributeValue, DwarfSections, EndianSlice, RunTimeEndian};
use object::{
    Architecture, Object, ObjectKind, ObjectSection, ObjectSymbol, RelocationKind,
    RelocationTarget, SymbolSection,
};
use serde_json::{Value, json};

use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent};

pub struct ElfFile;

/// The most units of DWARF whose producer is read.
const UNITS: usize = 20_000;

impl Inspector for ElfFile {
    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        let file = object::File::parse(content.bytes).map_err(UnreadableContent::of)?;
        let mut facts = FileFacts::default();
        let kind = match file.kind() {
            ObjectKind::Relocatable => "object file",
            ObjectKind::Executable => "executable",
            ObjectKind::Dynamic => "shared object",
            ObjectKind::Core => "core dump",
            _ => "unknown",
        };
        facts.value("type", kind);
        let machine = match file.architecture() {
            Architecture::X86_64 => "x86-64".to_owned(),
            other => format!("{other:?}").to_lowercase(),
        };
        facts.value("machine", machine);
        if let Ok(Some(id)) = file.build_id() {
            let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
            facts.value("build_id", id);
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if let Ok(libraries) = file.import_libraries() {
            let names = libraries.filter_map(|library| Some(text(library.ok()?.name())));
            let names: BTreeSet<String> = names.collect();
            let names = names.into_iter().map(|name| (name, Value::Null));
            facts.parts(("needed library", "needed libraries"), names);
        }
        let producers = producers(&file);
        facts.parts(
            ("producer", "producers"),
            producers.into_iter().map(|name| (name, Value::Null)),
        );
        facts.parts(("symbol", "symbols"), symbols(&file));
        let sections = file.sections().filter_map(|section| {
            let name = section.name().ok()?.to_owned();
            (!name.is_empty()).then(|| (name, json!({"size": section.size()})))
        });
        facts.parts(("section", "sections"), sections.collect::<Vec<_>>());
        Ok(facts)
    }
}

/// Global symbols of the file: defined here or not, and their sizes.
fn symbols(file: &object::File<'_>) -> Vec<(String, Value)> {
    let mut all = std::collections::BTreeMap::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let Ok(name) = symbol.name() else { continue };
        if name.is_empty() || !symbol.is_global() {
            continue;
        }
        let is_defined = symbol.section() != SymbolSection::Undefined;
        let told = match is_defined {
            true => json!({"defined": true, "size": symbol.size()}),
            false => json!({"defined": false}),
        };
        all.insert(name.to_owned(), told);
    }
    all.into_iter().collect()
}

/// The data of a section. In an object file, the linker would put addresses and offsets into it.
fn relocated<'f>(
    file: &object::File<'f>,
    section: &object::Section<'f, '_>,
) -> Option<Cow<'f, [u8]>> {
    let data = section.uncompressed_data().ok()?;
    if file.kind() != ObjectKind::Relocatable {
        return Some(data);
    }
    let mut data = data.into_owned();
    for (offset, relocation) in section.relocations() {
        let width = usize::from(relocation.size()) / 8;
        let place = usize::try_from(offset).ok();
        let end = place.and_then(|place| place.checked_add(width));
        let place = place.zip(end).and_then(|(at, end)| data.get_mut(at..end));
        let (Some(place), RelocationKind::Absolute) = (place, relocation.kind()) else {
            continue;
        };
        let base = match relocation.target() {
            RelocationTarget::Symbol(index) => file.symbol_by_index(index).ok(),
            _ => None,
        };
        let base = base.map_or(0, |symbol| symbol.address());
        let value = base.wrapping_add_signed(relocation.addend());
        change(place, file.is_little_endian(), |present| {
            match relocation.has_implicit_addend() {
                true => value.wrapping_add(present),
                false => value,
            }
        });
    }
    Some(Cow::Owned(data))
}

/// Changes a number of 4 or 8 bytes. Others stay.
fn change(place: &mut [u8], is_little_endian: bool, change: impl FnOnce(u64) -> u64) {
    let width = place.len();
    if !matches!(width, 4 | 8) {
        return;
    }
    let mut bytes = [0; 8];
    if is_little_endian {
        bytes[..width].copy_from_slice(place);
        bytes = change(u64::from_le_bytes(bytes)).to_le_bytes();
        place.copy_from_slice(&bytes[..width]);
    } else {
        bytes[8 - width..].copy_from_slice(place);
        bytes = change(u64::from_be_bytes(bytes)).to_be_bytes();
        place.copy_from_slice(&bytes[8 - width..]);
    }
}

/// The values of `DW_AT_producer`. Damaged debugging information gives fewer of them.
fn producers(file: &object::File<'_>) -> BTreeSet<String> {
    let endian = match file.is_little_endian() {
        true => RunTimeEndian::Little,
        false => RunTimeEndian::Big,
    };
    let section = |id: gimli::SectionId| -> Result<Cow<'_, [u8]>, gimli::Error> {
        let found = file.section_by_name(id.name());
        let data = found.and_then(|section| relocated(file, &section));
        Ok(data.unwrap_or_default())
    };
    let mut all = BTreeSet::new();
    let Ok(sections) = DwarfSections::load(section) else {
        return all;
    };
    let dwarf = sections.borrow(|section| EndianSlice::new(section, endian));
    let mut units = dwarf.units();
    for _ in 0..UNITS {
        let Ok(Some(header)) = units.next() else {
            break;
        };
        let Ok(unit) = dwarf.unit(header) else {
            continue;
        };
        let mut entries = unit.entries();
        let Ok(Some(root)) = entries.next_dfs() else {
            continue;
        };
        let producer: Option<AttributeValue<_>> = root.attr_value(gimli::DW_AT_producer);
        if let Some(Ok(name)) = producer.map(|value| dwarf.attr_string(&unit, value)) {
            all.insert(name.to_string_lossy().into_owned());
        }
    }
    all
}
