//! NetCDF files, the classic formats and NetCDF-4: dimensions, variables with types, shapes and
//! values, and attributes.
//!
//! A NetCDF-4 file is an HDF5 file. Its name says which inspector reads it.

use backstory_inspection::file_parts::{NoPart, PartAnswer, PartName};
use netcdf_reader::{
    NcAttrValue, NcAttribute, NcDimension, NcFile, NcFormat, NcGroup, NcOpenOptions, NcType,
    NcVariable,
};
use serde_json::{Map, Value, json};

use super::array_values::{self, ArrayFile, ArrayValues, NumberArray, NumberForm, Words};
use crate::changes::FileChanges;
use crate::parts::dataset_value;
use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent};

pub struct NetcdfFile;

/// The first bytes of the classic formats. A NetCDF-4 file is an HDF5 file.
const CLASSIC: &[u8] = b"CDF";

impl Inspector for NetcdfFile {
    fn part(&self, content: NamedContent<'_>, name: &PartName) -> PartAnswer {
        match content.bytes.starts_with(CLASSIC) {
            true => Err(NoPart::OtherKind),
            false => dataset_value::place(content.bytes, name),
        }
    }

    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        VariableFile::open(content)?.facts()
    }

    fn changes(&self, old: NamedContent<'_>, new: NamedContent<'_>) -> Read<FileChanges> {
        array_values::changes::<VariableFile>(old, new)
    }
}

/// An open file.
struct VariableFile(NcFile);

impl ArrayFile for VariableFile {
    const WORDS: Words = ("variable", "variables");

    fn open(content: NamedContent<'_>) -> Read<VariableFile> {
        let most = array_values::LARGEST as usize;
        let options = NcOpenOptions {
            chunk_cache_bytes: 4 << 20,
            max_chunk_bytes: most,
            max_read_bytes: most,
            max_object_header_bytes: 8 << 20,
            ..NcOpenOptions::default()
        };
        let file = NcFile::from_bytes_with_options(content.bytes, options);
        file.map(VariableFile).map_err(UnreadableContent::of)
    }

    fn facts(&self) -> Read<FileFacts> {
        let mut found = Contents::default();
        let root = self.0.root_group().map_err(UnreadableContent::of)?;
        found.group(&self.0, "", root, &[]);
        let mut facts = FileFacts::default();
        facts.value("format", format_name(self.0.format()));
        facts.parts(("dimension", "dimensions"), found.dimensions);
        facts.parts(Self::WORDS, found.variables);
        facts.parts(("attribute", "attributes"), found.attributes);
        Ok(facts)
    }

    fn numbers(&self, name: &str) -> Option<NumberArray> {
        let variable = self.0.variable(name).ok()?;
        values(&self.0, name, variable).ok()??.numbers()
    }
}

fn format_name(format: NcFormat) -> &'static str {
    match format {
        NcFormat::Classic => "classic",
        NcFormat::Offset64 => "64-bit offset",
        NcFormat::Cdf5 => "64-bit data",
        NcFormat::Nc4 => "NetCDF-4",
        NcFormat::Nc4Classic => "NetCDF-4 classic model",
    }
}

/// The dimensions, variables and attributes of a file, each with its path.
#[derive(Default)]
struct Contents {
    dimensions: Vec<(String, Value)>,
    variables: Vec<(String, Value)>,
    attributes: Vec<(String, Value)>,
}

impl Contents {
    /// `inherited` are the dimensions of the groups around this one, which its list repeats.
    fn group(&mut self, file: &NcFile, path: &str, group: &NcGroup, inherited: &[NcDimension]) {
        let own = group.dimensions.iter();
        for dimension in own.filter(|one| !inherited.contains(one)) {
            let mut told = json!({"size": dimension.size});
            if dimension.is_unlimited {
                told["unlimited"] = json!(true);
            }
            let name = format!("{path}{}", dimension.name);
            self.dimensions.push((name, told));
        }
        self.attributes(path, &group.attributes);
        for variable in &group.variables {
            let name = format!("{path}{}", variable.name);
            self.attributes(&name, &variable.attributes);
            let told = described(file, &name, variable);
            self.variables.push((name, told));
        }
        for child in &group.groups {
            let path = format!("{path}{}/", child.name);
            self.group(file, &path, child, &group.dimensions);
        }
    }

    fn attributes(&mut self, owner: &str, all: &[NcAttribute]) {
        let named = all
            .iter()
            .map(|one| (format!("{owner}@{}", one.name), attribute(&one.value)));
        self.attributes.extend(named);
    }
}

