//! Lets an expression or a plug-in decide about nodes, in a process with limits.
//!
//! In: nodes as JSON objects. Out: a verdict for each node. The process reads one JSON object a
//! line and writes one for each node that it wants to change (`docs/formats/filters.md`). Each
//! process gets at most [`BATCH`] nodes. So the limits on its time and answer hold for any run.
//!
//! Invariant: a process that hangs, floods, dies or answers nonsense costs the caller a
//! [`JudgeFailure`] and a limited time. Its answers are then unknown, not half known.

use std::collections::BTreeMap;
use std::time::Duration;

use backstory_eventlog::run::RunHeader;
use backstory_inspection::judging::{JudgeProgram, JudgeTrouble, judge};
use backstory_vocabulary::Word;
use serde_json::{Map, Value, json};

use crate::fields::Field;
use crate::text_position::position;

/// The most nodes for one process.
pub const BATCH: usize = 5_000;

/// The version of the protocol.
const PROTOCOL: u32 = 1;

/// The longest time that the processes of one filter may take for one run.
const LONGEST: Duration = Duration::from_secs(60);

/// The most brackets that are open at once in an expression. Deeper ones would end the worker.
const DEEPEST: usize = 100;

/// Why no verdicts are known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JudgeFailure {
    /// The process did not answer.
    #[error("{0}")]
    Process(String),
    /// The answer is not what the protocol says.
    #[error("its answer is refused: {0}")]
    Answer(String),
    /// The expression is wrong. Line and column count from 1.
    #[error("line {line}, column {column} of the expression: {why}")]
    Expression {
        /// Line of the expression.
        line: usize,
        /// Column of the expression.
        column: usize,
        /// The mistake.
        why: String,
    },
}

impl From<JudgeTrouble> for JudgeFailure {
    fn from(trouble: JudgeTrouble) -> JudgeFailure {
        JudgeFailure::Process(trouble.to_string())
    }
}

/// The decision about a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The condition is true.
    Match,
    /// A plug-in removes it.
    Drop,
    /// A plug-in redacts its texts.
    Redact,
    /// A plug-in gives it another name.
    Rename(Vec<u8>),
    /// The expression has no value for this node.
    Failed(String),
}

/// The facts about a question to a process.
#[derive(Debug)]
pub struct Judged<'q> {
    /// The name of the filter or rule.
    pub filter: &'q str,
    /// The kind of node.
    pub subject: &'static str,
    /// The variables of an expression.
    pub fields: &'q [Field],
    /// The run, which is the variable `run`.
    pub header: &'q RunHeader,
}

/// Asks about nodes, each with its number. A node without a verdict stays as it is.
///
/// # Errors
/// The process gave no answer within its limits, or the expression is wrong.
pub fn verdicts(
    program: &JudgeProgram,
    asked: &Judged<'_>,
    nodes: &mut dyn Iterator<Item = (u32, Value)>,
) -> Result<BTreeMap<u32, Verdict>, JudgeFailure> {
    let began = std::time::Instant::now();
    let mut all = BTreeMap::new();
    loop {
        let mut lines = hello(asked).into_bytes();
        let mut numbers = Vec::new();
        for (number, mut node) in nodes.take(BATCH) {
            if let Value::Object(fields) = &mut node {
                fields.insert("id".to_owned(), number.into());
            }
            lines.extend(format!("{node}\n").into_bytes());
            numbers.push(number);
        }
        if numbers.is_empty() {
            return Ok(all);
        }
        if began.elapsed() > LONGEST {
            let why = format!("it took more than {} s for the run", LONGEST.as_secs());
            return Err(JudgeFailure::Process(why));
        }
        let answer = judge(program, &lines)?;
        for (number, verdict) in read(&answer)? {
            if numbers.binary_search(&number).is_err() {
                let why = format!("it names node {number}, which it was not asked about");
                return Err(JudgeFailure::Answer(why));
            }
            all.insert(number, verdict);
        }
    }
}

/// Checks an expression without any node.
///
/// # Errors
/// As [`verdicts`].
pub fn check(program: &JudgeProgram, asked: &Judged<'_>) -> Result<(), JudgeFailure> {
    if let JudgeProgram::Expression(text) = program
        && let Some(at) = too_deep(text)
    {
        let (line, column) = position(text, at);
        let why = format!("more than {DEEPEST} brackets are open: write several rules instead");
        return Err(JudgeFailure::Expression { line, column, why });
    }
    let answer = judge(program, hello(asked).as_bytes())?;
    read(&answer).map(|_| ())
}

