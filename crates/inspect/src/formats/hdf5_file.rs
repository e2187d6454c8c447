//! HDF5 files: groups, datasets with types, shapes and values, and attributes.
//!
//! An object is described once, under the first of its names: hard links may form cycles. The
//! values of references and of lengths that vary have no digest, because they hold addresses.

use std::collections::HashSet;

use backstory_inspection::file_parts::{PartAnswer, PartName};
use hdf5_reader::group::Group;
use hdf5_reader::{Attribute, ByteOrder, Dataset, Datatype, Hdf5File as File};
use serde_json::{Map, Value, json};

use super::array_values::{self, ArrayFile, ArrayValues, NumberArray, NumberForm, Words};
use super::hdf5_reading::{DEPTH, holds_addresses, options};
use crate::changes::FileChanges;
use crate::parts::dataset_value;
use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent};

pub struct Hdf5File;

/// The most objects that are described.
const OBJECTS: usize = 20_000;

impl Inspector for Hdf5File {
    fn part(&self, content: NamedContent<'_>, name: &PartName) -> PartAnswer {
        dataset_value::place(content.bytes, name)
    }

    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        DatasetFile::open(content)?.facts()
    }

    fn changes(&self, old: NamedContent<'_>, new: NamedContent<'_>) -> Read<FileChanges> {
        array_values::changes::<DatasetFile>(old, new)
    }
}

/// An open file.
struct DatasetFile(File);

impl ArrayFile for DatasetFile {
    const WORDS: Words = ("dataset", "datasets");

    fn open(content: NamedContent<'_>) -> Read<DatasetFile> {
        let file = File::from_bytes_with_options(content.bytes, options());
        file.map(DatasetFile).map_err(UnreadableContent::of)
    }

    fn facts(&self) -> Read<FileFacts> {
        let root = self.0.root_group().map_err(UnreadableContent::of)?;
        let mut found = Objects::default();
        found.group("", &root, 0)?;
        let mut facts = FileFacts::default();
        facts.parts(("group", "groups"), found.groups);
        facts.parts(Self::WORDS, found.datasets);
        facts.parts(("attribute", "attributes"), found.attributes);
        Ok(facts)
    }

    fn numbers(&self, name: &str) -> Option<NumberArray> {
        values(&self.0.dataset(name).ok()?).ok()??.numbers()
    }
}

/// The objects of a file, each with its path.
#[derive(Default)]
struct Objects {
    groups: Vec<(String, Value)>,
    datasets: Vec<(String, Value)>,
    attributes: Vec<(String, Value)>,
    seen: HashSet<u64>,
}

impl Objects {
    fn group(&mut self, path: &str, group: &Group, depth: usize) -> Read<()> {
        if !self.seen.insert(group.address()) {
            return Ok(());
        }
        if depth > DEPTH || self.seen.len() > OBJECTS {
            let why = format!("it has over {OBJECTS} objects, or {DEPTH} groups in each other");
            return Err(UnreadableContent(why));
        }
        let attributes = group.attributes().map_err(UnreadableContent::of)?;
        self.attributes(path, &attributes);
        let (groups, datasets) = group.members().map_err(UnreadableContent::of)?;
        for dataset in datasets {
            if self.seen.insert(dataset.address()) {
                let path = format!("{path}/{}", dataset.name());
                self.attributes(&path, &dataset.attributes());
                self.datasets.push((path, described(&dataset)));
            }
        }
        for child in groups {
            let path = format!("{path}/{}", child.name());
            if !self.seen.contains(&child.address()) {
                self.groups.push((path.clone(), Value::Null));
            }
            self.group(&path, &child, depth + 1)?;
        }
        Ok(())
    }

    fn attributes(&mut self, path: &str, all: &[Attribute]) {
        let named = all.iter().map(|one| {
            let owner = if path.is_empty() { "/" } else { path };
            (format!("{owner}@{}", one.name), attribute(one))
        });
        self.attributes.extend(named);
    }
}

/// Type, shape, storage and values of a dataset.
fn described(dataset: &Dataset) -> Value {
    let mut told = Map::new();
    told.insert("type".to_owned(), json!(type_name(dataset.dtype(), 0)));
    told.insert("shape".to_owned(), json!(dataset.shape()));
    if let Some(chunks) = dataset.chunks() {
        told.insert("chunks".to_owned(), json!(chunks));
    }
    if dataset.shape().contains(&0) {
        return Value::Object(told);
    }
    match values(dataset) {
        Ok(Some(values)) => array_values::describe(&values, &mut told),
        Ok(None) => {}
        Err(why) => drop(told.insert("unread".to_owned(), json!(why.to_string()))),
    }
    Value::Object(told)
}

