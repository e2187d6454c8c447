//! Finds the version that introduced each line of a text.

use similar::DiffOp;

use crate::alignment;
use crate::text::lines;

/// For each line of the last version, the index of the version that introduced it. The versions are
/// in order of time. A line that was removed and came back belongs to the version in which it came
/// back.
pub fn line_origins(versions: &[&[u8]]) -> Vec<usize> {
    let Some((first, rest)) = versions.split_first() else {
        return Vec::new();
    };
    let mut before = lines(first);
    let mut origins = vec![0; before.len()];
    for (at, version) in (1..).zip(rest) {
        let now = lines(version);
        let mut next = vec![at; now.len()];
        for op in alignment::operations(&before, &now) {
            if let DiffOp::Equal {
                old_index,
                new_index,
                len,
            } = op
            {
                next[new_index..new_index + len]
                    .copy_from_slice(&origins[old_index..old_index + len]);
            }
        }
        (before, origins) = (now, next);
    }
    origins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_belongs_to_the_version_that_introduced_it() {
        let versions: [&[u8]; 4] = [b"a\nb\n", b"a\nx\nb\n", b"a\nx\nc\n", b"z\na\nx\nc\nb\n"];
        assert_eq!(line_origins(&versions), [3, 0, 1, 2, 3]);
        assert_eq!(line_origins(&versions[..1]), [0, 0]);
        assert_eq!(line_origins(&[]), [0; 0]);
    }
}
