//! Compares the payloads of extended records with the schemas of their types.
//!
//! In: lines of JSON. `{"schema": …}` is the schema for the payloads after it, and
//! `{"id": 3, "payload": "…"}` is a payload as text. Out: a line of JSON for each payload that does
//! not conform, with the first violation: `{"id": 3, "error": "…"}`. With `"unchecked": true`, the
//! schema could not be used, or not with this payload.
//!
//! Invariants: a schema reads no file and no address. A pattern takes time in proportion to the
//! text. Absent: limits of time and memory, which the sandbox sets.

use std::error::Error;
use std::io::{self, BufWriter, Write};

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, Retrieve, Uri, Validator};
use serde_json::{Value, json};

/// The most characters of a violation.
const LONGEST: usize = 300;

/// Why a payload does not conform.
enum Objection {
    /// The payload is not what the schema says.
    Violation(String),
    /// The payload could not be compared.
    Unchecked(String),
}

use Objection::{Unchecked, Violation};

/// Writes the verdicts to standard output.
///
/// # Errors
/// The caller has stopped reading, or its lines are not JSON.
pub fn write_verdicts(lines: &[u8]) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut present = Err("the question has no schema".to_owned());
    let lines = lines.split(|&byte| byte == b'\n');
    for line in lines.filter(|line| !line.is_empty()) {
        let line: Value = serde_json::from_slice(line)?;
        if let Some(schema) = line.get("schema") {
            present = validator(schema);
            continue;
        }
        let payload = line["payload"].as_str().unwrap_or_default();
        let objection = match &present {
            Ok(validator) => objection(validator, payload),
            Err(why) => Some(Unchecked(format!("the schema cannot be used: {why}"))),
        };
        let id = &line["id"];
        let verdict = match objection {
            None => continue,
            Some(Violation(why)) => json!({"id": id, "error": cut(&why)}),
            Some(Unchecked(why)) => json!({"id": id, "error": cut(&why), "unchecked": true}),
        };
        writeln!(out, "{verdict}")?;
    }
    out.flush()
}

/// Prepares a schema. Its patterns have no look-around and no back-reference: those can take
/// exponential time.
fn validator(schema: &Value) -> Result<Validator, String> {
    let options = jsonschema::options().with_retriever(OwnPartsOnly);
    let options = options.with_pattern_options(PatternOptions::regex());
    options.build(schema).map_err(|error| match &error.kind {
        ValidationErrorKind::Format { format } if format == "regex" => {
            format!("{error}: look-around and back-references are not supported")
        }
        _ => at(&error),
    })
}

/// Fetches no other document.
struct OwnPartsOnly;

impl Retrieve for OwnPartsOnly {
    fn retrieve(&self, _: &Uri<String>) -> Result<Value, Box<dyn Error + Send + Sync>> {
        Err("a schema may refer to its own parts only".into())
    }
}

/// The first objection to a payload.
fn objection(validator: &Validator, payload: &str) -> Option<Objection> {
    match serde_json::from_str(payload) {
        Ok(payload) => {
            let first = validator.validate(&payload).err();
            first.map(|error| Violation(at(&error)))
        }
        Err(error) if error.is_eof() && !payload.is_empty() => Some(Violation(format!(
            "it is not JSON: {error}. A statement is cut at 4,000 bytes"
        ))),
        // The reader of JSON has no other sign of this.
        Err(error) if error.to_string().starts_with("recursion limit exceeded") => {
            Some(Unchecked("it is nested more than 127 deep".to_owned()))
        }
        Err(error) => Some(Violation(format!("it is not JSON: {error}"))),
    }
}

/// A violation, with the place in the document.
fn at(error: &jsonschema::ValidationError<'_>) -> String {
    let place = error.instance_path.to_string();
    match place.is_empty() {
        true => error.to_string(),
        false => format!("{place}: {error}"),
    }
}

fn cut(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}
