//! The header's structures of the table of recorded functions, field by field.

/// Which functions of a file are recorded (`bs_function_table`). The bits and the sleds follow.
/// Addresses are those that the file was linked for.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FunctionTable {
    /// [`crate::FUNCTIONS_MAGIC`].
    pub magic: u64,
    /// Bytes of the whole table.
    pub bytes: u64,
    /// The lowest address of the file's code.
    pub low: u64,
    /// Bytes of the code.
    pub size: u64,
    /// Offset of the bits in the table, one for each byte of the code.
    pub bits: u64,
    /// Offset of the sleds in the table.
    pub sleds: u64,
    /// Number of functions.
    pub count: u32,
    /// Number of sleds.
    pub sled_count: u32,
    /// The number of a function is this one and its offset in the code.
    pub first: u32,
    /// Number of signatures. 0 if arguments are not recorded.
    pub signature_count: u32,
    /// Offset of the signatures, sorted by number.
    pub signatures: u64,
    /// Offset of the values.
    pub values: u64,
    /// Offset of the places.
    pub places: u64,
    /// Offset of the names.
    pub names: u64,
    /// Offset of the functions whose calls can be redirected.
    pub targets: u64,
    /// Offset of the patterns of libraries.
    pub libraries: u64,
    /// Number of functions whose calls can be redirected.
    pub target_count: u32,
    /// Padding.
    pub pad: u32,
}

impl FunctionTable {
    /// Size in the table's file.
    pub const SIZE: usize = size_of::<FunctionTable>();

    /// The bytes of the structure.
    pub fn to_bytes(&self) -> Vec<u8> {
        let long = [
            self.magic, self.bytes, self.low, self.size, self.bits, self.sleds,
        ];
        let short = [
            self.count,
            self.sled_count,
            self.first,
            self.signature_count,
        ];
        let more = [
            self.signatures,
            self.values,
            self.places,
            self.names,
            self.targets,
            self.libraries,
        ];
        let last = [self.target_count, self.pad];
        let long = long.iter().flat_map(|field| field.to_le_bytes());
        let more = more.iter().flat_map(|field| field.to_le_bytes());
        long.chain(short.iter().flat_map(|field| field.to_le_bytes()))
            .chain(more)
            .chain(last.iter().flat_map(|field| field.to_le_bytes()))
            .collect()
    }
}

/// A function of a library that was compiled without hooks (`bs_target`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Target {
    /// The address.
    pub address: u64,
    /// The number of the function.
    pub number: u32,
    /// 1: the address is that of a resolver, which returns that of the function (IFUNC).
    pub is_chosen: u32,
}

impl Target {
    /// The bytes of the structure.
    pub fn to_bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.address.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.number.to_le_bytes());
        bytes[12..].copy_from_slice(&self.is_chosen.to_le_bytes());
        bytes
    }
}

/// A place at which the compiler left room for a call (`bs_sled`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sled {
    /// The address.
    pub address: u64,
    /// The number of the function.
    pub number: u32,
    /// As in the compiler's table.
    pub kind: u32,
}

impl Sled {
    /// The bytes of the structure.
    pub fn to_bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.address.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.number.to_le_bytes());
        bytes[12..].copy_from_slice(&self.kind.to_le_bytes());
        bytes
    }
}

/// The parameters of a function, and its result (`bs_signature`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Signature {
    /// The number of the function.
    pub number: u32,
    /// Number of parameters.
    pub count: u16,
    /// 1 if a value for the result follows the parameters.
    pub result: u16,
    /// Index of the first value.
    pub first: u32,
}

impl Signature {
    /// The bytes of the structure.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (number, first) = (self.number.to_le_bytes(), self.first.to_le_bytes());
        let halves = [self.count.to_le_bytes(), self.result.to_le_bytes()].concat();
        [&number[..], &halves, &first].concat()
    }
}

/// A parameter, a result, the target of a pointer, or a member of a structure (`bs_value`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Value {
    /// [`crate::VALUE_SIGNED`] and its like.
    pub kind: u8,
    /// Bytes, of a number or a structure.
    pub size: u8,
    /// Members of a structure; 1 if a pointer has a target.
    pub count: u8,
    /// Number of places of a parameter. Of a result: 1 if it is in a vector register.
    pub places: u8,
    /// Of a member: from the structure's beginning. Of a parameter or a result that points to data:
    /// the bytes of its target's type, negative if the type is constant.
    pub offset: i32,
    /// Offset among the names.
    pub name: u32,
    /// Index of the target or of the first member.
    pub first: u32,
    /// Index of the parameter's first place.
    pub place: u32,
}

impl Value {
    /// The bytes of the structure.
    pub fn to_bytes(&self) -> Vec<u8> {
        let short = [self.kind, self.size, self.count, self.places];
        let long = [self.name, self.first, self.place];
        let long = long.iter().flat_map(|field| field.to_le_bytes());
        let offset = self.offset.to_le_bytes();
        short.into_iter().chain(offset).chain(long).collect()
    }
}

/// The place of a parameter while the function is in a part of its code (`bs_place`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// Where the part begins: an offset in the file's code.
    pub from: u32,
    /// Where the part ends. 0: the place is valid where the function begins.
    pub to: u32,
    /// The register, by DWARF's number.
    pub base: u8,
    /// 1: in memory, at the register's content plus `offset`.
    pub memory: u8,
    /// Padding.
    pub pad: u16,
    /// See `memory`.
    pub offset: i32,
}

impl Place {
    /// The bytes of the structure.
    pub fn to_bytes(&self) -> Vec<u8> {
        let range = [self.from.to_le_bytes(), self.to.to_le_bytes()].concat();
        let base = [self.base, self.memory, 0, 0];
        [&range[..], &base, &self.offset.to_le_bytes()].concat()
    }
}
