//! The parameters of functions, their types, and where their values are while a hook runs.
//!
//! A sled is at the first instruction of a function: there the calling convention of x86-64 says
//! where the parameters are. Hooks of gcc run later: there DWARF says it. A place relative to the
//! frame becomes one relative to a register here, by the file's unwind table. So the recorder needs
//! neither.
//!
//! Invariant: a parameter without a place that is certain has none.

use std::collections::{BTreeMap, BTreeSet};

use backstory_abi::Place;
use gimli::{AttributeValue, CfaRule, Operation, UnwindSection};
use object::{Object, ObjectSection};

use crate::dwarf::{Entry, Slice, endian, for_each_unit};
use crate::shapes::{PointerTarget, Shape, TypeReader};

/// A parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub name: String,
    pub shape: Shape,
    /// The data that it points to.
    pub target: Option<PointerTarget>,
    /// Where the value is. Offsets are in the file's code.
    pub places: Vec<Place>,
}

/// The parameters of a function, and the shape of its result.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FunctionSignature {
    pub parameters: Vec<Parameter>,
    pub result: Option<Shape>,
    /// The data that the result points to.
    pub result_target: Option<PointerTarget>,
}

/// The most parameters of a function, and places of a parameter.
const PARAMETERS: usize = 16;
const PLACES: usize = 16;
/// The least bytes of a call: a shorter part of the code has no call of a hook.
const CALL: u64 = 5;
/// A hook runs at the beginning of a function.
const BEGINNING: u64 = 1024;

/// DWARF's numbers of registers.
const STACK_POINTER: u8 = 7;
const FIRST_VECTOR: u8 = 17;
/// The registers of integers and pointers: rdi, rsi, rdx, rcx, r8, r9.
const INTEGERS: [u8; 6] = [5, 4, 1, 2, 8, 9];
const VECTORS: u8 = 8;

/// A part of the code in which the frame is at an offset from a register.
#[derive(Debug, Clone, Copy)]
struct FrameRow {
    from: u64,
    to: u64,
    base: u8,
    offset: i64,
}

/// The signatures of functions by address. `low` is the lowest address of the code.
pub(crate) fn signatures(
    file: &object::File<'_>,
    low: u64,
    wanted: &BTreeSet<u64>,
) -> BTreeMap<u64, FunctionSignature> {
    let frames = frame_rows(file, wanted);
    let mut all = BTreeMap::new();
    for_each_unit(file, |dwarf, unit| {
        let reader = SignatureReader {
            types: TypeReader { dwarf, unit },
            low,
            frames: &frames,
        };
        // The functions before an error count.
        let _ = reader.read(wanted, &mut all);
    });
    all
}

struct SignatureReader<'a, 'b> {
    types: TypeReader<'a, 'b>,
    low: u64,
    frames: &'b BTreeMap<u64, Vec<FrameRow>>,
}

/// The function whose entries are being read.
struct Present<'a> {
    depth: isize,
    address: u64,
    entry: Entry<'a>,
    signature: FunctionSignature,
}

