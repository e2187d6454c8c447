//! Compares two texts by their lines: the unified form of `diff -u`.

use similar::{ChangeTag, DiffOp, group_diff_ops};

use crate::alignment;

/// The lines around a change that are shown with it.
const CONTEXT: usize = 3;

/// The difference between two texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextDifference {
    /// Lines of the first text.
    pub a: usize,
    /// Lines of the second text.
    pub b: usize,
    /// Lines that only the first text has.
    pub removed: usize,
    /// Lines that only the second text has.
    pub added: usize,
    /// The changes with their context, in the order of the text.
    pub hunks: Vec<Hunk>,
}

/// Changes that lie close together, with the lines around them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hunk {
    /// Number of its first line in the first text, from 1, and the count of its lines there.
    pub a: (usize, usize),
    /// The same in the second text.
    pub b: (usize, usize),
    /// The lines without their newlines.
    pub lines: Vec<(LineMark, Vec<u8>)>,
}

/// The text that a line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LineMark {
    /// Both.
    Both,
    /// The first.
    Removed,
    /// The second.
    Added,
}

impl LineMark {
    /// The character before the line in the unified form.
    pub fn sign(self) -> char {
        match self {
            LineMark::Both => ' ',
            LineMark::Removed => '-',
            LineMark::Added => '+',
        }
    }
}

/// The lines of a text without their newlines. A carriage return stays.
pub fn lines(text: &[u8]) -> Vec<&[u8]> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    match text.is_empty() {
        true => Vec::new(),
        false => text.split(|&byte| byte == b'\n').collect(),
    }
}

/// Compares two texts.
pub fn compare(a: &[u8], b: &[u8]) -> TextDifference {
    let (old, new) = (lines(a), lines(b));
    let ops = alignment::operations(&old, &new);
    let mut found = TextDifference {
        a: old.len(),
        b: new.len(),
        ..TextDifference::default()
    };
    for op in ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. })) {
        found.removed += op.old_range().len();
        found.added += op.new_range().len();
    }
    for group in group_diff_ops(ops, CONTEXT) {
        found.hunks.push(hunk(&group, &old, &new));
    }
    found
}

fn hunk(group: &[DiffOp], old: &[&[u8]], new: &[&[u8]]) -> Hunk {
    let (Some(first), Some(last)) = (group.first(), group.last()) else {
        return Hunk::default();
    };
    let span = |from: usize, to: usize| (from + usize::from(to > from), to - from);
    let mut hunk = Hunk {
        a: span(first.old_range().start, last.old_range().end),
        b: span(first.new_range().start, last.new_range().end),
        lines: Vec::new(),
    };
    for op in group {
        for change in op.iter_changes(old, new) {
            let mark = match change.tag() {
                ChangeTag::Equal => LineMark::Both,
                ChangeTag::Delete => LineMark::Removed,
                ChangeTag::Insert => LineMark::Added,
            };
            hunk.lines.push((mark, change.value().to_vec()));
        }
    }
    hunk
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The unified form of a difference, without the names of the files.
    fn unified(a: &str, b: &str) -> String {
        let mut out = String::new();
        for hunk in compare(a.as_bytes(), b.as_bytes()).hunks {
            let span = |(from, count): (usize, usize)| match count {
                1 => from.to_string(),
                _ => format!("{from},{count}"),
            };
            out += &format!("@@ -{} +{} @@\n", span(hunk.a), span(hunk.b));
            for (mark, line) in hunk.lines {
                out += &format!("{}{}\n", mark.sign(), String::from_utf8(line).unwrap());
            }
        }
        out
    }

    #[test]
    fn a_text_difference_is_what_diff_u_prints() {
        let dir = std::env::temp_dir().join(format!("comparison-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let cases = [
            ("a\nb\nc\n", "a\nx\nc\n"),
            ("", "a\nb\n"),
            ("a\n", ""),
            (
                "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n",
                "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n12\n",
            ),
        ];
        for (old, new) in cases {
            let (a, b) = (dir.join("a"), dir.join("b"));
            std::fs::write(&a, old).unwrap();
            std::fs::write(&b, new).unwrap();
            let printed = std::process::Command::new("diff")
                .arg("-u")
                .args([&a, &b])
                .output();
            let Ok(printed) = printed else {
                backstory_testkit::need::skipped("differences as those of diff", "needs diff");
                break;
            };
            let printed = String::from_utf8(printed.stdout).unwrap();
            let body: Vec<&str> = printed.lines().skip(2).collect();
            assert_eq!(
                unified(old, new).lines().collect::<Vec<_>>(),
                body,
                "{old:?} {new:?}"
            );
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn changed_lines_are_counted() {
        let found = compare(b"a\nb\nc\n", b"a\nx\ny\nc\n");
        assert_eq!((found.a, found.b, found.removed, found.added), (3, 4, 1, 2));
    }
}
