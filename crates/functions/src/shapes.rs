//! The types of parameters, results and members, as far as their values can be recorded.
//!
//! In: an entry of DWARF with a type. Out: a shape. A type in another unit, and one that is too
//! deep, is [`Shape::Unknown`].

use gimli::{AttributeValue, UnitOffset};

use crate::dwarf::{Entry, Slice};

/// The form of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    /// No value of this type is recorded.
    Unknown,
    /// An integer with a sign, and its bytes.
    Signed(u8),
    /// An integer, a truth value or a character without a sign.
    Unsigned(u8),
    /// A floating-point number of 4 or 8 bytes.
    Float(u8),
    /// A pointer to characters.
    Text,
    /// Another pointer, and the shape of its target.
    Pointer(Option<Box<Shape>>),
    /// A structure behind a pointer: its bytes, and its members.
    Structure(u8, Vec<Member>),
}

/// The data behind a pointer: a buffer, if the function fills it or takes something from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PointerTarget {
    /// The bytes of its type, at least 1.
    pub bytes: u32,
    /// The type says that the function does not change it.
    pub is_constant: bool,
}

/// A member of a structure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub name: String,
    pub offset: u8,
    pub shape: Shape,
}

/// Pointers behind each other whose targets are recorded.
const POINTERS: usize = 2;
/// Types that lead to each other, as that of a `typedef`.
const TYPES: usize = 16;
/// The most members and bytes of a structure that are recorded.
const MEMBERS: usize = 8;
const BYTES: u64 = 128;

/// Reads the types of a unit.
pub(crate) struct TypeReader<'a, 'b> {
    pub dwarf: &'b gimli::Dwarf<Slice<'a>>,
    pub unit: &'b gimli::Unit<Slice<'a>>,
}

