//! Control messages beside the bytes of a message (`cmsg(3)`): passed descriptors, credentials.
//!
//! In: the bytes that the kernel wrote. Out: where they have the numbers of passed descriptors.
//! Invariant: damaged messages have none.

use crate::resource::ResourceId;
use serde::{Deserialize, Serialize};

/// Size of a `struct cmsghdr`.
const HEADER: usize = 16;

/// The control messages of one recorded `recvmsg`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecordedControl {
    /// The bytes, with the recorded numbers of descriptors.
    pub bytes: Vec<u8>,
    /// The passed descriptors: the position of each number in the bytes, and its resource.
    pub passed: Vec<(usize, ResourceId)>,
}

/// The positions of passed descriptors, with their numbers.
pub fn passed_descriptors(bytes: &[u8]) -> Vec<(usize, i32)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(header) = bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk::<HEADER>())
    {
        let (length, kind) = header.split_at(8);
        let length = length.first_chunk().map_or(0, |n| u64::from_le_bytes(*n)) as usize;
        let kinds = [libc::SOL_SOCKET, libc::SCM_RIGHTS]
            .map(i32::to_le_bytes)
            .concat();
        let end = at.saturating_add(length).min(bytes.len());
        if length < HEADER {
            break;
        }
        if kind == kinds {
            let numbers = (at + HEADER..end).step_by(4);
            found.extend(numbers.filter_map(|at| {
                let number = bytes.get(at..end)?.first_chunk()?;
                Some((at, i32::from_le_bytes(*number)))
            }));
        }
        let next = length.checked_next_multiple_of(8);
        at = at.saturating_add(next.unwrap_or(usize::MAX));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::passed_descriptors;

    fn message(length: u64, kind: i32, rest: &[u8]) -> Vec<u8> {
        let (level, kind) = (1i32.to_le_bytes(), kind.to_le_bytes());
        [&length.to_le_bytes()[..], &level, &kind, rest].concat()
    }

    #[test]
    fn passed_descriptors_are_found_behind_other_messages() {
        let credentials = message(28, 2, &[0; 16]);
        let rights = message(24, 1, &[7, 0, 0, 0, 9, 0, 0, 0]);
        let both = [credentials, rights].concat();
        assert_eq!(passed_descriptors(&both), [(48, 7), (52, 9)]);
    }

    #[test]
    fn damaged_messages_end_the_list() {
        assert_eq!(passed_descriptors(&message(3, 1, &[0; 8])), []);
        assert_eq!(
            passed_descriptors(&message(u64::MAX, 1, &[5, 0, 0, 0])),
            [(16, 5)]
        );
        assert_eq!(passed_descriptors(&[1; 15]), []);
    }
}
