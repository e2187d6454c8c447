//! Encodes the rows of the SQLite store into blocks, and decodes them.
//!
//! - A number is a LEB128 varint; a signed number is zigzagged first ([`record`]).
//! - A block has its numbers in columns: all numbers of one meaning stand together
//!   ([`RecordReader::column`]).
//! - A block is compressed with zstd where that makes it smaller ([`block`]).
//!
//! `docs/formats/store.md` describes each record. A changed record needs a new schema.
//!
//! Invariant: decoding never panics and never trusts a length. Bytes that cannot be decoded are
//! [`Error::Damaged`].
//!
//! [`Error::Damaged`]: crate::Error::Damaged

pub mod activities;
pub mod block;
pub mod edge_lists;
pub mod extended;
pub mod members;
mod record;
pub mod reverse;
pub mod schema2;
mod similar;
pub mod stream;
pub mod texts;
pub mod versions;

pub use record::{RecordReader, RecordWriter, unzigzag, zigzag};

#[cfg(test)]
mod tests {
    use super::*;
    use backstory_graph::model::ActivityId;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_decode_to_a_record_or_an_error(noise: Vec<u8>) {
            let _ = versions::decode(&noise, |_, _| Ok(()));
            let _ = members::Block::decode(&noise);
            let _ = members::versions(&noise, |_, _| ());
            let _ = members::directories(&noise, |_| ());
            let _ = reverse::scan(&noise, None, reverse::Mentioned::All, &mut Vec::new());
            let _ = activities::ActivityBlock::decode(&noise, 0);
            let _ = schema2::decode(&noise, 0);
            let _ = schema2::segment(&noise);
            let _ = texts::TextBlock::decode(&noise);
            let _ = extended::decode(&noise, 0);
            let _ = edge_lists::EdgeLists::decode(&noise);
            let _ = stream::decode(&noise, ActivityId(0), 0, &mut Default::default());
        }

        #[test]
        fn any_bytes_in_a_plain_block_decode_to_a_record_or_an_error(noise: Vec<u8>) {
            let plain = [&[0], &noise[..]].concat();
            let after_a_number = [&[0, 0], &noise[..]].concat();
            let _ = versions::decode(&plain, |_, _| Ok(()));
            let _ = members::Block::decode(&plain);
            let _ = members::versions(&plain, |_, _| ());
            let _ = members::directories(&plain, |_| ());
            let _ = activities::ActivityBlock::decode(&plain, 0);
            let _ = texts::TextBlock::decode(&plain);
            let _ = extended::decode(&plain, 0);
            let _ = edge_lists::EdgeLists::decode(&plain);
            let _ = reverse::scan(&after_a_number, None, reverse::Mentioned::All, &mut Vec::new());
        }
    }
}
