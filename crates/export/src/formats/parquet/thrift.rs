//! Thrift's compact protocol, as far as Parquet's headers need it.
//!
//! In: the fields of structures, in the order of their numbers. Out: bytes.

/// The type of a list's items.
#[derive(Clone, Copy)]
pub enum Item {
    Number = 5,
    Text = 8,
    Structure = 12,
}

/// A structure that is being written.
#[derive(Default)]
pub struct Structure {
    bytes: Vec<u8>,
    last: u8,
}

impl Structure {
    /// Adds the head of a field.
    fn field(&mut self, number: u8, kind: u8) {
        // Parquet leaves out fewer than 15 fields in a row.
        self.bytes.push((number - self.last) << 4 | kind);
        self.last = number;
    }

    /// Adds a number of 32 bits.
    pub fn number(mut self, field: u8, value: i32) -> Structure {
        self.field(field, 5);
        zigzag(&mut self.bytes, value.into());
        self
    }

    /// Adds a number of 64 bits.
    pub fn long(mut self, field: u8, value: usize) -> Structure {
        self.field(field, 6);
        zigzag(&mut self.bytes, value as i64);
        self
    }

    /// Adds a text.
    pub fn text(mut self, field: u8, value: &str) -> Structure {
        self.field(field, 8);
        append_text(&mut self.bytes, value);
        self
    }

    /// Adds a truth value.
    pub fn truth(mut self, field: u8, value: bool) -> Structure {
        self.field(field, if value { 1 } else { 2 });
        self
    }

    /// Adds a structure.
    pub fn structure(mut self, field: u8, value: Structure) -> Structure {
        self.field(field, 12);
        self.bytes.extend(value.end());
        self
    }

    /// Adds a list, whose items are bytes of this type.
    pub fn list(mut self, field: u8, kind: Item, items: &[Vec<u8>]) -> Structure {
        self.field(field, 9);
        match items.len() {
            short @ 0..15 => self.bytes.push((short as u8) << 4 | kind as u8),
            long => {
                self.bytes.push(0xf0 | kind as u8);
                varint(&mut self.bytes, long as u64);
            }
        }
        self.bytes.extend(items.iter().flatten());
        self
    }

    /// The bytes of the structure.
    pub fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

/// An item of a list of numbers.
pub fn number(value: i32) -> Vec<u8> {
    let mut bytes = Vec::new();
    zigzag(&mut bytes, value.into());
    bytes
}

/// An item of a list of texts.
pub fn text(value: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    append_text(&mut bytes, value);
    bytes
}

/// Appends a number of variable length: seven bits in a byte, the lowest first.
pub fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn zigzag(bytes: &mut Vec<u8>, value: i64) {
    varint(bytes, (value << 1 ^ value >> 63) as u64);
}

fn append_text(bytes: &mut Vec<u8>, value: &str) {
    varint(bytes, value.len() as u64);
    bytes.extend_from_slice(value.as_bytes());
}
