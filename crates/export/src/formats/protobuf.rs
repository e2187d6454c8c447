//! The part of Protocol Buffers' wire format that Perfetto's messages need: numbers, and bytes with
//! their length.
//!
//! In: fields by number. Out: the message's bytes. An encoder for generated types (`prost`) would
//! need Perfetto's schema of more than a thousand messages; twenty fields are used.

/// A message under construction.
#[derive(Debug, Default)]
pub struct Message(Vec<u8>);

/// Wire types (<https://protobuf.dev/programming-guides/encoding/>).
const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const LENGTH: u32 = 2;

impl Message {
    /// A number field: `uint64`, `uint32`, an enumeration, or a non-negative `int32` or `int64`.
    pub fn number(mut self, field: u32, number: u64) -> Message {
        self.key(field, VARINT);
        self.varint(number);
        self
    }

    /// A number field of either sign: `int64` and `int32`.
    pub fn signed(self, field: u32, number: i64) -> Message {
        self.number(field, number.cast_unsigned())
    }

    /// A field of eight bytes: `fixed64`.
    pub fn fixed(mut self, field: u32, number: u64) -> Message {
        self.key(field, FIXED_64);
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    /// A text field.
    pub fn text(mut self, field: u32, text: &str) -> Message {
        self.sized(field, text.as_bytes());
        self
    }

    /// A field whose value is a message.
    pub fn message(mut self, field: u32, message: &Message) -> Message {
        self.sized(field, &message.0);
        self
    }

    /// The message's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn sized(&mut self, field: u32, bytes: &[u8]) {
        self.key(field, LENGTH);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn key(&mut self, field: u32, how: u32) {
        self.varint(u64::from(field << 3 | how));
    }

    /// A number in seven bits a byte, the lowest first (a varint).
    fn varint(&mut self, mut rest: u64) {
        while rest >= 0x80 {
            self.0.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.0.push(rest as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the format's page about encoding.
    #[test]
    fn numbers_and_text_are_written_as_the_format_says() {
        assert_eq!(
            Message::default().number(1, 150).bytes(),
            [0x08, 0x96, 0x01]
        );
        assert_eq!(
            Message::default().text(2, "testing").bytes(),
            [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]
        );
        let within = Message::default().number(1, 150);
        assert_eq!(
            Message::default().message(3, &within).bytes(),
            [0x1a, 0x03, 0x08, 0x96, 0x01]
        );
        let minus_two = Message::default().signed(1, -2);
        assert_eq!(
            minus_two.bytes(),
            [
                0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01
            ]
        );
        assert_eq!(
            Message::default().fixed(47, 1).bytes(),
            [0xf9, 0x02, 1, 0, 0, 0, 0, 0, 0, 0]
        );
    }
}
