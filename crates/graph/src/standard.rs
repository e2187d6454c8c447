//! The standard input, output and error that a program began with, as an extended record of its
//! activity.
//!
//! An activity without such a record began with the descriptors of its parent: most programs share
//! their parent's terminal or pipe. Edges say which versions were read and written. This record
//! says through which of the three descriptors, so that a redirection can be written down again.
//!
//! A second record names files that an activity opened for its children: some shells open
//! redirections before they fork. The activity was not seen to write to these files itself. A
//! program that writes through libc's buffers may still have written. A program that calls `write`
//! has not.
//!
//! Absent: sockets, and descriptors that `posix_spawn` arranged unseen.

use crate::model::EntityId;

/// The kind of the record.
pub const KIND: &[u8] = b"standard-descriptors";

/// The end of a standard descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StandardEnd {
    /// The entity that it led to.
    pub entity: EntityId,
    /// It was opened for writing and not truncated: `>>`.
    pub keeps: bool,
}

/// Where standard input, output and error led (descriptors 0, 1 and 2). `None`: not known, or the
/// graph has no node for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StandardDescriptors {
    /// Descriptor 0.
    pub input: Option<StandardEnd>,
    /// Descriptor 1.
    pub output: Option<StandardEnd>,
    /// Descriptor 2.
    pub error: Option<StandardEnd>,
}

impl StandardDescriptors {
    /// All three, in the order of their numbers.
    pub fn all(self) -> [Option<StandardEnd>; 3] {
        [self.input, self.output, self.error]
    }
}

impl From<[Option<StandardEnd>; 3]> for StandardDescriptors {
    fn from([input, output, error]: [Option<StandardEnd>; 3]) -> StandardDescriptors {
        StandardDescriptors {
            input,
            output,
            error,
        }
    }
}

/// The payload: the numbers of three entities, with a space between. A `+` after a number means
/// that the descriptor was opened without truncation; `-` stands for no entity.
pub fn encode(standard: &StandardDescriptors) -> Vec<u8> {
    let word = |end: &Option<StandardEnd>| match end {
        None => "-".to_owned(),
        Some(end) => format!("{}{}", end.entity.0, if end.keeps { "+" } else { "" }),
    };
    standard
        .all()
        .iter()
        .map(word)
        .collect::<Vec<_>>()
        .join(" ")
        .into_bytes()
}

/// Reads a payload back. `None` if it is not such a payload.
pub fn decode(payload: &[u8]) -> Option<StandardDescriptors> {
    let mut words = std::str::from_utf8(payload).ok()?.split(' ');
    let mut ends = [None; 3];
    for end in &mut ends {
        let word = words.next()?;
        if word == "-" {
            continue;
        }
        let number = word.strip_suffix('+').unwrap_or(word);
        *end = Some(StandardEnd {
            entity: EntityId(number.parse().ok()?),
            keeps: number.len() < word.len(),
        });
    }
    words.next().is_none().then(|| ends.into())
}

/// The kind of the record of files that were opened for children.
pub const GIVEN: &[u8] = b"opened-for-children";

/// The payload: numbers of entities with a space between.
pub fn encode_given(entities: &[EntityId]) -> Vec<u8> {
    let numbers: Vec<String> = entities.iter().map(|id| id.0.to_string()).collect();
    numbers.join(" ").into_bytes()
}

/// Reads such a payload back. It skips words that are no number.
pub fn decode_given(payload: &[u8]) -> impl Iterator<Item = EntityId> {
    let words = payload.split(|&byte| byte == b' ');
    words.filter_map(|word| Some(EntityId(std::str::from_utf8(word).ok()?.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_and_decoding_are_inverse() {
        let end = |number, keeps| {
            let entity = EntityId(number);
            Some(StandardEnd { entity, keeps })
        };
        for standard in [
            [None; 3],
            [end(0, false), None, end(u32::MAX, true)],
            [end(7, false); 3],
        ] {
            assert_eq!(decode(&encode(&standard.into())), Some(standard.into()));
        }
        for bad in ["", "1 2", "1 2 3 4", "1 2 x", "- -  -"] {
            assert_eq!(decode(bad.as_bytes()), None, "{bad}");
        }
    }
}
