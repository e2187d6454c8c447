//! The questions to a worker, and the bytes in which it reads them: the one definition of both.
//!
//! The bytes are one line of JSON, then the parts one after the other. The line has their lengths.
//! The parts are contents of files, or lines for a filter. A WebAssembly component that answers is
//! the first part.
//!
//! ```text
//! {"parts": [120, 130], "ask": {"inspect": {"inspector": "csv", "version": 1, "name": "a.csv"}}}\n
//! first content, second content
//! ```
//!
//! | question | parts | answer |
//! | --- | --- | --- |
//! | `inspect` | one or two contents | [`Answer`](crate::Answer): facts, or changes |
//! | `read` | one or two contents; else see [`crate::row_changes`], [`crate::file_parts`] | [`FormatAnswer`](crate::format_answer::FormatAnswer) |
//! | `judge` | lines about nodes, or records with their schemas | lines |

use serde::{Deserialize, Serialize};

/// One question to an inspector: about one content, or about the changes from the first to the
/// second.
#[derive(Debug, Clone)]
pub struct Question<'q> {
    /// The file's name or path. The inspector gets the path.
    pub name: &'q [u8],
    /// The content, or the older one of two.
    pub first: &'q [u8],
    /// The newer one of two contents.
    pub second: Option<&'q [u8]>,
    /// The columns by which rows of two tables are matched. Empty: the inspector finds them.
    pub key: &'q [String],
}

impl Question<'_> {
    /// The contents, in order.
    pub fn contents(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(self.first).chain(self.second)
    }
}

/// The first line of the bytes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestLine {
    /// The length of each part, in bytes.
    parts: Vec<usize>,
    ask: Request,
}

/// A question to a worker, without its parts.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Facts or changes, by an inspector.
    Inspect(QuestionHead),
    /// A view of a content, or the difference of two, in a form that formats share.
    Read(FormatHead),
    /// A user's filter of graphs, or the schemas of records.
    Judge(JudgeHead),
}

/// A question to an inspector, without its contents.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionHead {
    /// The inspector's name.
    pub inspector: String,
    /// The version that the caller knows.
    pub version: u32,
    /// The file's path. Bytes that are not UTF-8 are replaced.
    pub name: String,
    /// The command of a plug-in. Empty for other inspectors.
    #[serde(default)]
    pub command: Vec<String>,
    /// True if a WebAssembly component answers.
    #[serde(default)]
    pub component: bool,
    /// [`Question::key`]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key: Vec<String>,
}

/// A question about the form of contents, without them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormatHead {
    /// The inspector whose format the contents have.
    pub inspector: String,
    /// The file's name or path. Bytes that are not UTF-8 are replaced.
    pub name: String,
    /// The question.
    pub question: FormatQuestion,
    /// [`Question::key`]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key: Vec<String>,
}

/// A question whose answer has the same form for each format that has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FormatQuestion {
    /// The difference between two contents: cells of a table, pixels of an image.
    Difference,
    /// The text, as UTF-8.
    Text,
    /// Lines of the text.
    Lines(Portion),
    /// Rows of a table.
    Rows(Portion),
    /// Cells of a notebook.
    Cells(Portion),
    /// Width and height of an image.
    Size,
    /// Rows that changed between two states of a database's files ([`crate::row_changes`]).
    RowChanges,
    /// The bytes of a cell or a member ([`crate::file_parts`]).
    Part,
}

/// A part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Portion {
    /// The first element, from 0.
    pub first: usize,
    /// The most elements.
    pub limit: usize,
}

/// A question to a user's filter of graphs, without its lines.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgeHead {
    /// An expression in CEL.
    #[serde(default)]
    pub expression: Option<String>,
    /// The command of a plug-in. Empty for other filters.
    #[serde(default)]
    pub command: Vec<String>,
    /// True if a WebAssembly component answers.
    #[serde(default)]
    pub component: bool,
    /// The lines are JSON schemas, and payloads to compare with them.
    #[serde(default)]
    pub schemas: bool,
}

impl Request {
    /// The first line of the bytes, for these parts.
    ///
    /// # Errors
    /// The request cannot be written as JSON.
    pub fn line(&self, parts: &[&[u8]]) -> std::io::Result<Vec<u8>> {
        let line = RequestLine {
            parts: parts.iter().map(|part| part.len()).collect(),
            ask: self.clone(),
        };
        let mut line = serde_json::to_vec(&line)?;
        line.push(b'\n');
        Ok(line)
    }

    /// The request in the first line. `bytes` need not contain more. `None` if the line is cut, or
    /// has another form.
    pub fn of(bytes: &[u8]) -> Option<Request> {
        first_line(bytes).ok().map(|(line, _)| line.ask)
    }

    /// The command that the worker becomes. Empty if it answers itself.
    pub fn command(&self) -> &[String] {
        match self {
            Request::Inspect(head) => &head.command,
            Request::Judge(head) => &head.command,
            Request::Read(_) => &[],
        }
    }
}

/// A request as a worker reads it.
#[derive(Debug)]
pub enum ReadRequest<'q> {
    /// [`Request::Inspect`]
    Inspect(ReadQuestion<'q>),
    /// [`Request::Read`]
    Read(ReadFormatQuestion<'q>),
    /// [`Request::Judge`]
    Judge(ReadJudge<'q>),
}

/// A question to an inspector as a worker reads it.
#[derive(Debug)]
pub struct ReadQuestion<'q> {
    /// The question.
    pub head: QuestionHead,
    /// The WebAssembly component that answers.
    pub component: Option<&'q [u8]>,
    /// One or two contents.
    pub contents: Vec<&'q [u8]>,
}

/// A question about the form of contents as a worker reads it.
#[derive(Debug)]
pub struct ReadFormatQuestion<'q> {
    /// The question.
    pub head: FormatHead,
    /// One or two contents. For changed rows, the parts of [`crate::row_changes`].
    pub contents: Vec<&'q [u8]>,
}

