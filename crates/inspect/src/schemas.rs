//! Compares the payloads of extended records with the schemas of their types.
//!
//! In: lines of JSON. `{"schema": …}` is the schema for the payloads after it, and
//! `{"id": 3, "payload": "…"}` is a payload as text. Out: a line of JSON for each payload that does
//! not conform, with the first violation: `{"id": 3, "error": "…"}`. With `"unchecked": true`, the
//! schema itself could not be used.
//!
//! Invariant: a schema reads no file and no address. Absent: limits, which the sandbox sets.

use std::io::{self, BufWriter, Write};

use jsonschema::Validator;
use serde_json::{Value, json};

/// The most characters of a violation.
const LONGEST: usize = 300;

/// Writes the verdicts to standard output.
///
/// # Errors
/// The caller has stopped reading, or its lines are not JSON.
pub fn write_verdicts(lines: &[u8]) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut present = Err("the question has no schema".to_owned());
    for line in lines.split(|&byte| byte == b'\n') {
        if line.is_empty() {
            continue;
        }
        let line: Value = serde_json::from_slice(line)?;
        if let Some(schema) = line.get("schema") {
            present = jsonschema::validator_for(schema).map_err(|error| at(&error));
            continue;
        }
        let payload = line["payload"].as_str().unwrap_or_default();
        let id = &line["id"];
        match &present {
            Err(why) => {
                let why = format!("the schema cannot be used: {}", cut(why));
                writeln!(
                    out,
                    "{}",
                    json!({"id": id, "error": why, "unchecked": true})
                )?;
            }
            Ok(validator) => {
                if let Some(why) = violation(validator, payload) {
                    writeln!(out, "{}", json!({"id": id, "error": cut(&why)}))?;
                }
            }
        }
    }
    out.flush()
}

/// The first violation of a payload.
fn violation(validator: &Validator, payload: &str) -> Option<String> {
    let payload: Value = match serde_json::from_str(payload) {
        Ok(payload) => payload,
        Err(error) => return Some(format!("it is not JSON: {error}")),
    };
    let mut errors = validator.iter_errors(&payload);
    errors.next().map(|error| at(&error))
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
