//! `emit`: a script says what it does, and the recording of the script has it.
//!
//! The statement is a mark ([`backstory_graph::marks`]). This process makes it for its parent: the
//! shell that runs it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use backstory_disclosure::MarkPath;
use backstory_graph::marks;
use backstory_graph::parts::{Part, of_name};

use super::Outcome;
use crate::args::emit::{EmitArgs, EmitStatement};
use crate::error::Failure;

/// The most bytes of a record from standard input. More would be cut.
const MOST: u64 = 3500;

/// Makes the mark.
pub fn run(args: EmitArgs) -> Outcome {
    let (verb, words) = said(args.statement)?;
    let handles: Vec<&str> = [&args.around, &args.handle]
        .into_iter()
        .flat_map(|handle| handle.as_deref())
        .collect();
    let mark = MarkPath::of_parent(std::os::unix::process::parent_id(), &handles, verb);
    let mark = words.iter().fold(mark, |mark, word| mark.word(word));
    if marks::mark(mark.as_bytes()).is_none() {
        return Err(Failure::misuse(refusal(verb, &words)));
    }
    // The path exists nowhere. The attempt is the mark.
    let _ = File::open(OsStr::from_bytes(mark.as_bytes()));
    Ok(0)
}

fn said(statement: EmitStatement) -> Result<(&'static str, Vec<String>), Failure> {
    Ok(match statement {
        EmitStatement::Begin { words } => ("begin", words),
        EmitStatement::Next { words } => ("next", words),
        EmitStatement::End => ("end", Vec::new()),
        EmitStatement::Read { name, part } => ("read", thing(name, part)),
        EmitStatement::Write { name, part } => ("write", thing(name, part)),
        EmitStatement::Change { name, part } => ("change", thing(name, part)),
        EmitStatement::Delete { name, part } => ("delete", thing(name, part)),
        EmitStatement::Derive { name, from } => ("derive", vec![name, from]),
        EmitStatement::Note { key, value } => ("note", vec![key, value]),
        EmitStatement::Record { r#type, payload } if payload == "-" => {
            ("record", vec![r#type, standard_input()?])
        }
        EmitStatement::Record { r#type, payload } => ("record", vec![r#type, payload]),
    })
}

/// The words about a thing, or about a part of it. The name may end with the part, as in the
/// questions about it: `bank:accounts#row=42`.
fn thing(name: String, part: Option<Part>) -> Vec<String> {
    let (name, part) = match (part, of_name(name.as_bytes())) {
        (None, Some((thing, part))) => (name[..thing.len()].to_owned(), Some(part)),
        (part, _) => (name, part),
    };
    let part = part.map(|part| part.to_string());
    [Some(name), part].into_iter().flatten().collect()
}

fn standard_input() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin()
        .take(MOST + 1)
        .read_to_string(&mut text)
        .map_err(|error| Failure::misuse(format!("cannot read standard input: {error}")))?;
    match text.len() as u64 > MOST {
        true => Err(Failure::misuse(format!(
            "a record has at most {MOST} bytes: write the rest to a file"
        ))),
        false => Ok(text.trim_end_matches('\n').to_owned()),
    }
}

/// The reason why a statement is invalid.
fn refusal(verb: &str, words: &[String]) -> String {
    let wrong = words
        .iter()
        .find(|word| verb != "note" && !marks::is_name(word.as_bytes()));
    match (verb, wrong) {
        ("record", _) => format!(
            "{}: the type of a record is words with dots between them, as org.example.metric",
            words.first().map_or("", String::as_str)
        ),
        ("note", _) => "an attribute needs a name".to_owned(),
        (_, Some(name)) => format!(
            "{name}: the name of a thing is a URI, as model:3 or s3://bucket/key. These schemes are \
             backstory's own: {}",
            marks::RESERVED.join(", ")
        ),
        (_, None) => format!("cannot say {verb}"),
    }
}