impl<'a> TypeReader<'a, '_> {
    /// The shape of an entry's type. `None` if it has none, as the result of a function that
    /// returns nothing.
    pub(crate) fn shape(&self, entry: &Entry<'a>) -> Option<Shape> {
        let found = self.type_of(entry)?;
        Some(self.shape_of(found, POINTERS).unwrap_or(Shape::Unknown))
    }

    /// The target of an entry's type, if that is a pointer to data.
    pub(crate) fn target(&self, entry: &Entry<'a>) -> Option<PointerTarget> {
        let pointer = self.plain(self.type_of(entry)?)?;
        let is_pointer = matches!(
            pointer.tag(),
            gimli::DW_TAG_pointer_type
                | gimli::DW_TAG_reference_type
                | gimli::DW_TAG_rvalue_reference_type
        );
        let mut target = is_pointer.then_some(PointerTarget {
            bytes: 1,
            is_constant: false,
        })?;
        let mut at = self.type_of(&pointer);
        for _ in 0..TYPES {
            // `void` has no entry.
            let Some(entry) = at.and_then(|at| self.unit.entry(at).ok()) else {
                break;
            };
            match entry.tag() {
                gimli::DW_TAG_const_type => target.is_constant = true,
                gimli::DW_TAG_typedef
                | gimli::DW_TAG_volatile_type
                | gimli::DW_TAG_restrict_type
                | gimli::DW_TAG_atomic_type => {}
                gimli::DW_TAG_subroutine_type => return None,
                _ => {
                    let size = entry.attr_value(gimli::DW_AT_byte_size);
                    let size = size.and_then(|size| u32::try_from(size.udata_value()?).ok());
                    target.bytes = size.unwrap_or(1).clamp(1, i32::MAX as u32);
                    break;
                }
            }
            at = self.type_of(&entry);
        }
        Some(target)
    }

    /// The name of an entry, or of the one that it stands for.
    pub(crate) fn name(&self, entry: &Entry<'a>) -> Option<String> {
        let own = entry.attr_value(gimli::DW_AT_name);
        let origin = || {
            let origin = self.origin(entry)?;
            origin.attr_value(gimli::DW_AT_name)
        };
        let text = self
            .dwarf
            .attr_string(self.unit, own.or_else(origin)?)
            .ok()?;
        Some(text.to_string_lossy().into_owned())
    }

    /// The entry that another one is an instance or the definition of.
    pub(crate) fn origin(&self, entry: &Entry<'a>) -> Option<Entry<'a>> {
        let of = |name| match entry.attr_value(name) {
            Some(AttributeValue::UnitRef(offset)) => self.unit.entry(offset).ok(),
            _ => None,
        };
        of(gimli::DW_AT_abstract_origin).or_else(|| of(gimli::DW_AT_specification))
    }

    fn type_of(&self, entry: &Entry<'a>) -> Option<UnitOffset> {
        let mut at = entry.clone();
        for _ in 0..TYPES {
            match at.attr_value(gimli::DW_AT_type) {
                Some(AttributeValue::UnitRef(offset)) => return Some(offset),
                Some(_) => return None,
                None => at = self.origin(&at)?,
            }
        }
        None
    }

    /// The entry of a type without its names and qualifiers.
    fn plain(&self, mut at: UnitOffset) -> Option<Entry<'a>> {
        for _ in 0..TYPES {
            let entry = self.unit.entry(at).ok()?;
            match entry.tag() {
                gimli::DW_TAG_typedef
                | gimli::DW_TAG_const_type
                | gimli::DW_TAG_volatile_type
                | gimli::DW_TAG_restrict_type
                | gimli::DW_TAG_atomic_type => at = self.type_of(&entry)?,
                _ => return Some(entry),
            }
        }
        None
    }

    fn shape_of(&self, at: UnitOffset, pointers: usize) -> Option<Shape> {
        let entry = self.plain(at)?;
        let size = entry.attr_value(gimli::DW_AT_byte_size);
        let size = size.and_then(|size| size.udata_value());
        match entry.tag() {
            gimli::DW_TAG_base_type => self.number(&entry, size?),
            gimli::DW_TAG_enumeration_type => whole(size?).map(Shape::Signed),
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type => Some(self.pointer(&entry, pointers)),
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type if pointers < POINTERS => {
                self.structure(&entry, size?, pointers)
            }
            _ => None,
        }
    }

    fn number(&self, entry: &Entry<'a>, size: u64) -> Option<Shape> {
        let AttributeValue::Encoding(encoding) = entry.attr_value(gimli::DW_AT_encoding)? else {
            return None;
        };
        match encoding {
            gimli::DW_ATE_signed | gimli::DW_ATE_signed_char => whole(size).map(Shape::Signed),
            gimli::DW_ATE_unsigned
            | gimli::DW_ATE_unsigned_char
            | gimli::DW_ATE_boolean
            | gimli::DW_ATE_UTF => whole(size).map(Shape::Unsigned),
            gimli::DW_ATE_float if matches!(size, 4 | 8) => Some(Shape::Float(size as u8)),
            _ => None,
        }
    }

    fn pointer(&self, entry: &Entry<'a>, pointers: usize) -> Shape {
        let Some(target) = self.type_of(entry).filter(|_| pointers > 0) else {
            return Shape::Pointer(None);
        };
        let is_text = self.plain(target).is_some_and(|target| {
            // `unsigned char` and `uint8_t` are bytes, not text.
            target.tag() == gimli::DW_TAG_base_type && self.name(&target).as_deref() == Some("char")
        });
        if is_text {
            return Shape::Text;
        }
        Shape::Pointer(self.shape_of(target, pointers - 1).map(Box::new))
    }

    fn structure(&self, entry: &Entry<'a>, size: u64, pointers: usize) -> Option<Shape> {
        let size = u8::try_from(size.min(BYTES)).ok()?;
        let mut members = Vec::new();
        let mut tree = self.unit.entries_tree(Some(entry.offset())).ok()?;
        let mut children = tree.root().ok()?.children();
        while let Ok(Some(child)) = children.next() {
            let member = child.entry();
            let is_part = member.attr_value(gimli::DW_AT_data_bit_offset).is_some()
                || member.attr_value(gimli::DW_AT_bit_size).is_some();
            if member.tag() != gimli::DW_TAG_member || is_part || members.len() == MEMBERS {
                continue;
            }
            let offset = member.attr_value(gimli::DW_AT_data_member_location);
            let offset = offset.and_then(|offset| offset.udata_value());
            let shape = self
                .type_of(member)
                .and_then(|at| self.shape_of(at, pointers));
            let (Some(offset), Some(shape)) = (offset, shape) else {
                continue;
            };
            // A structure in a structure has no pointer in between.
            let bytes = u64::from(shape.bytes());
            if bytes == 0 || offset.saturating_add(bytes) > u64::from(size) {
                continue;
            }
            members.push(Member {
                name: self.name(member).unwrap_or_default(),
                offset: offset as u8,
                shape,
            });
        }
        (!members.is_empty()).then_some(Shape::Structure(size, members))
    }
}

impl PointerTarget {
    /// The bytes as the recorder has them: negative if the function does not change the target.
    pub(crate) fn signed_bytes(self) -> i32 {
        let bytes = i32::try_from(self.bytes).unwrap_or(i32::MAX);
        if self.is_constant { -bytes } else { bytes }
    }
}

impl Shape {
    /// The bytes of a value in memory or in a register. 0 for all others.
    pub(crate) fn bytes(&self) -> u8 {
        match self {
            Shape::Unknown | Shape::Structure(..) => 0,
            Shape::Signed(size) | Shape::Unsigned(size) | Shape::Float(size) => *size,
            Shape::Text | Shape::Pointer(_) => 8,
        }
    }
}

/// The size of an integer that a register has.
fn whole(size: u64) -> Option<u8> {
    matches!(size, 1 | 2 | 4 | 8).then_some(size as u8)
}