/// A question to a filter as a worker reads it.
#[derive(Debug)]
pub struct ReadJudge<'q> {
    /// The question.
    pub head: JudgeHead,
    /// The WebAssembly component; empty for other filters.
    pub component: &'q [u8],
    /// The lines about nodes.
    pub lines: &'q [u8],
}

/// Reads a request.
///
/// # Errors
/// A sentence that says which part of the bytes is wrong.
pub fn read(bytes: &[u8]) -> Result<ReadRequest<'_>, String> {
    let (line, mut rest) = first_line(bytes)?;
    let mut parts = Vec::new();
    for length in line.parts {
        let (part, after) = rest
            .split_at_checked(length)
            .ok_or("the question ends within a part")?;
        parts.push(part);
        rest = after;
    }
    if !rest.is_empty() {
        return Err("the question has bytes after its parts".to_owned());
    }
    let mut parts = parts.into_iter().peekable();
    match line.ask {
        Request::Inspect(head) => {
            let component = match head.component {
                true => Some(parts.next().ok_or("the question has no component")?),
                false => None,
            };
            Ok(ReadRequest::Inspect(ReadQuestion {
                head,
                component,
                contents: contents(parts)?,
            }))
        }
        Request::Read(head) => Ok(ReadRequest::Read(ReadFormatQuestion {
            contents: match head.question {
                FormatQuestion::RowChanges => parts.collect(),
                _ => contents(parts)?,
            },
            head,
        })),
        Request::Judge(head) => {
            let component = match head.component {
                true => parts.next().ok_or("the question has no component")?,
                false => &[],
            };
            match (parts.next(), parts.next()) {
                (Some(lines), None) => Ok(ReadRequest::Judge(ReadJudge {
                    head,
                    component,
                    lines,
                })),
                _ => Err("a question to a filter has one part with lines".to_owned()),
            }
        }
    }
}

/// The length of the whole question, of which `bytes` need not contain more than the first line.
/// `None` if that line is cut, or has another form.
pub fn length(bytes: &[u8]) -> Option<usize> {
    let (line, rest) = first_line(bytes).ok()?;
    let mut parts = line.parts.iter();
    parts.try_fold(bytes.len() - rest.len(), |all, part| all.checked_add(*part))
}

fn contents<'q>(parts: impl Iterator<Item = &'q [u8]>) -> Result<Vec<&'q [u8]>, String> {
    let contents: Vec<&[u8]> = parts.collect();
    match contents.len() {
        1 | 2 => Ok(contents),
        _ => Err("the question must have one or two contents".to_owned()),
    }
}

/// The first line, and the bytes after it.
fn first_line(bytes: &[u8]) -> Result<(RequestLine, &[u8]), String> {
    let end = bytes.iter().position(|&byte| byte == b'\n');
    let end = end.ok_or("the question has no first line")?;
    let line = serde_json::from_slice(&bytes[..end]).map_err(|error| {
        format!(
            "the question is not in the form of this program ({error}): install {} and the program \
             that started it in the same version",
            crate::WORKER
        )
    })?;
    Ok((line, &bytes[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inspected<'q>(bytes: &'q [u8]) -> ReadQuestion<'q> {
        match read(bytes).unwrap() {
            ReadRequest::Inspect(question) => question,
            other => panic!("{other:?}"),
        }
    }

    fn head(component: bool) -> Request {
        Request::Inspect(QuestionHead {
            inspector: "csv".to_owned(),
            version: 1,
            name: "a".to_owned(),
            command: Vec::new(),
            component,
            key: Vec::new(),
        })
    }

    #[test]
    fn a_question_is_read_only_if_it_is_whole() {
        let parts = [&b"ab"[..], b"c"];
        let whole = [&head(false).line(&parts).unwrap()[..], b"abc"].concat();
        assert_eq!(length(&whole), Some(whole.len()));
        assert_eq!(inspected(&whole).contents, parts);
        for cut in 0..whole.len() {
            assert!(read(&whole[..cut]).is_err(), "{cut}");
        }
        assert!(read(&[&whole[..], b"d"].concat()).is_err());
        let parts = [&b"abc"[..], b"de"];
        let whole = [&head(true).line(&parts).unwrap()[..], b"abcde"].concat();
        assert_eq!(inspected(&whole).component, Some(parts[0]));
        assert_eq!(inspected(&whole).contents, [parts[1]]);
    }

    #[test]
    fn a_question_of_another_version_is_refused_with_the_remedy() {
        let why = read(b"{\"inspector\":\"csv\",\"lengths\":[1]}\na").unwrap_err();
        assert!(why.contains("in the same version"), "{why}");
    }

    #[test]
    fn a_filter_has_one_part_with_lines() {
        let ask = Request::Judge(JudgeHead::default());
        for (parts, is_right) in [
            (&[][..], false),
            (&[&b"x"[..]], true),
            (&[b"x", b"y"], false),
        ] {
            let bytes = [ask.line(parts).unwrap(), parts.concat()].concat();
            assert_eq!(read(&bytes).is_ok(), is_right, "{parts:?}");
        }
    }
}
