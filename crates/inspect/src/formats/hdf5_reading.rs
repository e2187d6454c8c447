//! How HDF5 files are read: the limits, and the types whose values are not numbers or texts.

use hdf5_reader::{Datatype, OpenOptions, StringSize};

use super::array_values;

/// The most types inside of each other.
pub const DEPTH: usize = 100;

/// The limits of the reader.
pub fn options() -> OpenOptions {
    let most = array_values::LARGEST as usize;
    OpenOptions::default()
        .with_max_read_bytes(most)
        .with_max_chunk_bytes(most)
        .with_max_object_header_bytes(8 << 20)
        .with_chunk_cache_bytes(4 << 20)
}

/// True for values that are addresses inside of the file, which a rewritten file changes.
pub fn holds_addresses(datatype: &Datatype, depth: usize) -> bool {
    let of = |datatype: &Datatype| depth > DEPTH || holds_addresses(datatype, depth + 1);
    match datatype {
        Datatype::VarLen { .. } | Datatype::Reference { .. } => true,
        Datatype::String { size, .. } => *size == StringSize::Variable,
        Datatype::Array { base, .. } => of(base),
        Datatype::Compound { fields, .. } => fields.iter().any(|field| of(&field.datatype)),
        _ => false,
    }
}