/// The values of a dataset. `None` if they are addresses.
fn values(dataset: &Dataset) -> Result<Option<ArrayValues>, hdf5_reader::error::Error> {
    if is_text(dataset.dtype()) {
        return Ok(Some(ArrayValues::texts(&dataset.read_strings()?)));
    }
    if holds_addresses(dataset.dtype(), 0) {
        return Ok(None);
    }
    let form = number_form(dataset.dtype());
    let numbers = NumberArray::new(form, dataset.read_native_bytes()?);
    Ok(Some(
        numbers.map_or_else(ArrayValues::Other, ArrayValues::Numbers),
    ))
}

fn is_text(datatype: &Datatype) -> bool {
    match datatype {
        Datatype::String { .. } => true,
        Datatype::VarLen { base, .. } => base.is_vlen_string_base(),
        _ => false,
    }
}

fn number_form(datatype: &Datatype) -> Option<NumberForm> {
    match datatype {
        Datatype::FixedPoint { size, signed, .. } if *signed => {
            Some(NumberForm::Signed(usize::from(*size)))
        }
        Datatype::FixedPoint { size, .. } => Some(NumberForm::Unsigned(usize::from(*size))),
        Datatype::FloatingPoint { size, .. } => Some(NumberForm::Float(usize::from(*size))),
        Datatype::Enum { base, .. } => match &**base {
            Datatype::Enum { .. } => None,
            base => number_form(base),
        },
        _ => None,
    }
}

/// The name of a type, as NumPy writes it where it has one.
fn type_name(datatype: &Datatype, depth: usize) -> String {
    if depth > DEPTH {
        return "nested".to_owned();
    }
    let of = |datatype: &Datatype| type_name(datatype, depth + 1);
    let bits = |size: &u8| u32::from(*size) * 8;
    match datatype {
        Datatype::FixedPoint { size, signed, .. } => match signed {
            true => format!("int{}", bits(size)),
            false => format!("uint{}", bits(size)),
        },
        Datatype::FloatingPoint { size, .. } => format!("float{}", bits(size)),
        Datatype::Bitfield { size, .. } => format!("bits{}", bits(size)),
        Datatype::String { .. } => "string".to_owned(),
        Datatype::VarLen { base, .. } if base.is_vlen_string_base() => "string".to_owned(),
        Datatype::VarLen { base, .. } => format!("list of {}", of(base)),
        Datatype::Enum { base, members } => {
            let names: Vec<&str> = members.iter().take(20).map(|one| &*one.name).collect();
            format!("enum of {}: {}", of(base), names.join(", "))
        }
        Datatype::Array { base, dims } => format!("{}{dims:?}", of(base)),
        Datatype::Compound { fields, .. } => {
            let fields = fields.iter().take(50);
            let told = fields.map(|field| format!("{}: {}", field.name, of(&field.datatype)));
            format!("{{{}}}", told.collect::<Vec<_>>().join(", "))
        }
        Datatype::Opaque { size, .. } => format!("opaque of {size} bytes"),
        Datatype::Reference { .. } => "reference".to_owned(),
    }
}

/// The value of an attribute, or the name of its type if it has no plain value.
fn attribute(attribute: &Attribute) -> Value {
    let is_scalar = attribute.shape.is_empty();
    if is_text(&attribute.datatype) {
        let texts = attribute.read_strings().ok();
        let texts = texts.or_else(|| Some(vec![attribute.read_string().ok()?]));
        return match texts.unwrap_or_default().as_slice() {
            [text] if is_scalar => json!(text),
            texts => json!(texts.iter().take(100).collect::<Vec<_>>()),
        };
    }
    let numbers = attribute_numbers(attribute);
    match numbers {
        Some(numbers) => array_values::value(&numbers, is_scalar),
        None => json!(type_name(&attribute.datatype, 0)),
    }
}

/// The numbers of an attribute, whose bytes have the byte order of its type.
fn attribute_numbers(attribute: &Attribute) -> Option<Vec<f64>> {
    let (size, order) = match &attribute.datatype {
        Datatype::FixedPoint {
            size, byte_order, ..
        }
        | Datatype::FloatingPoint { size, byte_order } => (usize::from(*size), *byte_order),
        _ => return None,
    };
    let mut bytes = attribute.raw_data.clone();
    let is_native = (order == ByteOrder::LittleEndian) == cfg!(target_endian = "little");
    if !is_native && size > 0 {
        bytes.chunks_mut(size).for_each(<[u8]>::reverse);
    }
    let numbers = NumberArray::new(number_form(&attribute.datatype), bytes).ok()?;
    Some(numbers.iter().collect())
}
