//! The names, source files and lines of functions, as DWARF has them.
//!
//! Damaged debugging information gives fewer of them.

use std::collections::{BTreeMap, BTreeSet};

use gimli::AttributeValue;

use crate::dwarf::{Entry, Slice, for_each_unit};

/// Where a function is in the source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SourcePlace {
    /// The name with its namespaces and classes.
    pub name: String,
    /// As `plot.c:40`.
    pub location: String,
}

/// The most references from one entry to the next.
const REFERENCES: usize = 8;

/// The functions of a file by address.
/// `symbols` are addresses of functions: their lines are found without an entry, too.
pub(crate) fn source_places(
    file: &object::File<'_>,
    symbols: &BTreeSet<u64>,
) -> BTreeMap<u64, SourcePlace> {
    let mut all = BTreeMap::new();
    for_each_unit(file, |dwarf, unit| {
        let reader = UnitReader { dwarf, unit };
        // The functions before an error count.
        let _ = reader.functions(&mut all);
        let _ = reader.lines(symbols, &mut all);
    });
    all
}

struct UnitReader<'a, 'b> {
    dwarf: &'b gimli::Dwarf<Slice<'a>>,
    unit: &'b gimli::Unit<Slice<'a>>,
}

/// The properties of a function in its entry, or in those that the entry refers to.
#[derive(Default)]
struct Declared {
    name: Option<String>,
    file: Option<u64>,
    line: Option<u64>,
    /// The names of the namespaces and classes around it.
    scope: Option<String>,
}

impl<'a> UnitReader<'a, '_> {
    fn functions(&self, all: &mut BTreeMap<u64, SourcePlace>) -> Result<(), gimli::Error> {
        let mut scopes: BTreeMap<usize, String> = BTreeMap::new();
        let mut around: Vec<(isize, String)> = Vec::new();
        let mut defined = Vec::new();
        let mut entries = self.unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            let depth = entry.depth();
            while around.last().is_some_and(|(at, _)| *at >= depth) {
                around.pop();
            }
            let scope = around.last().map(|(_, scope)| scope.as_str());
            match entry.tag() {
                gimli::DW_TAG_namespace
                | gimli::DW_TAG_class_type
                | gimli::DW_TAG_structure_type
                | gimli::DW_TAG_union_type => {
                    let own = self.text(entry, gimli::DW_AT_name);
                    let own = own.unwrap_or_else(|| "(anonymous)".to_owned());
                    let scope = scope.map_or(own.clone(), |scope| format!("{scope}::{own}"));
                    around.push((depth, scope));
                }
                gimli::DW_TAG_subprogram => {
                    if let Some(scope) = scope {
                        scopes.insert(entry.offset().0, scope.to_owned());
                    }
                    if let Some(address) = self.low_pc(entry) {
                        defined.push((address, entry.clone()));
                    }
                }
                _ => {}
            }
        }
        for (address, entry) in defined {
            let mut declared = Declared::default();
            self.declared(&entry, &scopes, &mut declared, REFERENCES);
            all.insert(address, self.place(declared));
        }
        Ok(())
    }

    /// The lines of functions of which the unit has line numbers alone.
    fn lines(
        &self,
        symbols: &BTreeSet<u64>,
        all: &mut BTreeMap<u64, SourcePlace>,
    ) -> Result<(), gimli::Error> {
        let Some(program) = self.unit.line_program.clone() else {
            return Ok(());
        };
        let mut rows = program.rows();
        while let Some((_, row)) = rows.next_row()? {
            let address = row.address();
            if row.end_sequence() || !symbols.contains(&address) || all.contains_key(&address) {
                continue;
            }
            let line = row.line().map(std::num::NonZero::get);
            if let (Some(file), Some(line)) = (self.file(row.file_index()), line) {
                let (name, location) = (String::new(), format!("{file}:{line}"));
                all.insert(address, SourcePlace { name, location });
            }
        }
        Ok(())
    }

    fn low_pc(&self, entry: &Entry<'a>) -> Option<u64> {
        let value = entry.attr_value(gimli::DW_AT_low_pc)?;
        let address = self.dwarf.attr_address(self.unit, value).ok()??;
        (address != 0).then_some(address)
    }

    fn text(&self, entry: &Entry<'a>, name: gimli::DwAt) -> Option<String> {
        let value = entry.attr_value(name)?;
        let text = self.dwarf.attr_string(self.unit, value).ok()?;
        Some(text.to_string_lossy().into_owned())
    }

    /// Collects what the entry and those that it refers to say. The first one counts.
    fn declared(
        &self,
        entry: &Entry<'a>,
        scopes: &BTreeMap<usize, String>,
        into: &mut Declared,
        references: usize,
    ) {
        let number = |name| entry.attr_value(name)?.udata_value();
        let scope = scopes.get(&entry.offset().0);
        into.scope = into.scope.take().or_else(|| scope.cloned());
        into.name = into
            .name
            .take()
            .or_else(|| self.text(entry, gimli::DW_AT_name));
        // A definition has no file of its own if its declaration is in the same one.
        into.file = into.file.or_else(|| file_index(entry));
        into.line = into.line.or_else(|| number(gimli::DW_AT_decl_line));
        for reference in [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification] {
            let Some(AttributeValue::UnitRef(offset)) = entry.attr_value(reference) else {
                continue;
            };
            if let Ok(other) = self.unit.entry(offset)
                && references > 0
            {
                self.declared(&other, scopes, into, references - 1);
            }
        }
    }

    fn place(&self, declared: Declared) -> SourcePlace {
        let name = declared.name.unwrap_or_default();
        let name = match declared.scope {
            Some(scope) if !name.is_empty() => format!("{scope}::{name}"),
            _ => name,
        };
        let file = declared.file.and_then(|index| self.file(index));
        let location = match (file, declared.line) {
            (Some(file), Some(line)) => format!("{file}:{line}"),
            _ => String::new(),
        };
        SourcePlace { name, location }
    }

    /// The last part of a source file's path.
    fn file(&self, index: u64) -> Option<String> {
        let program = self.unit.line_program.as_ref()?;
        let file = program.header().file(index)?;
        let path = self.dwarf.attr_string(self.unit, file.path_name()).ok()?;
        let path = path.to_string_lossy();
        path.rsplit('/').next().map(str::to_owned)
    }
}

fn file_index(entry: &Entry<'_>) -> Option<u64> {
    match entry.attr_value(gimli::DW_AT_decl_file)? {
        AttributeValue::FileIndex(index) => Some(index),
        other => other.udata_value(),
    }
}