/// Type, shape and values of a variable.
fn described(file: &NcFile, name: &str, variable: &NcVariable) -> Value {
    let mut told = Map::new();
    told.insert("type".to_owned(), json!(type_name(&variable.dtype)));
    told.insert("shape".to_owned(), json!(variable.shape()));
    let dimensions = variable.dimensions.iter().map(|one| json!(one.name));
    told.insert("dimensions".to_owned(), dimensions.collect());
    if variable.shape().contains(&0) {
        return Value::Object(told);
    }
    match values(file, name, variable) {
        Ok(Some(values)) => array_values::describe(&values, &mut told),
        Ok(None) => {}
        Err(why) => drop(told.insert("unread".to_owned(), json!(why))),
    }
    Value::Object(told)
}

/// The values of a variable. `None` if its type has no plain values.
fn values(file: &NcFile, name: &str, variable: &NcVariable) -> Result<Option<ArrayValues>, String> {
    let of = |error: netcdf_reader::Error| error.to_string();
    let size = variable.dtype.size().map_err(|error| error.to_string())? as u64;
    let elements = variable.num_elements().map_err(|error| error.to_string())?;
    if elements
        .checked_mul(size)
        .is_none_or(|bytes| bytes > array_values::LARGEST)
    {
        return Err("it is too large".to_owned());
    }
    if matches!(variable.dtype, NcType::Char | NcType::String) {
        let texts = file.read_variable_as_strings(name).map_err(of)?;
        return Ok(Some(ArrayValues::texts(&texts)));
    }
    let Some(form) = number_form(&variable.dtype) else {
        return Ok(None);
    };
    let bytes = match file.as_classic() {
        Some(_) => classic_bytes(file, name, &variable.dtype).map_err(of)?,
        None => file.read_variable_native_bytes(name).map_err(of)?,
    };
    let numbers = NumberArray::new(Some(form), bytes);
    Ok(Some(
        numbers.map_or_else(ArrayValues::Other, ArrayValues::Numbers),
    ))
}

/// The values of a variable of a classic file, in the byte order of this machine.
fn classic_bytes(
    file: &NcFile,
    name: &str,
    datatype: &NcType,
) -> Result<Vec<u8>, netcdf_reader::Error> {
    macro_rules! read {
        ($type:ty) => {{
            let values = file.read_variable::<$type>(name)?;
            values.iter().flat_map(|one| one.to_ne_bytes()).collect()
        }};
    }
    Ok(match datatype {
        NcType::Byte => read!(i8),
        NcType::Short => read!(i16),
        NcType::Int => read!(i32),
        NcType::Float => read!(f32),
        NcType::Double => read!(f64),
        NcType::UByte => read!(u8),
        NcType::UShort => read!(u16),
        NcType::UInt => read!(u32),
        NcType::Int64 => read!(i64),
        NcType::UInt64 => read!(u64),
        _ => Vec::new(),
    })
}

fn number_form(datatype: &NcType) -> Option<NumberForm> {
    Some(match datatype {
        NcType::Byte => NumberForm::Signed(1),
        NcType::Short => NumberForm::Signed(2),
        NcType::Int => NumberForm::Signed(4),
        NcType::Int64 => NumberForm::Signed(8),
        NcType::UByte => NumberForm::Unsigned(1),
        NcType::UShort => NumberForm::Unsigned(2),
        NcType::UInt => NumberForm::Unsigned(4),
        NcType::UInt64 => NumberForm::Unsigned(8),
        NcType::Float => NumberForm::Float(4),
        NcType::Double => NumberForm::Float(8),
        _ => return None,
    })
}

/// The name of a type, as `ncdump` writes it.
fn type_name(datatype: &NcType) -> String {
    let name = match datatype {
        NcType::Byte => "byte",
        NcType::Char => "char",
        NcType::Short => "short",
        NcType::Int => "int",
        NcType::Float => "float",
        NcType::Double => "double",
        NcType::UByte => "ubyte",
        NcType::UShort => "ushort",
        NcType::UInt => "uint",
        NcType::Int64 => "int64",
        NcType::UInt64 => "uint64",
        NcType::String => "string",
        NcType::Enum { .. } => "enum",
        NcType::Compound { .. } => "compound",
        NcType::Opaque { .. } => "opaque",
        NcType::Array { .. } => "array",
        NcType::VLen { .. } => "vlen",
    };
    name.to_owned()
}

fn attribute(value: &NcAttrValue) -> Value {
    if let Some(text) = value.as_string() {
        return json!(text);
    }
    if let NcAttrValue::Strings(texts) = value {
        return json!(texts.iter().take(100).collect::<Vec<_>>());
    }
    match value.as_f64_vec() {
        Some(numbers) => array_values::value(&numbers, true),
        None => json!("a value of a type of the file's own"),
    }
}
