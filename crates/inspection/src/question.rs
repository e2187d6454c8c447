//! A question to an inspector, and the bytes in which a worker reads it.
//!
//! The bytes are one line of JSON, then the contents one after the other. If the inspector is a
//! WebAssembly component, its bytes precede the contents, and the line has their number as
//! `component`.
//!
//! ```text
//! {"inspector": "csv", "version": 1, "name": "results.csv", "lengths": [120, 130]}\n
//! first content, second content
//! ```

use serde::{Deserialize, Serialize};

/// One question: about one content, or about the changes from the first to the second.
#[derive(Debug, Clone)]
pub struct Question<'q> {
    /// The file's name or path.
    pub name: &'q [u8],
    /// The content, or the older one of two.
    pub first: &'q [u8],
    /// The newer one of two contents.
    pub second: Option<&'q [u8]>,
}

/// The first line of the bytes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionHead {
    /// The inspector's name.
    pub inspector: String,
    /// The version that the caller knows.
    pub version: u32,
    /// The file's name or path. Bytes that are not UTF-8 are replaced.
    pub name: String,
    /// The length of each content, in bytes.
    pub lengths: Vec<usize>,
    /// The command of a plug-in. Empty for other inspectors.
    #[serde(default)]
    pub command: Vec<String>,
    /// The length of the WebAssembly component, in bytes.
    #[serde(default)]
    pub component: Option<usize>,
}

/// A question as a worker reads it.
#[derive(Debug)]
pub struct ReadQuestion<'q> {
    /// The first line.
    pub head: QuestionHead,
    /// The WebAssembly component that answers.
    pub component: Option<&'q [u8]>,
    /// One or two contents.
    pub contents: Vec<&'q [u8]>,
}

/// The first line of a question to a user's filter of graphs. The bytes of a component follow, and
/// then the lines about nodes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgeHead {
    /// The length of the lines about nodes, in bytes.
    pub lines: usize,
    /// An expression in CEL.
    #[serde(default)]
    pub expression: Option<String>,
    /// The command of a plug-in. Empty for other filters.
    #[serde(default)]
    pub command: Vec<String>,
    /// The length of the WebAssembly component, in bytes.
    #[serde(default)]
    pub component: Option<usize>,
    /// The lines are JSON schemas, and payloads to compare with them.
    #[serde(default)]
    pub schemas: bool,
}

/// A question to a filter as a worker reads it.
#[derive(Debug)]
pub struct ReadJudge<'q> {
    /// The first line.
    pub head: JudgeHead,
    /// The WebAssembly component; empty for other filters.
    pub component: &'q [u8],
    /// The lines about nodes.
    pub lines: &'q [u8],
}

/// The bytes of a question to a filter.
pub fn judge_bytes(head: &JudgeHead, component: &[u8], lines: &[u8]) -> Vec<u8> {
    let head = serde_json::to_vec(head).unwrap_or_default();
    [&head, &b"\n"[..], component, lines].concat()
}

/// The first line, of which `bytes` need not contain more. `None` if it is not the line of a
/// question to a filter.
pub fn judge_head(bytes: &[u8]) -> Option<JudgeHead> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    serde_json::from_slice(&bytes[..end]).ok()
}

/// Reads a question to a filter.
///
/// # Errors
/// A sentence that says which part of the bytes is wrong.
pub fn read_judge(bytes: &[u8]) -> Result<ReadJudge<'_>, String> {
    let head = judge_head(bytes).ok_or("the question has no first line")?;
    let end = bytes.iter().position(|&byte| byte == b'\n');
    let rest = &bytes[end.unwrap_or_default() + 1..];
    let split = rest.split_at_checked(head.component.unwrap_or(0));
    match split {
        Some((component, lines)) if lines.len() == head.lines => Ok(ReadJudge {
            component,
            lines,
            head,
        }),
        _ => Err("the question does not have the length that its first line names".to_owned()),
    }
}

/// The plug-in's command in the first line, of which `bytes` need not contain more. `None` if that
/// line is not whole.
pub fn command_of(bytes: &[u8]) -> Option<Vec<String>> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    let head: QuestionHead = serde_json::from_slice(&bytes[..end]).ok()?;
    Some(head.command)
}

/// Reads a question.
///
/// # Errors
/// A sentence that says which part of the bytes is wrong.
pub fn read(bytes: &[u8]) -> Result<ReadQuestion<'_>, String> {
    let end = bytes.iter().position(|&byte| byte == b'\n');
    let end = end.ok_or("the question has no first line")?;
    let head: QuestionHead =
        serde_json::from_slice(&bytes[..end]).map_err(|error| format!("the question: {error}"))?;
    let mut rest = &bytes[end + 1..];
    let mut next = |length: usize| {
        let (part, after) = rest
            .split_at_checked(length)
            .ok_or("the question ends within a content")?;
        rest = after;
        Ok::<_, String>(part)
    };
    let component = head.component.map(&mut next).transpose()?;
    let contents = head.lengths.iter().map(|length| next(*length));
    let contents = contents.collect::<Result<Vec<_>, _>>()?;
    match contents.len() {
        1 | 2 if rest.is_empty() => Ok(ReadQuestion {
            head,
            component,
            contents,
        }),
        _ => Err("the question must have one or two contents, and nothing after them".to_owned()),
    }
}

impl Question<'_> {
    /// The contents, in order.
    pub fn contents(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(self.first).chain(self.second)
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn a_question_is_read_only_if_it_is_whole() {
        let whole = b"{\"inspector\":\"csv\",\"version\":1,\"name\":\"a\",\"lengths\":[2,1]}\nabc";
        let question = read(whole).unwrap();
        assert_eq!(question.contents, [&b"ab"[..], b"c"]);
        for cut in 0..whole.len() {
            assert!(read(&whole[..cut]).is_err(), "{cut}");
        }
        assert!(read(&[whole, &b"d"[..]].concat()).is_err());
        let line = br#"{"inspector":"m","version":1,"name":"a","lengths":[2],"component":3}"#;
        let asked = [&line[..], b"\nabcde"].concat();
        let question = read(&asked).unwrap();
        assert_eq!(question.component, Some(&b"abc"[..]));
        assert_eq!(question.contents, [b"de"]);
    }
}