impl<'a> SignatureReader<'a, '_> {
    fn read(
        &self,
        wanted: &BTreeSet<u64>,
        all: &mut BTreeMap<u64, FunctionSignature>,
    ) -> Result<(), gimli::Error> {
        let mut present: Option<Present<'a>> = None;
        let mut entries = self.types.unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            if let Some(done) = present.take_if(|one| entry.depth() <= one.depth) {
                all.insert(done.address, at_entry(done.signature));
            }
            match entry.tag() {
                gimli::DW_TAG_subprogram => {
                    let address = self.address(entry, wanted);
                    present = address.map(|address| Present {
                        depth: entry.depth(),
                        address,
                        entry: entry.clone(),
                        signature: FunctionSignature {
                            parameters: Vec::new(),
                            result: self.types.shape(entry),
                            result_target: self.types.target(entry),
                        },
                    });
                }
                gimli::DW_TAG_formal_parameter => {
                    if let Some(one) = &mut present
                        && entry.depth() == one.depth + 1
                        && one.signature.parameters.len() < PARAMETERS
                    {
                        let parameter = self.parameter(one.address, &one.entry, entry);
                        one.signature.parameters.push(parameter);
                    }
                }
                _ => {}
            }
        }
        if let Some(done) = present {
            all.insert(done.address, at_entry(done.signature));
        }
        Ok(())
    }

    /// The address of a function that is wanted. A function that the compiler has split has
    /// several parts, one of which begins there.
    fn address(&self, entry: &Entry<'a>, wanted: &BTreeSet<u64>) -> Option<u64> {
        let mut parts = self.types.dwarf.die_ranges(self.types.unit, entry).ok()?;
        while let Ok(Some(part)) = parts.next() {
            if wanted.contains(&part.begin) {
                return Some(part.begin);
            }
        }
        None
    }

    fn parameter(&self, address: u64, function: &Entry<'a>, entry: &Entry<'a>) -> Parameter {
        let shape = self.types.shape(entry).unwrap_or(Shape::Unknown);
        let mut places = Vec::new();
        if shape.bytes() > 0 {
            self.places(address, function, entry, &mut places);
        }
        places.truncate(PLACES - 1);
        Parameter {
            name: self.types.name(entry).unwrap_or_default(),
            shape,
            target: self.types.target(entry),
            places,
        }
    }

    fn places(
        &self,
        address: u64,
        function: &Entry<'a>,
        entry: &Entry<'a>,
        places: &mut Vec<Place>,
    ) -> Option<()> {
        let (dwarf, unit) = (self.types.dwarf, self.types.unit);
        let end = address.saturating_add(BEGINNING);
        match entry.attr_value(gimli::DW_AT_location)? {
            AttributeValue::Exprloc(expression) => {
                self.add(address, (address, end), function, expression, places);
            }
            value => {
                let mut locations = dwarf.attr_locations(unit, value).ok()??;
                while let Ok(Some(one)) = locations.next() {
                    let range = (one.range.begin.max(address), one.range.end.min(end));
                    self.add(address, range, function, one.data, places);
                }
            }
        }
        Some(())
    }

    /// Adds the places that an expression means in a part of the code.
    fn add(
        &self,
        address: u64,
        range: (u64, u64),
        function: &Entry<'a>,
        expression: gimli::Expression<Slice<'a>>,
        places: &mut Vec<Place>,
    ) {
        let one = self.operation(expression);
        let plain = |base: u16, memory: bool, offset: i64| self.place(range, base, memory, offset);
        match one {
            Some(Operation::Register { register }) => places.extend(plain(register.0, false, 0)),
            Some(Operation::RegisterOffset {
                register, offset, ..
            }) => places.extend(plain(register.0, true, offset)),
            Some(Operation::FrameOffset { offset }) => {
                let base = match function.attr_value(gimli::DW_AT_frame_base) {
                    Some(AttributeValue::Exprloc(base)) => self.operation(base),
                    _ => None,
                };
                match base {
                    Some(Operation::Register { register }) => {
                        places.extend(plain(register.0, true, offset));
                    }
                    Some(Operation::CallFrameCFA) => {
                        let rows = self.frames.get(&address).into_iter().flatten();
                        places.extend(rows.filter_map(|row| {
                            let part = (range.0.max(row.from), range.1.min(row.to));
                            let offset = row.offset.checked_add(offset)?;
                            self.place(part, row.base.into(), true, offset)
                        }));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// The operation of an expression that has only one.
    fn operation(&self, expression: gimli::Expression<Slice<'a>>) -> Option<Operation<Slice<'a>>> {
        let mut operations = expression.operations(self.types.unit.encoding());
        let one = operations.next().ok()??;
        operations.next().ok()?.is_none().then_some(one)
    }

    fn place(&self, range: (u64, u64), base: u16, memory: bool, offset: i64) -> Option<Place> {
        let base = u8::try_from(base).ok()?;
        let is_general = base < 16;
        let is_vector = (FIRST_VECTOR..FIRST_VECTOR + 16).contains(&base);
        if range.1 < range.0.saturating_add(CALL) || !(is_general || is_vector && !memory) {
            return None;
        }
        Some(Place {
            from: u32::try_from(range.0.checked_sub(self.low)?).ok()?,
            to: u32::try_from(range.1.checked_sub(self.low)?).ok()?,
            base,
            memory: memory.into(),
            pad: 0,
            offset: i32::try_from(offset).ok()?,
        })
    }
}

/// Adds the places of parameters at the first instruction of the function, by the System V ABI. A
/// parameter of an unknown type has an unknown number of registers: none is certain after it.
fn at_entry(mut signature: FunctionSignature) -> FunctionSignature {
    if signature.result == Some(Shape::Unknown) {
        return signature;
    }
    let (mut integers, mut vectors, mut stack) = (INTEGERS.iter(), 0, 0);
    for parameter in &mut signature.parameters {
        let place = |base, memory, offset| Place {
            base,
            memory,
            offset,
            ..Place::default()
        };
        let in_register = match parameter.shape {
            Shape::Unknown | Shape::Structure(..) => break,
            Shape::Float(_) if vectors < VECTORS => {
                vectors += 1;
                Some(FIRST_VECTOR + vectors - 1)
            }
            Shape::Float(_) => None,
            _ => integers.next().copied(),
        };
        let at = match in_register {
            Some(register) => place(register, 0, 0),
            None => {
                stack += 8;
                place(STACK_POINTER, 1, stack)
            }
        };
        parameter.places.insert(0, at);
    }
    signature
}

/// Where the frames of functions are, by the address of the function.
fn frame_rows(file: &object::File<'_>, wanted: &BTreeSet<u64>) -> BTreeMap<u64, Vec<FrameRow>> {
    let mut all = BTreeMap::new();
    let Some(section) = file.section_by_name(".eh_frame") else {
        return all;
    };
    let Ok(bytes) = section.uncompressed_data() else {
        return all;
    };
    let table = gimli::EhFrame::new(&bytes, endian(file));
    let text = file.section_by_name(".text");
    let text = text.map_or(0, |text| text.address());
    let bases = gimli::BaseAddresses::default()
        .set_eh_frame(section.address())
        .set_text(text);
    let mut entries = table.entries(&bases);
    let mut context = gimli::UnwindContext::new();
    while let Ok(Some(entry)) = entries.next() {
        let gimli::CieOrFde::Fde(partial) = entry else {
            continue;
        };
        let Ok(entry) = partial.parse(gimli::EhFrame::cie_from_offset) else {
            continue;
        };
        let address = entry.initial_address();
        if !wanted.contains(&address) {
            continue;
        }
        let Ok(mut rows) = entry.rows(&table, &bases, &mut context) else {
            continue;
        };
        let found: &mut Vec<FrameRow> = all.entry(address).or_default();
        while let Ok(Some(row)) = rows.next_row() {
            if let CfaRule::RegisterAndOffset { register, offset } = *row.cfa()
                && let Ok(base) = u8::try_from(register.0)
            {
                let (from, to) = (row.start_address(), row.end_address());
                found.push(FrameRow {
                    from,
                    to,
                    base,
                    offset,
                });
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// A parameter: its name, its shape, the bytes of its target, and the registers that hold it
    /// where the function begins.
    type Found = (String, Shape, i32, Vec<u8>);

    /// The parameters of `write_it`.
    fn parameters(options: &[&str]) -> Option<Vec<Found>> {
        let source = "struct P { int x; }; extern \"C\" int puts(const char *);\n\
            extern \"C\" __attribute__((noinline)) int write_it(const char *s, double d, P *p) {\n\
            try { puts(s); } catch (...) { puts(\"failed\"); return 1; } return d > p->x; }\n\
            int main() { P p{1}; return write_it(\"a\", 2, &p); }\n";
        let directory = tempfile::tempdir().unwrap();
        let (file, program) = (directory.path().join("a.cc"), directory.path().join("a"));
        std::fs::write(&file, source).unwrap();
        let mut compiler = Command::new("c++");
        let built = compiler
            .args(options)
            .args(["-g", "-o"])
            .arg(&program)
            .arg(&file)
            .status();
        if !built.is_ok_and(|status| status.success()) {
            return None;
        }
        let bytes = std::fs::read(program).unwrap();
        let patterns = crate::FunctionPatterns::parse(&["write_it".to_owned()]).unwrap();
        let code = crate::CodeFile::read(&bytes, "a", &patterns.with_arguments()).unwrap();
        let signature = code.signatures.into_values().next()?;
        assert_eq!(signature.result, Some(Shape::Signed(4)));
        let all = signature.parameters.into_iter().map(|one| {
            let at_entry = one.places.iter().filter(|place| place.to == 0);
            let registers = at_entry.map(|place| place.base).collect();
            let target = one.target.map_or(0, PointerTarget::signed_bytes);
            (one.name, one.shape, target, registers)
        });
        Some(all.collect())
    }

    #[test]
    fn parameters_have_their_types_and_registers_although_a_function_is_split() {
        for options in [&["-O0"][..], &["-O2"], &["-O2", "-gdwarf-4"]] {
            let Some(found) = parameters(options) else {
                return backstory_testkit::need::skipped("parameters", "needs a C++ compiler");
            };
            let member = crate::shapes::Member {
                name: "x".to_owned(),
                offset: 0,
                shape: Shape::Signed(4),
            };
            let structure = Box::new(Shape::Structure(4, vec![member]));
            let expected = [
                ("s".to_owned(), Shape::Text, -1, vec![INTEGERS[0]]),
                ("d".to_owned(), Shape::Float(8), 0, vec![FIRST_VECTOR]),
                (
                    "p".to_owned(),
                    Shape::Pointer(Some(structure)),
                    4,
                    vec![INTEGERS[1]],
                ),
            ];
            assert_eq!(found, expected, "{options:?}");
        }
    }
}