/// The first byte with more open brackets than a parser's stack is sure to hold. Brackets within
/// strings count, too.
fn too_deep(text: &str) -> Option<usize> {
    let mut open = 0usize;
    text.bytes().position(|byte| {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        open > DEEPEST
    })
}

/// The first line.
fn hello(asked: &Judged<'_>) -> String {
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    let command: Vec<String> = asked.header.command.iter().map(text).collect();
    let fields: Vec<&str> = asked.fields.iter().map(|(name, _)| *name).collect();
    let types = asked.fields.iter();
    let types = types.map(|(name, of)| ((*name).to_owned(), Value::from(of.word())));
    let types: Map<String, Value> = types.collect();
    let line = json!({
        "backstory_filter": PROTOCOL,
        "filter": asked.filter,
        "on": asked.subject,
        "fields": fields,
        "types": types,
        "run": {
            "id": asked.header.id,
            "name": asked.header.name,
            "command": command,
            "directory": text(&asked.header.cwd),
        },
    });
    format!("{line}\n")
}

fn read(answer: &[u8]) -> Result<Vec<(u32, Verdict)>, JudgeFailure> {
    let lines = answer.split(|&byte| byte == b'\n');
    let lines = (1..)
        .zip(lines)
        .filter(|(_, line)| !line.trim_ascii().is_empty());
    lines.map(|(number, line)| verdict(number, line)).collect()
}

fn verdict(number: usize, line: &[u8]) -> Result<(u32, Verdict), JudgeFailure> {
    let refuse = |why: String| JudgeFailure::Answer(format!("line {number}: {why}"));
    let line: Value = serde_json::from_slice(line).map_err(|error| refuse(error.to_string()))?;
    let word = |key: &str| line.get(key).and_then(Value::as_str);
    let Some(id) = line.get("id") else {
        let at = |key: &str| line.get(key).and_then(Value::as_u64).unwrap_or(1) as usize;
        return Err(match word("error") {
            Some(why) => JudgeFailure::Expression {
                line: at("line"),
                column: at("column"),
                why: printable(why),
            },
            None => refuse("it has no id".to_owned()),
        });
    };
    let id = id.as_u64().and_then(|id| u32::try_from(id).ok());
    let id = id.ok_or_else(|| refuse("its id is not a number of a node".to_owned()))?;
    let verdict = match (word("action"), word("to"), word("error")) {
        (None, _, Some(why)) => Verdict::Failed(printable(why)),
        (Some("match"), ..) => Verdict::Match,
        (Some("drop"), ..) => Verdict::Drop,
        (Some("redact"), ..) => Verdict::Redact,
        (Some("rename"), Some(to), _) if !to.is_empty() => Verdict::Rename(to.as_bytes().to_vec()),
        (Some("rename"), ..) => return Err(refuse("rename has no text `to`".to_owned())),
        (Some(other), ..) => {
            return Err(refuse(format!("unknown action {:?}", printable(other))));
        }
        (None, ..) => return Err(refuse("it has no action".to_owned())),
    };
    Ok((id, verdict))
}

/// A text of foreign origin, cut, and without characters that a terminal would obey.
fn printable(text: &str) -> String {
    let text: String = text.chars().take(200).collect();
    backstory_inspection::worker::printable(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_only_if_the_protocol_allows_it() {
        let read = |text: &str| read(text.as_bytes());
        assert_eq!(read("").unwrap(), []);
        let lines = "{\"id\":1,\"action\":\"drop\"}\n\n{\"id\":2,\"error\":\"no\"}\n";
        let expected = [(1, Verdict::Drop), (2, Verdict::Failed("no".to_owned()))];
        assert_eq!(read(lines).unwrap(), expected);
        for wrong in [
            "x",
            "{}",
            "[]",
            "{\"id\":-1,\"action\":\"drop\"}",
            "{\"id\":1}",
            "{\"id\":1,\"action\":\"explode\"}",
            "{\"id\":1,\"action\":\"rename\"}",
            "{\"id\":1,\"action\":\"drop\"",
        ] {
            assert!(
                matches!(read(wrong), Err(JudgeFailure::Answer(_))),
                "{wrong}"
            );
        }
        let place = read("{\"error\":\"bad\\u001b[2J\",\"line\":2,\"column\":5}").unwrap_err();
        let text = place.to_string();
        assert!(
            text.contains("line 2, column 5") && !text.contains('\u{1b}'),
            "{text}"
        );
    }
}
